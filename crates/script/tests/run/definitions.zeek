# Messages about a function name the location of its definition.
global twice: function(n: count): count;

function twice(n: count): count
	{
	return n * 2;
	}

event zeek_init()
	{
	print twice();
	}
#! error in tests/run/definitions.zeek, line 4 and tests/run/definitions.zeek, line 11: parameter mismatch (record { n:count; } and )
#! error in tests/run/definitions.zeek, line 11: argument type mismatch in function call (twice())
#= 1
