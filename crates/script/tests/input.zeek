# Rows that lack a value, or have one that its type does not have.
global exit_only_after_terminate = T;
global terminate: function(): bool;
module Reporter;
export { type Level: enum { INFO, WARNING, ERROR }; }
module Input;
export {
	type Event: enum { EVENT_NEW, EVENT_CHANGED, EVENT_REMOVED };
	type Mode: enum { MANUAL, REREAD, STREAM };
	type Reader: enum { READER_ASCII };
	type TableDescription: record {
		source: string;
		reader: Reader &default=READER_ASCII;
		mode: Mode &default=MANUAL;
		name: string;
		destination: any;
		idx: any;
		val: any &optional;
		want_record: bool &default=T;
		ev: any &optional;
		pred: any &optional;
		error_ev: any &optional;
		config: table[string] of string &default=table();
	};
	global __create_table_stream: function(description: TableDescription): bool;
	global __remove_stream: function(id: string): bool;
	global __force_update: function(id: string): bool;
	global end_of_data: event(name: string, source: string);
}
module GLOBAL;

type Color: enum { Red, Green };
type Idx: record { a: count; b: count; };
type Val: record { s: string; o: string &optional; c: Color; };
global rows: table[count, count] of Val;

event wrong(description: Input::TableDescription, message: string, level: Reporter::Level)
	{
	print message, level;
	}

event zeek_init()
	{
	print Input::__create_table_stream([$source="input.log", $name="rows", $destination=rows, $idx=Idx, $val=Val, $error_ev=wrong]);
	}

event Input::end_of_data(name: string, source: string)
	{
	print name, |rows|;
	for ( [a, b], row in rows )
		print a, b, row;
	# A stream that is removed is there until the reader ends.
	print Input::__remove_stream("rows"), Input::__remove_stream("rows");
	print Input::__force_update("rows"), Input::__force_update("none"), Input::__remove_stream("none");
	terminate();
	}
