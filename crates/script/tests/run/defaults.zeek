# A field has the value that the global in its &default had when the record was created.
global first = 3;

type Inner: record {
	n: count &default=first;
};

type Outer: record {
	n: count &default=first;
	inner: Inner;
};

function needs(which: count): count
	{
	if ( which > 0 )
		{
		local outer: Outer;
		outer$n += which;
		return outer$n;
		}
	return 0;
	}

event zeek_init()
	{
	local before = Outer();
	first = 4;
	local after = Outer();
	print before$n, before$inner$n, after$n, after$inner$n;
	delete before$n;
	print before, after;
	print needs(0), needs(1);
	first = 5;
	print needs(1);
	}
#> 3, 3, 4, 4
#> [n=4, inner=[n=3]], [n=4, inner=[n=4]]
#> 0, 5
#> 6

event zeek_init() &priority=-1
	{
	local names: table[count] of string = { [1] = "one" } &default="none";
	print names[1], names[2];
	}
#> one, none
