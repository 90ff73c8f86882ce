-- Counts queries by name with dnsjit, like count.lua.
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
local counts, total, names = {}, 0, 0
while true do
    local obj = produce(ctx)
    if obj == nil then break end
    if obj.obj_type == object.PAYLOAD and obj:cast().len > 12 then
        if has_reset then dns:reset() end
        dns.obj_prev = obj
        if dns:parse_header() == 0 and dns.qr == 0 and dns.qdcount > 0
            and dns:parse_q(q, labels, 127) == 0 then
            local name = label.tooffstr(dns, labels, 127)
            if not counts[name] then names = names + 1 end
            counts[name] = (counts[name] or 0) + 1
            total = total + 1
        end
    end
end
print(total, names)
