# The binary form over which digests of values other than strings are computed.
global fnv1a32: function(input: any): count;

type Row: record { number: count; name: string &optional; ports: set[port] &default=set(80/tcp); };
type Kind: enum { First, Second };

event zeek_init()
	{
	print fnv1a32(80/tcp), fnv1a32(10.0.0.0/8), fnv1a32([::1]), fnv1a32(90sec), fnv1a32(0sec), fnv1a32(T);
	print fnv1a32(Second), fnv1a32(/a.b/), fnv1a32(Row($number=1)), fnv1a32(Row($number=1, $name="x")), fnv1a32(Row);
	print fnv1a32(set(1)), fnv1a32(table([1, "b"] = T)), fnv1a32(vector(1, 2)), fnv1a32(vector()), fnv1a32(set());
	}
#> 2818655735, 3333903947, 2159089339, 2200419432, 290434007, 1813074341
#> 2284701870, 2740065411, 3603633195, 3083218542, 2662899874
#> 966180569, 1847537133, 3294685052, 3129984392, 3425283115
