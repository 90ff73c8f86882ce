# Text after a newline is indented, unless it is a string, a double, a time or an interval other than 0 secs.
global cat: function(va_args: any): string;
global print_raw: function(va_args: any): bool;
type Table: table[string] of count;
type Strings: set[string];
type Nested: table[string] of Table;

event zeek_init() { print_raw(cat(Table(["a\n"] = 1)), "\n"); }
event zeek_init() { print_raw(cat(Nested(["a\n"] = Table(["b\n"] = 2))), "\n"); }
event zeek_init() { print_raw(cat(set(["a\n", "b\n"])), cat(Strings("")), cat(Strings("c\n")), "\n"); }
event zeek_init() { print_raw(cat(set(1.5)), cat(set(1 sec)), cat(set(0 sec)), cat(set(2)), cat(table([1] = set(2.5))), "\n"); }
#> {
#> 	[a
#> 	] = 1
#> }
#> {
#> 	[a
#> 	] = {
#> 		[b
#> 		] = 2
#> 	}
#> }
#> {
#> 	[a
#> 	, b
#> 	]
#> }{
#>
#> }{
#> c
#>
#> }
#> {
#> 1.5
#> }{
#> 1.0 sec
#> }{
#> 	0 secs
#> }{
#> 	2
#> }{
#> 	[1] = {
#> 2.5
#> 	}
#> }
