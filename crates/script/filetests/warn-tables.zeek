# stages: rich
type R: record { a: count; b: string &optional; };
global t: table[addr] of R &default=[$a=1];
global inserting: table[addr] of R &default_insert=[$a=1] &create_expire=1 min;
global hosts: set[addr];
global seen: table[string] of count &create_expire=1 min;

event connected(host: addr, r: R)
	{
	t[host]$a = 3;
	inserting[host]$a = 3;
	add hosts[host];
	seen = table();
	print r$b;
	if ( r?$b && |r$b| > 0 )
		print r$b;
	if ( ! r?$b )
		return;
	print r$b;
	for ( h in hosts )
		print h;
	}

event zeek_init()
	{
	schedule 1 sec { connected(1.2.3.4, [$a=1]) };
	}
