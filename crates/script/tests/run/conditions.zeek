# Conditions of when: their order, their dependencies, and their timeouts at the end of the run.
global ready = F;
global late = F;
global names: table[count] of set[string];

event zeek_init()
	{
	names[1] = set("a");

	when ( ready )
		print "ready";
	when ( late )
		print "late";
	when ( "b" in names[1] )
		print "never: the set that is looked up in was not read by a name of its own";
	timeout 1hr
		{
		print "timed out";
		}

	# Evaluated in the order of the changes.
	late = T;
	ready = T;
	}

#> late
#> ready
#> timed out
