# A union and a difference start as copies of the left set, with its attributes. An option has a copy of the value that it is set to.
module Option;
export { global Option::set: function(ID: string, val: any, location: string &default=""): bool; }
module GLOBAL;

type TableChange: enum { TABLE_ELEMENT_NEW, TABLE_ELEMENT_CHANGED, TABLE_ELEMENT_REMOVED, TABLE_ELEMENT_EXPIRED };

function on_seen(s: set[count], change: TableChange, number: count)
	{
	print change, number;
	}

global seen: set[count] &on_change=on_seen;
option limit: set[string] = set();

event zeek_init()
	{
	local few: set[count] = set(1, 2, 3) &ordered;
	print few - set(2), few | set(9, 4), few & set(3, 1);
	local names = set("a");
	print Option::set("limit", names);
	add names["b"];
	print limit, |names|;
	# An element that is added again changes.
	add seen[1];
	add seen[1];
	seen += set(1);
	delete seen[9];
	print |seen | set(1, 2)|, |seen - set(1)|, |seen|;
	}

#> {
#> 1,
#> 3
#> }, {
#> 1,
#> 2,
#> 3,
#> 9,
#> 4
#> }, {
#> 3,
#> 1
#> }
#> T
#> {
#> a
#> }, 2
#> TABLE_ELEMENT_NEW, 1
#> TABLE_ELEMENT_CHANGED, 1
#> TABLE_ELEMENT_CHANGED, 1
#> TABLE_ELEMENT_REMOVED, 9
#> TABLE_ELEMENT_CHANGED, 1
#> TABLE_ELEMENT_NEW, 2
#> TABLE_ELEMENT_REMOVED, 1
#> 2, 0, 1
