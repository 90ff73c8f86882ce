# Which values are the same object, and warnings of loops over tables.
global same_object: function(o1: any, o2: any): bool;
global copy_of: table[count] of string = table([1] = "one", [2] = "two");

function tables()
	{
	for ( k in copy_of )
		{
		copy_of[k] = "changed";
		delete copy_of[77];
		}
	for ( k in copy_of )
		{
		copy_of[3] = "three";
		break;
		}
	for ( k in copy_of )
		{
		delete copy_of[3];
		break;
		}
	print |copy_of|;
	}

event zeek_done()
	{
	local a = "a text";
	local b = a;
	local c = "a text";
	local long = "a text that is longer than a cell";
	print same_object(a, b), same_object(a, c), same_object(a, copy(a));
	print same_object(long, copy(long)), copy(long) == long, copy(a) == c;
	local p = /x+/;
	print same_object(p, p), same_object(p, copy(p)), copy(p) == "xx";
	print same_object(3, 3), same_object(vector(1), vector(1));
	print "end";
	tables();
	}
#> T, F, F
#> F, T, T
#> T, F, T
#> T, F
#> end
#> 2
#! expression warning in tests/run/objects.zeek, line 14: possible loop/iterator invalidation (copy_of[3])
#! expression warning in tests/run/objects.zeek, line 19: possible loop/iterator invalidation (copy_of[3])
