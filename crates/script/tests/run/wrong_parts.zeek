# Errors that follow from an erroneous part of an expression.
global t: table[count] of string;
global v: vector of count;
function f(a: count): count { return a; }
event e(a: count) { }
event zeek_init()
	{
	f(1 + "a");
	event e(1 + "a");
	print t[1 + "a"], v[1 + "a"], "abc"[1 + "a"], v["a":2], "abc"["a":2];
	print [1, 1 + "a"] in t;
	switch 1 + "a" { case 1: break; }
	for ( x in 1 + "a" ) print x;
	assert 1 + "a";
	}
#! error in tests/run/wrong_parts.zeek, line 8: requires arithmetic operands (1 + a)
#! error in count and tests/run/wrong_parts.zeek, line 8: arithmetic mixed with non-arithmetic (count and 1 + a)
#! error in tests/run/wrong_parts.zeek, line 8 and count: type mismatch (1 + a and count)
#! error in tests/run/wrong_parts.zeek, line 8: argument type mismatch in function call (f(1 + a))
#! error in tests/run/wrong_parts.zeek, line 9: requires arithmetic operands (1 + a)
#! error in count and tests/run/wrong_parts.zeek, line 9: arithmetic mixed with non-arithmetic (count and 1 + a)
#! error in tests/run/wrong_parts.zeek, line 9 and count: type mismatch (1 + a and count)
#! error in tests/run/wrong_parts.zeek, line 9: argument type mismatch in event invocation (e(1 + a))
#! error in tests/run/wrong_parts.zeek, line 10: requires arithmetic operands (1 + a)
#! error in count and tests/run/wrong_parts.zeek, line 10: arithmetic mixed with non-arithmetic (count and 1 + a)
#! error in tests/run/wrong_parts.zeek, line 10 and count: type mismatch (1 + a and count)
#! error in tests/run/wrong_parts.zeek, line 10: expression with type 'table' is not a type that can be indexed (t[1 + a])
#! error in tests/run/wrong_parts.zeek, line 10: requires arithmetic operands (1 + a)
#! error in tests/run/wrong_parts.zeek, line 10: expression with type 'vector' is not a type that can be indexed (v[1 + a])
#! error in tests/run/wrong_parts.zeek, line 10: requires arithmetic operands (1 + a)
#! error in int and tests/run/wrong_parts.zeek, line 10: arithmetic mixed with non-arithmetic (int and 1 + a)
#! error in tests/run/wrong_parts.zeek, line 10 and int: type mismatch (1 + a and int)
#! error in tests/run/wrong_parts.zeek, line 10: expression with type 'string' is not a type that can be indexed (abc[1 + a])
#! error in tests/run/wrong_parts.zeek, line 10: slice notation must have integral values as indexes
#! error in tests/run/wrong_parts.zeek, line 10: slice notation must have integral values as indexes
#! error in int and tests/run/wrong_parts.zeek, line 10: arithmetic mixed with non-arithmetic (int and a)
#! error in tests/run/wrong_parts.zeek, line 10 and int: type mismatch (a and int)
#! error in tests/run/wrong_parts.zeek, line 10: expression with type 'string' is not a type that can be indexed (abc[a, 2])
#! error in tests/run/wrong_parts.zeek, line 11: requires arithmetic operands (1 + a)
#! error in tests/run/wrong_parts.zeek, line 2 and tests/run/wrong_parts.zeek, line 11: indexing mismatch (list of count and 1, 1 + a)
#! error in tests/run/wrong_parts.zeek, line 11: not an index type (1, 1 + a in t)
#! error in tests/run/wrong_parts.zeek, line 12: requires arithmetic operands (1 + a)
#! error in tests/run/wrong_parts.zeek, line 12: switch expression must be of an atomic type when cases are expressions (1 + a)
#! error in tests/run/wrong_parts.zeek, line 12: case expression type differs from switch type (1 and 1 + a)
#! error in tests/run/wrong_parts.zeek, line 13: requires arithmetic operands (1 + a)
#! error in tests/run/wrong_parts.zeek, line 13: target to iterate over must be a table, set, vector, or string (1 + a)
#! error in tests/run/wrong_parts.zeek, line 13: undeclared variable (x)
#! error in tests/run/wrong_parts.zeek, line 14: requires arithmetic operands (1 + a)
#! error in tests/run/wrong_parts.zeek, line 14: conditional must be boolean (1 + a)
#= 1
