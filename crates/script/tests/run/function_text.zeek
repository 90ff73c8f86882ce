# The text of functions: all kinds of statements, named types, uninitialized values.
type Row: record { number: count; };
type Names: set[string];
type Color: enum { RED };

event later() { }

function find(row: Row, names: Names, color: Color): Row
	{
	local seen: Names;
	local kept: Row;
	local any_value: any = row;
	switch row$number
		{
		case 1, 2:
			break;
		default:
			fallthrough;
		}
	switch any_value
		{
		case type count as n, type Row as r:
			break;
		case type string:
			break;
		}
	for ( [a, b], c in table([1, 2] = 3) )
		print a;
	for ( name in names )
		next;
	local size = 3;
	size -= 1;
	local text = "line\n";
	text = text[0:size] + text[1];
	schedule 1sec { later() };
	kept = copy(row);
	local list: vector of any = vector();
	list[0] = size;
	print any_value is Row, any_value as Names, any_value ?as Color;
	return kept;
	}

event zeek_init() &priority=1 { print find; }
#> find: function(row:Row, names:Names, color:Color) : Row
#> { 
#> <init> seen, kept, n, r;
#> { 
#> ;
#> ;
#> any_value = row;
#> switch row$number {
#> case 1, 2:
#> { 
#> break ;
#> }
#> default:
#> { 
#> fallthrough ;
#> }
#> 
#> }
#> 
#> switch any_value {
#> case type count as n, type Row as r:
#> { 
#> break ;
#> }
#> case type string:
#> { 
#> break ;
#> }
#> 
#> }
#> 
#> for ([ab,], c in table(1, 2 = 3)) 
#> print a;
#> 
#> for ([name] in names) 
#> next ;
#> 
#> size = 3;
#> size = size - 1;
#> text = line\x0a;
#> text = text[(coerce 0 to int), (coerce size to int)] + text[(coerce 1 to int)];
#> schedule 1.0 sec {
#> later()
#> };
#> kept = (*)row;
#> list = vector_coerce vector();
#> list[0] = size;
#> print any_value is Row, any_value as Names, any_value ?as Color;
#> return (kept);
#> }
#> }
