# Of the change handlers of an option with the same priority, the last registered runs first.
module Option;
export {
	global set_change_handler: function(ID: string, on_change: any, priority: int &default=0): bool;
	global Option::set: function(ID: string, val: any, location: string &default=""): bool;
}
module GLOBAL;

option level = 1;

function add_one(id: string, value: count): count
	{
	print "add one", value;
	return value + 1;
	}

function twice(id: string, value: count): count
	{
	print "twice", value;
	return value * 2;
	}

function show(id: string, value: count): count
	{
	print "show", value;
	return value;
	}

event zeek_init()
	{
	Option::set_change_handler("level", add_one);
	Option::set_change_handler("level", twice);
	Option::set_change_handler("level", show, 5);
	Option::set("level", 5);
	print level;
	}
#> show, 5
#> twice, 5
#> add one, 10
#> 11
