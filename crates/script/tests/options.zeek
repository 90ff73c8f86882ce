# Options that a file sets have their own types.
module Input;
export {
	type Event: enum { EVENT_NEW = 0, EVENT_CHANGED = 1, EVENT_REMOVED = 2 };
	type Mode: enum { MANUAL = 0, REREAD = 1, STREAM = 2 };
	type Reader: enum { READER_CONFIG };
	type TableDescription: record {
		source: string;
		reader: Reader;
		mode: Mode;
		name: string;
		destination: any;
		idx: any;
		val: any &optional;
		want_record: bool;
		ev: any &optional;
		pred: function(typ: Input::Event, left: any, right: any): bool &optional;
		error_ev: any &optional;
		config: table[string] of string &default=table();
	};
	global __create_table_stream: function(description: TableDescription): bool;
}
module InputConfig;
export {
	global new_value: event(name: string, source: string, id: string, value: any);
}
module GLOBAL;
type Item: record { option_nv: string; };
type Value: record { option_nv: string; };
global current: table[string] of string = {};
option hosts: set[addr] = {};
option names: vector of string = vector();
option reader: Input::Reader = Input::READER_CONFIG;

event InputConfig::new_value(name: string, source: string, id: string, value: any)
	{
	print id, value is set[addr], value is vector of string, value is Input::Reader;
	}

event zeek_init()
	{
	print Input::__create_table_stream([$source="options.cfg", $reader=Input::READER_CONFIG, $mode=Input::MANUAL,
		$name="options", $destination=current, $idx=Item, $val=Value, $want_record=F]);
	}
