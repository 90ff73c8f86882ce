# stages: rich zeek
type Row: record { text: string; size: count &optional; };
global seen: event(row: Row, is_orig: bool);
global policy: hook(row: Row);

event seen(row: Row, flag: bool)
	{
	print row$text;
	}

hook policy(text: string)
	{
	print text;
	}

function join(a: string, b: string): string
	{
	return cat(a, b);
	}

event sen(row: Row, is_orig: bool)
	{
	}

event start()
	{
	print join("a");
	print join("a", "b", "c");
	local r: Row = [$text="x", $sizes=1];
	event nothing(1);
	}

redef Missing::limit = 3;
