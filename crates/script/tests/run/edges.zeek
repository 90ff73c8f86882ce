# Numbers outside of the range of built-in functions, and empty collections.
global mask_addr: function(a: addr, top_bits_to_keep: count): subnet;
global remask_addr: function(a1: addr, a2: addr, top_bits_from_a1: count): addr;
global count_to_v4_addr: function(ip: count): addr;
global to_count: function(str: string, base: count &default=10): count;
global double_to_int: function(d: double): int;
global double_to_count: function(d: double): count;
global topk_init: function(size: count): opaque of topk;
global topk_get_top: function(handle: opaque of topk, k: count): any;
global is_valid_base64: function(s: string, a: string &default=""): bool;

event zeek_done() { print mask_addr(1.2.3.4, 272), remask_addr(1.2.3.4, 5.6.7.8, 200), count_to_v4_addr(4294967296); }
event zeek_done() { print to_count("1", 37), double_to_int(1e30), double_to_count(1e30), is_valid_base64("", "{}"); }
event zeek_done() { print topk_get_top(topk_init(3), 1); }
#> 1.2.0.0/16, 5.6.7.12, 0.0.0.0
#> 0, -9223372036854775808, 9223372036854775808, F
#! error: Bad IPAddr::Mask value 200
#! error: Bad IPAddr::ReverseMask value 200
#! error in tests/run/edges.zeek, line 12: conversion of non-IPv4 count to addr (count_to_v4_addr(4294967296) and 4294967296)
#! error in tests/run/edges.zeek, line 13: bad conversion to count (to_count(1, 37) and 1)
#! error: Cannot return topk of empty
