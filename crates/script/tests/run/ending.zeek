# Generations of events that run at the end of a program: two with each drain of the queue.
global net_done: event(t: time);
global raised = 0;

event again()
	{
	++raised;
	if ( raised < 100 )
		event again();
	}

event zeek_init()
	{
	event again();
	}

event net_done(t: time)
	{
	print "net", raised;
	}

event zeek_done()
	{
	print "done", raised;
	}

#> net, 3
#> done, 12
