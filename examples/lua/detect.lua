-- Small detectors: scans, names that look made up, passwords in the clear, oddities. Events and rows of logs.
-- gannet run detect.lua CAPTURE
local failed, reported = {}, {}

gannet.analyze(arg[2]):on({
    -- An event.
    http_header = function(e)
        if e.is_orig and e.name == "AUTHORIZATION" and e.value:match("^[Bb]asic ") then
            print("password in the clear", e.ts, e.c.id.orig_h, e.c.uid)
        end
    end,
    -- Rows.
    conn = function(e)
        if e.conn_state ~= "S0" and e.conn_state ~= "REJ" then return end
        local host = e.id.orig_h
        failed[host] = (failed[host] or 0) + 1
        if failed[host] == 20 then print("scan", e.ts, host) end
    end,
    dns = function(e)
        local label = e.query and e.query:match("^[^.]+") or ""
        if #label >= 30 and e.rcode_name == "NXDOMAIN" then
            print("odd name", e.ts, e.id.orig_h, e.query)
        end
    end,
    weird = function(e)
        if not reported[e.name] then print("weird", e.ts, e.name) end
        reported[e.name] = true
    end,
}):run()
