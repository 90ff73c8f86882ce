# Records, tables, sets, vectors, closures.
type Pair: record {
	a: count &default=7;
	b: string &optional;
	c: vector of count;
};

function counter(): function(): count
	{
	local n = 0;
	return function[n](): count { return ++n; };
	}

event zeek_done()
	{
	local casted = vector() as vector of string;
	casted += "one";
	print casted;
	local p = Pair($b="x");
	p$c += 1;
	p$c += 2;
	print p, p?$b, |p$c|;
	delete p$b;
	print p?$b;
	local q = copy(p);
	q$c[0] = 9;
	print p$c, q$c[0:1];
	local t: table[string, count] of string = { ["a", 1] = "one", ["b", 2] = "two" };
	t["c", 3] = "three";
	delete t["a", 1];
	print ["a", 1] in t, t["b", 2], |t|;
	for ( [s, n], v in t )
		print s, n, v;
	local u: table[count] of vector of count &default=vector();
	print u[3], 3 in u;
	local s1 = set(1, 2, 3) & set(2, 3, 4);
	print s1;
	local next_one = counter();
	next_one();
	print next_one(), counter()();
	print 10.1.2.3 in 10.0.0.0/8, /ab+/ in "xabb", "ell" in "hello", "hello"[1:3];
	switch ( |s1| )
		{
		case 2:
			print "two";
			fallthrough;
		case 3:
			print "fell";
			break;
		default:
			print "never";
			break;
		}
	print t["no", 1];
	}
#> [one]
#> [a=7, b=x, c=[1, 2]], T, 2
#> F
#> [1, 2], [9]
#> F, two, 2
#> b, 2, two
#> c, 3, three
#> [], F
#> {
#> 2,
#> 3
#> }
#> 2, 1
#> T, T, T, el
#> two
#> fell
#! expression error in tests/run/containers.zeek, line 54: no such index (t[no, 1])
