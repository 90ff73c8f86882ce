# A call that is nested too deeply ends the calling body; hooks continue with their other bodies.
global deep: hook(n: count);
hook deep(n: count) &priority=5 { hook deep(n + 1); }
hook deep(n: count) { if ( n < 3 || n > 998 ) print n; }
event zeek_init() { print hook deep(1); }
type Again: function(n: count): count;
global again: Again;
event zeek_init() { again = function(n: count): count { return again(n + 1); }; print again(1); }
#> 999
#> 2
#> 1
#> T
#! runtime error in tests/run/too_deep.zeek, line 2: maximum recursion depth 1000 exceeded
#! runtime error in <no location>: maximum recursion depth 1000 exceeded
#! fatal error: errors occurred while initializing
#= 1
