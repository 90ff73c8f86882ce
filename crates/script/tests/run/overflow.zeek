# A number that overflows its type ends its statement only.
function give(d: double): count
	{
	local c: count = d;
	print "behind";
	return 5;
	}

event zeek_done()
	{
	local d = -1.0;
	local kept: count = 7;
	print "begin";
	kept = d;
	print kept;
	local unset: count = d;
	print "unset";
	print give(d), "not printed";
	local r = give(2.0);
	print r;
	local v: vector of count = vector();
	for ( i in vector(1, 2) )
		v += d;
	print |v|;
	while ( kept < 9 )
		{
		++kept;
		local n: count = d;
		}
	print kept;
	}
#> begin
#> 7
#> unset
#> behind
#> 5, not printed
#> behind
#> 5
#> 0
#> 9
#! warning in tests/run/overflow.zeek, line 4: dangerous assignment of double to integral (c = d)
#! warning in tests/run/overflow.zeek, line 14: dangerous assignment of double to integral (kept = d)
#! warning in tests/run/overflow.zeek, line 16: dangerous assignment of double to integral (unset = d)
#! warning in tests/run/overflow.zeek, line 28: dangerous assignment of double to integral (n = d)
#! error in count and tests/run/overflow.zeek, line 14: overflow promoting from signed/double to unsigned arithmetic value (count and -1.0)
#! error in count and tests/run/overflow.zeek, line 16: overflow promoting from signed/double to unsigned arithmetic value (count and -1.0)
#! error in count and tests/run/overflow.zeek, line 4: overflow promoting from signed/double to unsigned arithmetic value (count and -1.0)
#! error in count and tests/run/overflow.zeek, line 23: overflow promoting from signed/double to unsigned arithmetic value (count and -1.0)
#! error in count and tests/run/overflow.zeek, line 23: overflow promoting from signed/double to unsigned arithmetic value (count and -1.0)
#! error in count and tests/run/overflow.zeek, line 28: overflow promoting from signed/double to unsigned arithmetic value (count and -1.0)
#! error in count and tests/run/overflow.zeek, line 28: overflow promoting from signed/double to unsigned arithmetic value (count and -1.0)
