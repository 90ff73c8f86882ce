# Names that a module does not export are private to it, also in definitions and redefinitions.
module Inner;
global seen: event(n: count);
global twice: function(n: count): count;
global allowed: hook(n: count);
const most = 5 &redef;
option level = 1;

module Outer;
event Inner::seen(n: count) { }
function Inner::twice(n: count): count { return n * 2; }
hook Inner::allowed(n: count) { }
redef Inner::most = 6;
redef Inner::level = 2;
#! error in tests/run/private.zeek, line 10: identifier is not exported: Inner::seen
#! error in tests/run/private.zeek, line 11: identifier is not exported: Inner::twice
#! error in tests/run/private.zeek, line 12: identifier is not exported: Inner::allowed
#! error in tests/run/private.zeek, line 13: identifier is not exported: Inner::most
#! error in tests/run/private.zeek, line 14: identifier is not exported: Inner::level
#= 1
