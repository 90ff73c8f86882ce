# &on_change and similar attributes of initially empty tables and sets in globals, locals and fields.
type TableChange: enum { TABLE_ELEMENT_NEW, TABLE_ELEMENT_CHANGED, TABLE_ELEMENT_REMOVED, TABLE_ELEMENT_EXPIRED };
function table_changed(t: table[subnet] of count, change: TableChange, net: subnet, n: count) { print "table", change, net, n; }
function set_changed(s: set[count], change: TableChange, n: count) { print "set", change, n; }
function expired(t: table[subnet] of count, net: subnet): interval { return 0 sec; }
global nets: table[subnet] of count = table() &on_change=table_changed &expire_func=expired &create_expire=1 min;
global numbers: set[count] = set() &on_change=set_changed;
global some: set[count] = set() &on_change=set_changed;
type Both: record { t: table[subnet] of count &default=table() &on_change=table_changed; s: set[count] &default=set() &on_change=set_changed; };

event zeek_init()
	{
	nets[10.0.0.0/8] = 1;
	add numbers[2];
	add some[1];
	add some[3];
	delete some[1];
	local both = Both();
	both$t[192.168.0.0/16] = 4;
	add both$s[5];
	local own: set[count] = set() &on_change=set_changed;
	add own[6];
	}
#> table, TABLE_ELEMENT_NEW, 10.0.0.0/8, 1
#> set, TABLE_ELEMENT_NEW, 2
#> set, TABLE_ELEMENT_NEW, 1
#> set, TABLE_ELEMENT_NEW, 3
#> set, TABLE_ELEMENT_REMOVED, 1
#> table, TABLE_ELEMENT_NEW, 192.168.0.0/16, 4
#> set, TABLE_ELEMENT_NEW, 5
#> set, TABLE_ELEMENT_NEW, 6
