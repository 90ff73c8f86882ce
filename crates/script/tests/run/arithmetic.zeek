# Numbers, comparisons and jumps.
function gcd(a: count, b: count): count
	{
	while ( b != 0 )
		{
		local rest = a % b;
		a = b;
		b = rest;
		}
	return a;
	}

event zeek_done()
	{
	print gcd(84, 36), 7 / 2, 7.0 / 2, 3 * 5 - 1, -3 + 1;
	local i = 0;
	local sum = 0;
	while ( T )
		{
		if ( ++i > 10 )
			break;
		if ( i % 2 == 0 || i == 5 )
			next;
		sum += i;
		}
	print i, sum;
	local x: int = -4;
	print x < -3 && ! (x == 4), 1 << 4 | 3, 6 & 3, 6 ^ 3, ~0 == 18446744073709551615;
	print 5 > 3 ? "yes" : "no", |x|, 10 sec + 1 min, 3 hrs / 2;
	print 1 / (sum - sum);
	}

event zeek_done() &priority=-1
	{
	print "the next body still runs";
	}
#> 12, 3, 3.5, 14, -2
#> 11, 20
#> T, 19, 2, 5, T
#> yes, 4, 1.0 min 10.0 secs, 1.0 hr 30.0 mins
#> the next body still runs
#! expression error in tests/run/arithmetic.zeek, line 30: division by zero (1 / (sum - sum))
