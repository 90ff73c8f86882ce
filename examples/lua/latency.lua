-- How long servers take to answer, in milliseconds, and which queries nobody answered.
-- gannet run latency.lua CAPTURE
local count, total, most, lost = 0, 0, 0, 0
gannet.input(arg[2]):filter("port 53"):dns():join(2):each(function(query, response, took)
    if not response then
        lost = lost + 1
        print("no answer", query.src, query.qname, query.qtype_name)
        return
    end
    count, total, most = count + 1, total + took, math.max(most, took)
end)
if count > 0 then
    print(string.format("%d answers, mean %.3f ms, most %.3f ms, %d lost", count,
        total / count * 1e3, most * 1e3, lost))
end
