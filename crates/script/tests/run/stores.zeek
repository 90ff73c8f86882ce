# A Broker store in memory, opened by name.
module Broker;

export {
	type BackendType: enum { MEMORY, SQLITE };
	global __create_master: function(id: string, b: BackendType, options: count): opaque of Broker::Store;
	global __is_closed: function(h: opaque of Broker::Store): bool;
	global __close: function(h: opaque of Broker::Store): bool;
	global __store_name: function(h: opaque of Broker::Store): string;
}

event zeek_init()
	{
	local store = __create_master("hosts", MEMORY, 0);
	print __is_closed(store), __store_name(__create_master("hosts", MEMORY, 0));
	print __close(store), __is_closed(store);
	}

#> F, hosts
#> T, T
