# stages: rich
module M;

global late: event(n: count);

function cat(n: count): string
	{
	local unused = 3;
	local _ignored = 3;
	local read = 5;

	if ( n > read )
		{
		return "a";
		print "never";
		}

	for ( i in vector(1, 2) )
		{
		next;
		n = i;
		}

	# gannet: allow(unused-local)
	local allowed = 1;
	event late(3);
	return "b";
	}

function outer(): count
	{
	local x = 1;
	local f = function [x] (y: count): count { local z = y; return x; };
	local g = function (w: count): count { return w; };
	return f(1) + g(2);
	}
