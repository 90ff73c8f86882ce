# A string with a NUL is an error where a C string is needed, and is replaced by another text.
global to_count: function(str: string, base: count &default=10): count;
global to_int: function(str: string, base: count &default=10): int;
global to_double: function(str: string): double;
global to_port: function(s: string): port;
global fmt: function(va_args: any): string;
global is_num: function(str: string): bool;
global cat_sep: function(va_args: any): string;
global ljust: function(str: string, width: count, fill: string &default=" "): string;
global strftime: function(fmt: string, t: time): string;
global double_to_time: function(d: double): time;
global getenv: function(var: string): string;
global file_size: function(f: string): double;
global has_event_group: function(group: string): bool;

event zeek_init() { print to_count("1\x002"), to_int("1\x002"), to_double("1\x002"), to_port("80\x00"); }
event zeek_init() { print fmt("%5s|%-5s|", "x\x00y", "x\x00y"); }
event zeek_init() { print is_num("1\x002"), ljust("a", 3, "\x00"), cat_sep("\x00", "", 1, 2); }
event zeek_init() { print strftime("%Y\x00", double_to_time(0.0)), getenv("a\x00b"), file_size("a\x00b"), has_event_group("a\x00b"); }
# The string to find is a C string; the string to search is not.
event zeek_init() { print "b" in "a\x00b", "\x00b" in "a\x00b", "x" in "a\x00b"; }
event zeek_init() { local s = "a\x00b"; print s == "a\x00b", s in set("a\x00b"), |s + "\x00"|, s < "a\x00c"; }
event zeek_init() { local a: any = "1\x00"; print a as count; }
event zeek_init() { assert F, "a\x00b"; }
#> 0, 0, 0.0, 0/unknown
#>     x\x00y|x\x00y  |
#> F, a<<, 1<string-with-NUL>2
#> <string-with-NUL>, , -1.0, F
#> T, F, F
#> T, T, 4, T
#! error: string with embedded NUL: "1\x002"
#! error in tests/run/strings_of_c.zeek, line 16: bad conversion to count (to_count(1\x002, 10) and 1\x002)
#! error: string with embedded NUL: "1\x002"
#! error in tests/run/strings_of_c.zeek, line 16: bad conversion to integer (to_int(1\x002, 10) and 1\x002)
#! error: string with embedded NUL: "1\x002"
#! error in tests/run/strings_of_c.zeek, line 16: bad conversion to double (to_double(1\x002) and 1\x002)
#! error: string with embedded NUL: "80\x00"
#! error in tests/run/strings_of_c.zeek, line 16: wrong port format, must be /[0-9]{1,5}\/(tcp|udp|icmp)/ (to_port(80\x00))
#! error: string with embedded NUL: "1\x002"
#! error: string with embedded NUL: "\x00"
#! error: string with embedded NUL: "\x00"
#! error: string with embedded NUL: "%Y\x00"
#! error: string with embedded NUL: "a\x00b"
#! error: string with embedded NUL: "a\x00b"
#! error: string with embedded NUL: "a\x00b"
#! error: string with embedded NUL: "\x00b"
#! error: string with embedded NUL: "1\x00"
#! error in tests/run/strings_of_c.zeek, line 23: bad conversion to count (1\x00)
#! expression error in tests/run/strings_of_c.zeek, line 23: invalid cast of value with type 'string' to type 'count' (a as count)
#! error: string with embedded NUL: "a\x00b"
#! error in tests/run/strings_of_c.zeek, line 24: assertion failure: F (<string-with-NUL>)
#! fatal error: errors occurred while initializing
#= 1
