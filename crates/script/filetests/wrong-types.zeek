# stages: rich zeek
type R: record { note: count; };
global s: set[count] = { 1, "two" };
global n = 1 + "a";

function g(c: count): string
	{
	return c;
	}

event start()
	{
	local x: count = "abc";
	print g("a");
	local r: R;
	print r$nots;
	if ( |x| )
		print x;
	print undefined_name;
	}
