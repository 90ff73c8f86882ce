-- The first packets, a line each.
-- gannet run first.lua CAPTURE [COUNT]
gannet.input(arg[2]):limit(tonumber(arg[3]) or 10):each(function(p)
    print(string.format("%d %.6f %s %s > %s %d bytes", p.number, p.time, p.proto or "-",
        p.src or "-", p.dst or "-", p.len))
end)
