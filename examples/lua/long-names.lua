-- A small detector: names so long and so odd that they may carry data (DNS tunnels).
-- gannet run long-names.lua CAPTURE
local function entropy(text)
    local counts, bits = {}, 0
    for byte in text:gmatch(".") do counts[byte] = (counts[byte] or 0) + 1 end
    for _, count in pairs(counts) do
        local share = count / #text
        bits = bits - share * math.log(share) / math.log(2)
    end
    return bits
end
local found = 0
gannet.input(arg[2]):dns():queries():each(function(m)
    local name = m.qname
    if name and #name > 60 and entropy(name) > 3.5 then
        found = found + 1
        print(m.src, m.qtype_name, name)
    end
end)
print(found .. " suspicious names")
