# stages: zeek
global x = 1;
event zeek_init()
	{
	print ::x, GLOBAL::x;
	}
