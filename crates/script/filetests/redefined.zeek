# stages: rich
global name = 1;
event connected()
	{
	local name = 2;
	const c = 1;
	c = 2;
	}
