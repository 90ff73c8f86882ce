# An error about a string names the location of its literal if the string is unchanged; numbers are passed as new values.
global to_addr: function(ip: string): addr;
global cat: function(va_args: any): string;
global count_to_v4_addr: function(ip: count): addr;
global given = "given";
global large = 4294967296;
function kept(s: string): string { return s; }

event zeek_init() { to_addr(given); to_addr(kept(given)); local s = given; to_addr(s); }
event zeek_init() { to_addr(cat(given)); to_addr(copy(given)); to_addr(given + ""); }
event zeek_init() { for ( key in set("given") ) to_addr(key); }
event zeek_init() { count_to_v4_addr(large); }
#! error in tests/run/origins.zeek, line 9 and tests/run/origins.zeek, line 5: failed converting string to IP address (to_addr(given) and given)
#! error in tests/run/origins.zeek, line 9 and tests/run/origins.zeek, line 5: failed converting string to IP address (to_addr(kept(given)) and given)
#! error in tests/run/origins.zeek, line 9 and tests/run/origins.zeek, line 5: failed converting string to IP address (to_addr(s) and given)
#! error in tests/run/origins.zeek, line 10: failed converting string to IP address (to_addr(cat(given)) and given)
#! error in tests/run/origins.zeek, line 10: failed converting string to IP address (to_addr((*)given) and given)
#! error in tests/run/origins.zeek, line 10: failed converting string to IP address (to_addr(given + ) and given)
#! error in tests/run/origins.zeek, line 11: failed converting string to IP address (to_addr(key) and given)
#! error in tests/run/origins.zeek, line 12: conversion of non-IPv4 count to addr (count_to_v4_addr(large) and 4294967296)
#! fatal error: errors occurred while initializing
#= 1
