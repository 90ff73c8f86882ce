# stages: rich zeek
event zeek_init()
	{
	local a = 1
	local b = 2;
	}
