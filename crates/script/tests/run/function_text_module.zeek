# The text of functions in a module: names of loop variables, including `_`.
module Foo;

function f(t: table[count, string] of count, u: table[count] of count)
	{
	for ( [_, s], v in t )
		print s;
	for ( [_], v in u )
		print v;
	for ( k, _ in u )
		print k;
	for ( _ in u )
		print 1;
	}

event zeek_done() { print f; }
#> Foo::f: function(t:table[count,string] of count, u:table[count] of count) : void
#> { 
#> for ([Foo::_Foo::s,], Foo::v in Foo::t) 
#> print Foo::s;
#>
#> for ([Foo::_], Foo::v in Foo::u) 
#> print Foo::v;
#>
#> for ([Foo::k] in Foo::u) 
#> print Foo::k;
#>
#> for ([Foo::_] in Foo::u) 
#> print 1;
#>
#> }
