# Sampling of weirds follows the current options of scripts, not their initial values.
module Weird;
export {
	option sampling_whitelist: set[string] = {};
	option sampling_global_list: set[string] = {};
	option sampling_rate = 1000;
	option sampling_threshold = 25;
	option sampling_duration = 10min;
}

module Reporter;
export {
	global net_weird: function(name: string, addl: string &default="", source: string &default=""): bool;
	global get_weird_sampling_threshold: function(): count;
	global set_weird_sampling_threshold: function(threshold: count): bool;
	global set_weird_sampling_rate: function(rate: count): bool;
	global get_weird_sampling_whitelist: function(): set[string];
	global set_weird_sampling_whitelist: function(whitelist: set[string]): bool;
}

module GLOBAL;
global fmt: function(va_args: any): string;
global net_weird: event(name: string, addl: string, source: string);
event net_weird(name: string, addl: string, source: string) { print name, addl; }

event zeek_init()
	{
	Reporter::set_weird_sampling_threshold(2);
	Reporter::set_weird_sampling_rate(3);
	local always = set("always");
	Reporter::set_weird_sampling_whitelist(always);
	add always["often"];
	print Reporter::get_weird_sampling_threshold(), Reporter::get_weird_sampling_whitelist();
#> 2, {
#> always
#> }
	for ( i in vector(0, 1, 2, 3, 4) )
		{
		Reporter::net_weird("often", fmt("%d", i));
		if ( i > 2 )
			Reporter::net_weird("always", fmt("%d", i));
		}
#> often, 0
#> often, 1
#> always, 3
#> often, 4
#> always, 4
	}
