# stages: rich zeek
global s = { 1, "a" };
global pairs = { [1, "a"], [2, 3] };
const names: table[count] of string = { [0] = ["zero"], [1] = ["one"] };
global v = vector([1, "a"], [2, "b"]);

event start()
	{
	local a = [1, "b"];
	local b = set(1.5, "c");
	local c = table([1] = "a", [2] = 3);
	local d = table(["x"] = 1, [2] = 3);
	}
