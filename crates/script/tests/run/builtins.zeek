# Built-in functions with arguments at the limits of their ranges.
global zfill: function(str: string, width: count): string;
global strcmp: function(s1: string, s2: string): int;
global to_port: function(s: string): port;
global mask_addr: function(a: addr, top_bits_to_keep: count): subnet;
global clear_table: function(v: any): any;
global to_count: function(str: string, base: count &default=10): count;
type transport_proto: enum { unknown_transport, tcp, udp, icmp };
global count_to_port: function(num: count, proto: transport_proto): port;
global lookup_ID: function(id: string): any;
type Kind: record { a: count; };
function nothing() { }

event zeek_done()
	{
	print zfill("-42", 5), zfill("7", 3), zfill("long", 2);
#> 00-42, 007, long
	print strcmp("a", "c"), strcmp("b", "a"), strcmp("ab", "a"), strcmp("a", "a");
#> -2, 1, 1, 0
	print to_port("80/tcp"), to_port("99999/tcp"), count_to_port(70000, udp);
#> 80/tcp, 0/tcp, 0/udp
#! warning: bad port number 99999
#! warning: bad port number 70000
	print mask_addr(10.1.2.3, 8), mask_addr(10.1.2.3, 40);
#> 10.0.0.0/8, ::/0
#! error: Bad IPAddr(v4) IPPrefix length : 40
	local t = table([1] = 2);
	print "cleared", clear_table(t);
	print |t|;
#> 0
	print lookup_ID("Kind"), lookup_ID("missing");
#> <no ID value>, <unknown id>
	print nothing;
#> nothing: function() : void
#> ;
	local text = "a\x01\xff\n";
	print to_count(text);
#> 0
#! error in tests/run/builtins.zeek, line 37 and tests/run/builtins.zeek, line 36: bad conversion to count (to_count(text, 10) and a\x01\xff\x0a)
	}
