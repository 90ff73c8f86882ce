# stages: rich
module Test;
export { global connection_count = 0; }
event connected()
	{
	Test::conection_count = 1;
	}
