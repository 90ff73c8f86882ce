##! What this script is for.

global get_identifier_comments: function(name: string): string;
global get_record_field_comments: function(name: string): string;
global get_script_comments: function(name: string): string;

module Documented;

export {
	## What happened.
	type Info: record {
		## When it happened,
		## in seconds.
		ts: time;
		name: string;	##< What it is called.
		plain: count;
	};

	## How often.
	const often = 3;
}

redef record Info += {
	## Added later.
	added: bool &default=F;
};

event zeek_init()
	{
	print get_identifier_comments("Documented::Info");
	print get_identifier_comments("Documented::often");
	print get_identifier_comments("Documented::missing") == "";
	print get_record_field_comments("Documented::Info$ts");
	print get_record_field_comments("Documented::Info$name");
	print get_record_field_comments("Documented::Info$plain") == "";
	print get_record_field_comments("Documented::Info$added");
	print get_record_field_comments("Documented::Info") == "";
	print get_script_comments("tests/run/documentation.zeek");
	}

#> What happened.
#> How often.
#> T
#> When it happened,\x0ain seconds.
#> What it is called.
#> T
#> Added later.
#> T
#> What this script is for.
