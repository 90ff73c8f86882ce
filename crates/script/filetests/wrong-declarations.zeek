# stages: zeek
type Twice: enum { A = 1, B = 1 };
type Both: record { a: count &default=1 &optional; };
type Shown: record { a: pattern &log; };
global files: table[file] of count;
global digests: set[opaque of md5];
global repeated = [$a=1, $a=2];
function outer(a: count)
	{
	local b = 1;
	local f = function(b: count): count { return b; };
	local g = function(a: count): count { return a; };
	for ( i in vector(1, 2) )
		{ }
	print i;
	}
function other(a: count): count { return a; }
global other: function(a: string): count;
type Mixed: enum { FIRST = 10, SECOND, THIRD = 20 };
