# Keys of type double are compared by their bits; a count of more than 63 bits is an index from the end.
type Doubles: set[double];
type Intervals: set[interval];

event zeek_init() { local minus = 0.0 * -1.0; print minus == 0.0, minus in Doubles(0.0), |Doubles(minus, 0.0)|, Doubles(minus) == Doubles(0.0); }
event zeek_init() { print (0 sec * -1.0) in Intervals(0 sec), 0 sec in Intervals(0 sec); }
event zeek_init() { local v = vector(1, 2, 3); local n = 18446744073709551615; print v[n], v[~1], v[1:n], |v[0:~0]|; }
event zeek_init() { local v = vector(1, 2, 3); print v[~3]; }
event zeek_init() { local v = vector(1); print v[-(5)]; }
#> T, F, 2, F
#> F, T
#> 3, 2, [2], 2
#! expression error in tests/run/keys.zeek, line 8: no such index (v[~3])
#! expression error in tests/run/keys.zeek, line 9: no such index (v[-5])
#! fatal error: errors occurred while initializing
#= 1
