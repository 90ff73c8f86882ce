# Messages of the initialization are always printed; options of scripts do not suppress them.
module Reporter;
export {
	const errors_to_stderr = F;
	const warnings_to_stderr = F;
	global warning: function(msg: string): bool;
	global error: function(msg: string): bool;
}
module GLOBAL;

event zeek_init()
	{
	Reporter::warning("early");
	}

event zeek_done()
	{
	Reporter::warning("late");
	}
#! warning in tests/run/early_messages.zeek, line 13: early
