-- Small detectors over the rows of logs: scans, names that look made up, logins without TLS, oddities.
-- gannet run detect.lua CAPTURE
local failed, told = {}, {}
local function tell(what, ...)
    print(what, ...)
end

gannet.analyze(arg[2]):on({
    connection_end = function(e)
        if e.conn_state ~= "S0" and e.conn_state ~= "REJ" then return end
        local host = e.id.orig_h
        failed[host] = (failed[host] or 0) + 1
        if failed[host] == 20 then tell("scan", e.ts, host) end
    end,
    dns_response = function(e)
        local label = e.query and e.query:match("^[^.]+") or ""
        if #label >= 30 and e.rcode_name == "NXDOMAIN" then
            tell("odd name", e.ts, e.id.orig_h, e.query)
        end
    end,
    http_request = function(e)
        if e.username then tell("password in the clear", e.ts, e.id.orig_h, e.host) end
    end,
    weird = function(e)
        if not told[e.name] then tell("weird", e.ts, e.name) end
        told[e.name] = true
    end,
}):run()
