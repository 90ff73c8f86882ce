# A store of the Broker framework that asks for a database works in memory, and says so.
module Broker;

export {
	type BackendType: enum { MEMORY, SQLITE };
	global __create_master: function(id: string, b: BackendType, options: count): opaque of Broker::Store;
	global __is_closed: function(h: opaque of Broker::Store): bool;
}

event zeek_init()
	{
	local name = "hosts";
	local kind = SQLITE;
	local none = 0;
	local store = __create_master(name, kind, none);
	print __is_closed(store);
	print __is_closed(__create_master("others", MEMORY, none));
	}

#! warning in tests/run/stores.zeek, line 15: Broker store 'hosts' is kept in memory: its database is neither read nor written (Broker::__create_master(Broker::name, Broker::kind, Broker::none))
#> F
#> F
