# Local containers and records at file level are unset until they are assigned.
local count_of: table[string] of count = table();
local made = set("a");
count_of["a"] = 1;
print count_of, made;
local nothing: table[string] of count;
nothing["a"] = 1;
print nothing;
#> {
#> [a] = 1
#> }, {
#> a
#> }
#! expression error in tests/run/file_level.zeek, line 7: value used but not set (nothing)
#! fatal error: failed to execute script statements at top-level scope
#= 1
