# A number that overflows leaves its field as if it were not given.
type Fields: record { x: count &default=7; y: int &default=-3; z: int &optional; };
global large: count = 18446744073709551615;
function made(n: count): Fields { return Fields($x=n, $y=n); }

event zeek_init() { print made(large), made(1); }
event zeek_init() { local r: Fields = [$x=1, $y=large, $z=2]; print r, r$y, r?$z; }
event zeek_init() { print Fields($x=2, $z=5 - 6 + large); print "on"; }
event zeek_init() { local v = vector(Fields($z=large)); print v, v[0]?$z; }
#> [x=18446744073709551615, y=-3, z=<uninitialized>], [x=1, y=1, z=<uninitialized>]
#> [x=1, y=-3, z=2], -3, T
#> [x=2, y=-3, z=<uninitialized>]
#> on
#> [[x=7, y=-3, z=<uninitialized>]], F
#! error in int and tests/run/overflowing_fields.zeek, line 4: overflow promoting from unsigned/double to signed arithmetic value (int and 18446744073709551615)
#! error in int and tests/run/overflowing_fields.zeek, line 7: overflow promoting from unsigned/double to signed arithmetic value (int and 18446744073709551615)
#! expression warning in tests/run/overflowing_fields.zeek, line 8: count underflow (5 - 6)
#! error in int and tests/run/overflowing_fields.zeek, line 8: overflow promoting from unsigned/double to signed arithmetic value (int and 18446744073709551614)
#! error in int and tests/run/overflowing_fields.zeek, line 9: overflow promoting from unsigned/double to signed arithmetic value (int and 18446744073709551615)
#! fatal error: errors occurred while initializing
#= 1
