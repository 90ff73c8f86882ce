-- Clients that ask for what does not exist, and what.
-- gannet run nxdomain.lua CAPTURE
gannet.input(arg[2]):dns():responses():each(function(m)
    if m.rcode_name == "NXDOMAIN" then print(m.dst, m.qname, m.qtype_name) end
end)
