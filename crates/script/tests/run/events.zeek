# The order of events, hooks, schedule and when.
global seen: set[string] = set();

event second(n: count)
	{
	print "second", n;
	}

event first(n: count) &priority=5
	{
	print "first, early", n;
	event second(n + 1);
	}

event first(n: count)
	{
	n = 100;
	print "first, late", n;
	}

hook check(s: string)
	{
	print "check", s;
	if ( s == "bad" )
		break;
	}

hook check(s: string) &priority=-5
	{
	print "check, later", s;
	}

event late()
	{
	print "late", "x" in seen;
	}

event zeek_init()
	{
	schedule 1 hr { late() };
	when ( "x" in seen )
		print "x was added";
	event first(1);
	event second(10);
	print hook check("good"), hook check("bad");
	add seen["x"];
	print "end of zeek_init";
	}
#> check, good
#> check, later, good
#> check, bad
#> T, F
#> end of zeek_init
#> first, early, 1
#> first, late, 100
#> second, 10
#> x was added
#> second, 2
#> late, T
