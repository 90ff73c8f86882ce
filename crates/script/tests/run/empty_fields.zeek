# Records whose fields are empty containers of unspecified type convert to other record types only if these containers are vectors.
type Row: record { names: set[string]; numbers: vector of count &optional; };
function f(row: Row): count { return 1; }
event zeek_init()
	{
	local row: Row = [$names=set()];
	f([$names=set()]);
	f([$names=set("a"), $numbers=vector()]);
	f(Row($names=set()));
	}
#! error in tests/run/empty_fields.zeek, line 6: type clash for field "names" ((coerce [$names=set()] to Row) and set())
#! error in tests/run/empty_fields.zeek, line 2 and tests/run/empty_fields.zeek, line 7: incompatible record types (Row and [$names=set()])
#! error in tests/run/empty_fields.zeek, line 7 and tests/run/empty_fields.zeek, line 2: type mismatch ([$names=set()] and Row)
#! error in tests/run/empty_fields.zeek, line 7: argument type mismatch in function call (f([$names=set()]))
#= 1
