# Prometheus reserves the suffix of the names of counters.
module Telemetry;
export {
	global __counter_family: function(prefix: string, name: string, labels: vector of string,
	    helptext: string, unit: string): opaque of counter_metric_family;
}
module GLOBAL;

event zeek_init()
	{
	Telemetry::__counter_family("a", "requests.seen", vector(), "", "1");
	print "begun";
	Telemetry::__counter_family("a", "requests_total", vector(), "", "1");
	print "not reached";
	}
#> begun
#! fatal error: Metric names cannot end with '_total'
#= 1
