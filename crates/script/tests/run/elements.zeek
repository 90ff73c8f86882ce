# A vector accepts only its own element type when a function has it as a vector of any; closures are copied with a table.
global to_count: function(str: string, base: count &default=10): count;

function put(v: vector of any, x: any)
	{
	v[|v|] = x;
	print "put";
	}

function append(v: vector of any, w: vector of any)
	{
	v += w;
	print "appended", |v|;
	}

event zeek_done() &priority=2
	{
	local texts: vector of string;
	put(texts, "a");
	put(texts, 3);
	print "not reached";
	}

event zeek_done() &priority=1
	{
	local any_texts: vector of any;
	any_texts += "a";
	any_texts += 3;
	local texts: vector of string;
	texts += any_texts;
	print texts;
	local h = 3;
	local m: table[count] of count = table() &default=function[h](i: count): count { return h += i; };
	print m[1];
	local n = copy(m);
	print m[1], n[10], m[1];
	}
#> put
#> []
#> 4
#> 5, 14, 6
#! runtime error in tests/run/elements.zeek, line 6: vector index assignment failed for invalid type 'count', value: 3, expression: v[sizeof v], call stack: | #0 put([a], 3) at tests/run/elements.zeek:20 | #1 zeek_done() |
#! error in tests/run/elements.zeek, line 30: incompatible vector element assignment (texts += any_texts and [a, 3])
