-- Which record types are asked for, over which transport.
-- gannet run by-type.lua CAPTURE
gannet.input(arg[2]):dns():queries():count_by("proto", "qtype"):each(function(key, count)
    local transport, kind = key:match("^(.*)\t(.*)$")
    print(transport, gannet.types[tonumber(kind)] or kind, count)
end)
