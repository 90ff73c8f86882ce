# stages: zeek
type Kind: enum { FIRST, SECOND };
global c: count = 1;
global counts: vector of count = vector(1, 2);
global flags: vector of bool = vector(T, F);
global net: subnet = 10.0.0.0/8;
global unknown: any = 5;
global host: addr = 1.2.3.4;
global when_: time;

function add_vector(): any { return c + counts; }
function multiply_vector(): any { return counts * c; }
function compare_vector(): any { return c < counts; }
function equal_vector(): any { return c == counts; }
function and_vector(): any { return T && flags; }
function shift_vector(): any { return c << flags; }
function not_vector(): any { return !flags; }
function complement_vector(): any { return ~counts; }
function mask_by_string(): any { return host / "8"; }
function net_in_net(): any { return 10.1.0.0/16 in net; }
function equal_any(): any { return unknown == 5; }
function index_any(): any { return unknown[0]; }
function pattern_in_addr(): any { return /a/ in host; }
function add_bool() { c += T; }
function subtract_string() { c -= "a"; }
function add_vector_to() { c += counts; }
function add_to_time() { when_ += 1sec; }
function assign_type() { Kind = FIRST; }
function assign_function() { add_bool = add_bool; }
function raise_function() { event add_bool(); }
