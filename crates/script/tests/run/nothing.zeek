# A built-in function that reports an error may return no value: the rest of the statement is skipped.
global ljust: function(str: string, width: count, fill: string &default=" "): string;
global cat: function(va_args: any): string;
global cat_sep: function(va_args: any): string;

function padded(s: string): string
	{
	return ljust(s, 5, "--");
	}

event zeek_done()
	{
	print cat("before ", ljust("abc", 5, "--"));
	local x = "kept";
	x = cat(ljust("abc", 5, "--"));
	print "next";
	if ( ljust("abc", 5, "--") == "" )
		print "yes";
	else
		print "no";
	while ( ljust("abc", 5, "") == "abc" )
		print "never";
	print padded("abc");
	print cat_sep("a");
	local t: table[string] of count;
	t[ljust("abc", 5, "")] = 3;
	print |t|, ljust("abc", 5, "."), cat_sep("-", "none", "a", "", 1);
	}
#> next
#> 0, abc.., a-none-1
#! error: Fill string passed to ljust() must be a single character
#! error: Fill string passed to ljust() must be a single character
#! error: Fill string passed to ljust() must be a single character
#! error: Fill string passed to ljust() must be a single character
#! error: Fill string passed to ljust() must be a single character
#! warning: non-void function returning without a value: padded
#! error in tests/run/nothing.zeek, line 24: cat_sep() takes at least 2 argument(s), got 1 (cat_sep(a))
#! error: Fill string passed to ljust() must be a single character
