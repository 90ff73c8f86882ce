# Casts between sets and vectors omit elements of other types; casts of addresses to vectors yield counts only.
event zeek_init() { local a: any = set(1, 2); print |(a as vector of count)|, a as vector of string; }
event zeek_init() { local a: any = vector(1, 1, 2); print |(a as set[count])|; }
event zeek_init() { local a: any = vector("one", "two"); print a as set[count]; }
event zeek_init() { local a: any = vector(-1000); print a as set[count]; }
event zeek_init() { local a: any = set([1, "a"]); print a as vector of count; }
event zeek_init() { local a: any = vector(1, 2); print a as set[count, string]; }
event zeek_init() { local a: any = 1.2.3.4; print a as vector of count; print a as vector of string; }
#> 2, []
#> 2
#> {
#>
#> }
#> {
#>
#> }
#> [16909060]
#! error in tests/run/wrong_elements.zeek, line 4: index type doesn't match table (one and list of count)
#! error in tests/run/wrong_elements.zeek, line 4: index type doesn't match table (two and list of count)
#! error in <no location> and tests/run/wrong_elements.zeek, line 5: index type doesn't match table (-1000 and list of count)
#! expression error in tests/run/wrong_elements.zeek, line 6: invalid cast of value with type 'set[count,string]' to type 'vector of count' (a as vector of count)
#! expression error in tests/run/wrong_elements.zeek, line 7: invalid cast of value with type 'vector of count' to type 'set[count,string]' (a as set[count,string])
#! expression error in tests/run/wrong_elements.zeek, line 8: invalid cast of value with type 'addr' to type 'vector of string' (a as vector of string)
#! fatal error: errors occurred while initializing
#= 1
