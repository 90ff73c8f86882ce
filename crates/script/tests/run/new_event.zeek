# new_event runs before the bodies of each event, with generate_all_events also for events without bodies.
type call_argument: record {
	name: string;
	type_name: string;
	default_val: any &optional;
	value: any &optional;
};
type call_argument_vector: vector of call_argument;
global generate_all_events: function(): bool;
global new_event: event(name: string, args: call_argument_vector);
global unhandled: event(what: string);
global seen: table[string] of count &default=0;

module Test;

export {
	global named: event(a: addr, n: vector of count);
}

event named(address: addr, numbers: vector of count)
	{
	print "body", address, numbers;
	}

event new_event(name: string, args: call_argument_vector)
	{
	++seen[name];
	if ( seen[name] > 1 )
		return;
	print name, |args|;
	for ( i in args )
		print args[i]$name, args[i]$type_name, args[i]?$default_val, args[i]$value;
	}

event tick(n: count)
	{
	}

event zeek_done()
	{
	print seen["tick"];
	}

event zeek_init()
	{
	event named(192.0.2.1, vector(1, 2));
	event unhandled("not seen");
	local n = 0;
	while ( n < 100000 )
		event tick(++n);
	print generate_all_events();
	event unhandled("seen");
	}
#> zeek_init, 0
#> T
#> Test::named, 2
#> a, addr, F, 192.0.2.1
#> n, vector of count, F, [1, 2]
#> body, 192.0.2.1, [1, 2]
#> tick, 1
#> n, count, F, 1
#> unhandled, 1
#> what, string, F, seen
#> zeek_done, 0
#> 100000
