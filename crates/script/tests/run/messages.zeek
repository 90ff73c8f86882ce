# Broker::Data: its text, its types, and opaque values in it.
module Broker;

export {
	type Data: record {
		data: opaque of Broker::Data &optional;
	};
	global __data: function(d: any): Broker::Data;
}

module GLOBAL;

type Kind: enum { One, Two };
type Pair: record { a: count; b: string &optional; };
global md5_hash_init: function(): opaque of md5;
global md5_hash_update: function(handle: opaque of md5, data: string): bool;
global md5_hash_finish: function(handle: opaque of md5): string;

event zeek_init()
	{
	print Broker::__data(1), Broker::__data(-2), Broker::__data(T), Broker::__data(2.5), Broker::__data(1.5sec), Broker::__data("x"), Broker::__data(Two);
	print Broker::__data(1.2.3.4), Broker::__data([fe80::1]), Broker::__data(10.0.0.0/8), Broker::__data([fe80::]/10), Broker::__data(53/udp);
	print Broker::__data(set(2, 1)), Broker::__data(vector("a", "b")), Broker::__data(table([1] = "x")), Broker::__data(Pair($a=1)), Broker::__data(/x/);
	local five: any = Broker::__data(5);
	print five is count, five is string, five as count;
	local hash = md5_hash_init();
	md5_hash_update(hash, "a");
	local carried = Broker::__data(hash);
	md5_hash_update(hash, "b");
	print carried, md5_hash_finish(carried as opaque of md5), md5_hash_finish(hash);
	}

#> [data=broker::data{1}], [data=broker::data{-2}], [data=broker::data{T}], [data=broker::data{2.500000}], [data=broker::data{1500000000ns}], [data=broker::data{x}], [data=broker::data{Two}]
#> [data=broker::data{1.2.3.4}], [data=broker::data{fe80::1}], [data=broker::data{10.0.0.0/8}], [data=broker::data{fe80::/10}], [data=broker::data{53/udp}]
#> [data=broker::data{{1, 2}}], [data=broker::data{(a, b)}], [data=broker::data{{1 -> x}}], [data=broker::data{(1, nil)}], [data=broker::data{(^?(x)$?, ^?(.|\n)*(x))}]
#> T, F, 5
#> [data=broker::data{(opaque)}], 0cc175b9c0f1b6a831c399e269772661, 187ef4436122d1cc2f40dc2b92f0eba0
