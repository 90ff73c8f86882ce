# Errors in casts of computed values have no location; numbers are rounded and shifted as processors do it.
function negative(x: int): int { return x - 10; }
function joined(x: string): string { return x + "y"; }
global large = 18446744073709551615;
event zeek_init() { print negative(5) as count; }
event zeek_init() { print joined("x") as count; }
event zeek_init() { local n: int = -2000; print n as count; }
event zeek_init() { print large as int; }
event zeek_init() { local d = -1.5; print d as count; }
event zeek_init() { print "80/TCP" as port; }
event zeek_init() { local d = 1e30; print d as count, d as int; }
event zeek_init() { local n = 70; local i: int = -5; print 1 << n, 1 << 64, 1 >> 65, i >> n, i >> 64; }
#> 9223372036854775808, -9223372036854775808
#> 64, 1, 0, -1, -5
#! error in <no location>: bad conversion to count (-5)
#! expression error in tests/run/wrong_casts.zeek, line 5: invalid cast of value with type 'int' to type 'count' (negative((coerce 5 to int)) as count)
#! error in <no location>: bad conversion to count (xy)
#! expression error in tests/run/wrong_casts.zeek, line 6: invalid cast of value with type 'string' to type 'count' (joined(x) as count)
#! error in tests/run/wrong_casts.zeek, line 7: bad conversion to count (-2000)
#! expression error in tests/run/wrong_casts.zeek, line 7: invalid cast of value with type 'int' to type 'count' (n as count)
#! error in tests/run/wrong_casts.zeek, line 4: overflow converting count to int (18446744073709551615)
#! expression error in tests/run/wrong_casts.zeek, line 8: invalid cast of value with type 'count' to type 'int' (large as int)
#! error in tests/run/wrong_casts.zeek, line 9: bad conversion to count (-1.5)
#! expression error in tests/run/wrong_casts.zeek, line 9: invalid cast of value with type 'double' to type 'count' (d as count)
#! expression error in tests/run/wrong_casts.zeek, line 10: invalid cast of value with type 'string' to type 'port' (80/TCP as port)
#! fatal error: errors occurred while initializing
#= 1
