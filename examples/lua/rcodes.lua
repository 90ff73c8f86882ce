-- How servers answer: response codes by server.
-- gannet run rcodes.lua CAPTURE
local counts = gannet.input(arg[2]):dns():responses():count_by("src", "rcode")
counts:each(function(key, count)
    local server, rcode = key:match("^(.*)\t(.*)$")
    print(server, gannet.rcodes[tonumber(rcode)] or rcode, count)
end)
