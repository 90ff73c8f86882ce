# If a built-in function returns no value, nothing is stored: a local keeps its value or stays unset.
global bloomfilter_basic_init: function(fp: double, capacity: count, name: string &default=""): opaque of bloomfilter;
global bloomfilter_counting_init: function(k: count, cells: count, max: count, name: string &default=""): opaque of bloomfilter;
global bloomfilter_add: function(bf: opaque of bloomfilter, x: any);
global bloomfilter_lookup: function(bf: opaque of bloomfilter, x: any): count;
global bloomfilter_merge: function(bf1: opaque of bloomfilter, bf2: opaque of bloomfilter): opaque of bloomfilter;
global bloomfilter_intersect: function(bf1: opaque of bloomfilter, bf2: opaque of bloomfilter): opaque of bloomfilter;
global hll_cardinality_init: function(err: double, confidence: double): opaque of cardinality;
global table_keys: function(t: any): any;
global stored: any;

type R: record { a: count; b: any &optional; };

event zeek_done() &priority=9
	{
	local kept = bloomfilter_basic_init(0.1, 10);
	bloomfilter_add(kept, 1);
	kept = bloomfilter_basic_init(5.0, 10);
	print bloomfilter_lookup(kept, 1);
	stored = 3;
	stored = table_keys(3);
	print stored;
	for ( i in vector(1, 2) )
		{
		local keys = table_keys(table([1] = 2));
		keys = table_keys(i);
		print keys;
		}
	}

event zeek_done() &priority=8
	{
	local r = R($a=1, $b=table_keys(3));
	print "next";
	print r;
	}

event zeek_done() &priority=7
	{
	local b: opaque of bloomfilter = bloomfilter_basic_init(5.0, 10);
	print bloomfilter_lookup(b, "x");
	print "not reached";
	}

event zeek_done() &priority=6
	{
	local basic = bloomfilter_basic_init(0.1, 10);
	local counting = bloomfilter_counting_init(3, 100, 5);
	local merged = bloomfilter_merge(basic, counting);
	local both = bloomfilter_intersect(basic, counting);
	local hll = hll_cardinality_init(-1.0, 5.0);
	print bloomfilter_lookup(merged, 1);
	}
#> 1
#> 3
#> {
#> 1
#> }
#> {
#> 1
#> }
#> next
#> [a=1, b=<uninitialized>]
#! error: false-positive rate must take value between 0 and 1
#! error in tests/run/no_value.zeek, line 21: table_keys() requires a table argument (table_keys(3))
#! error in tests/run/no_value.zeek, line 26: table_keys() requires a table argument (table_keys(i))
#! error in tests/run/no_value.zeek, line 26: table_keys() requires a table argument (table_keys(i))
#! error in tests/run/no_value.zeek, line 33: table_keys() requires a table argument (table_keys(3))
#! error: false-positive rate must take value between 0 and 1
#! expression error in tests/run/no_value.zeek, line 41: value used but not set (b)
#! error: cannot merge different Bloom filter types
#! error: cannot intersect different Bloom filter types
#! error: bad error or confidence of a cardinality counter
#! expression error in tests/run/no_value.zeek, line 52: value used but not set (merged)
