# A field of a nested record that the target type lacks is an error, and omitted.
type Inner: record { x: count; y: string &optional; };
type Outer: record { a: count &default=1; inner: Inner &optional; };

event zeek_init()
	{
	local one: Outer = [$a=2, $inner=[$x=1, $z=5]];
	print one;
	}
#> [a=2, inner=[x=1, y=<uninitialized>]]
#! error in <no location>: orphan field "z" in initialization ([x=1, z=5])
#! fatal error: errors occurred while initializing
#= 1
