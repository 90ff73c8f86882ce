# stages: ast types code
type R: record { a: count; b: string &default="x"; };

function sum(v: vector of count): count
	{
	local s = 0;
	for ( i, x in v )
		if ( x > 2 )
			s += x;
	return s;
	}

event start(n: int) &priority=5
	{
	local r = R($a=1);
	print sum(vector(1, 2, 3)), r$b, n + r$a;
	}
