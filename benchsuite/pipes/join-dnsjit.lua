-- Pairs queries with their responses with dnsjit, like join.lua, by addresses, ports and id.
local ffi = require("ffi")
local input = require("dnsjit.input.mmpcap").new()
local layer = require("dnsjit.filter.layer").new()
local object = require("dnsjit.core.objects")
local dns = require("dnsjit.core.object.dns").new()
local label = require("dnsjit.core.object.dns.label")
local labels, q = label.new(127), require("dnsjit.core.object.dns.q").new()
-- Exists since dnsjit 1.3.0.
local has_reset = pcall(function() return dns.reset end)
input:open(arg[2])
layer:producer(input)
local produce, ctx = layer:produce()
local waiting, queries, pairs_found = {}, 0, 0
local key = ffi.new("struct { uint8_t client[16], server[16]; uint16_t cport, sport, id; }")
while true do
    local obj = produce(ctx)
    if obj == nil then break end
    if obj.obj_type == object.PAYLOAD and obj:cast().len > 12 then
        local udp = obj:cast_to(object.UDP)
        local ip = obj:cast_to(object.IP)
        local len = 4
        if ip == nil then
            ip, len = obj:cast_to(object.IP6), 16
        end
        if has_reset then dns:reset() end
        dns.obj_prev = obj
        if udp ~= nil and ip ~= nil and dns:parse_header() == 0 and dns.qdcount > 0
            and dns:parse_q(q, labels, 127) == 0 then
            key.id = dns.id
            if dns.qr == 0 then
                key.cport, key.sport = udp.sport, udp.dport
                ffi.copy(key.client, ip.src, len)
                ffi.copy(key.server, ip.dst, len)
            else
                key.cport, key.sport = udp.dport, udp.sport
                ffi.copy(key.client, ip.dst, len)
                ffi.copy(key.server, ip.src, len)
            end
            local text = ffi.string(key, 38) .. label.tooffstr(dns, labels, 127)
            if dns.qr == 0 then
                queries = queries + 1
                local pcap = obj:cast_to(object.PCAP)
                waiting[text] = { tonumber(pcap.ts.sec), tonumber(pcap.ts.nsec) }
            elseif waiting[text] then
                pairs_found = pairs_found + 1
                waiting[text] = nil
            end
        end
    end
end
print(queries, pairs_found)
