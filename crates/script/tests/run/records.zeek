# Initial values of record fields: separate containers and records, more of them than a word has bits, and constants.
type Inner: record {
	n: count &default = 3;
	names: set[string];
};

type Outer: record {
	first: count;
	tags: set[string] &default = set() &ordered;
	list: vector of count;
	inner: Inner;
	text: string &default = "a text that is longer than a cell";
	seen: bool &default = F;
	last: count &optional;
};

type Many: record {
	f0: set[count];
	f1: set[count];
	f2: set[count];
	f3: set[count];
	f4: set[count];
	f5: set[count];
	f6: set[count];
	f7: set[count];
	f8: set[count];
	f9: set[count];
	f10: set[count];
	f11: set[count];
	f12: set[count];
	f13: set[count];
	f14: set[count];
	f15: set[count];
	f16: set[count];
	f17: set[count];
	f18: set[count];
	f19: set[count];
	f20: set[count];
	f21: set[count];
	f22: set[count];
	f23: set[count];
	f24: set[count];
	f25: set[count];
	f26: set[count];
	f27: set[count];
	f28: set[count];
	f29: set[count];
	f30: set[count];
	f31: set[count];
	f32: set[count];
	f33: set[count];
	f34: set[count];
	f35: set[count];
	f36: set[count];
	f37: set[count];
	f38: set[count];
	f39: set[count];
	end: count &default = 7;
};

function set_all(m: Many)
	{
	add m$f0[1];
	add m$f31[2];
	add m$f32[3];
	add m$f39[4];
	}

event zeek_done()
	{
	local a = Outer($first = 1);
	local b = Outer($first = 2);
	print a?$tags, a?$list, a?$inner, a?$text, a?$seen, a?$last;
	add a$tags["x"];
	a$list += 5;
	add a$inner$names["y"];
	a$inner$n += 1;
	print a;
	print b;
	# Of a copy, what the model has and what neither was asked for yet.
	local c = copy(b);
	add c$tags["z"];
	c$last = 9;
	print |b$tags|, |c$tags|, c$seen, c$text, |c$inner$names|, b?$last;
	# What is read once stays the same.
	local tags = b$tags;
	add tags["w"];
	print b$tags, |copy(b)$tags|;
	b$last = 4;
	print b$text, b$seen, b$last, b$tags;
	delete b$tags;
	print |b$tags|, |tags|;
	local given = Outer($first = 3, $tags = set("q"), $inner = Inner($n = 8));
	print given$tags, given$inner, |given$list|;
	local m = Many();
	local o = Many();
	set_all(m);
	print m$f0, m$f31, m$f32, m$f39, |m$f1|, |m$f38|, m$end;
	print |o$f0|, |o$f31|, |o$f32|, |o$f39|, o?$f33, o$end;
	local table_of: table[Outer] of count = table();
	table_of[Outer($first = 5)] = 1;
	print Outer($first = 5) in table_of, Outer($first = 6) in table_of;
	}
#> T, T, T, T, T, F
#> [first=1, tags={
#> x
#> }, list=[5], inner=[n=4, names={
#> y
#> }], text=a text that is longer than a cell, seen=F, last=<uninitialized>]
#> [first=2, tags={
#>
#> }, list=[], inner=[n=3, names={
#>
#> }], text=a text that is longer than a cell, seen=F, last=<uninitialized>]
#> 0, 1, F, a text that is longer than a cell, 0, F
#> {
#> w
#> }, 1
#> a text that is longer than a cell, F, 4, {
#> w
#> }
#> 0, 1
#> {
#> q
#> }, [n=8, names={
#>
#> }], 0
#> {
#> 1
#> }, {
#> 2
#> }, {
#> 3
#> }, {
#> 4
#> }, 0, 0, 7
#> 0, 0, 0, 0, T, 7
#> T, F
