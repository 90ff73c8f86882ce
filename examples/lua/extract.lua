-- The packets of one host, into another capture.
-- gannet run extract.lua CAPTURE HOST OUT
local count = gannet.input(arg[2]):filter("host " .. arg[3]):write(arg[4])
print(count .. " packets")
