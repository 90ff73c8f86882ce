-- How long packets are: a histogram by powers of two.
-- gannet run sizes.lua CAPTURE
local bins = {}
gannet.input(arg[2]):each(function(p)
    local bin = math.floor(math.log(math.max(p.len, 1)) / math.log(2))
    bins[bin] = (bins[bin] or 0) + 1
end)
for bin = 0, 31 do
    if bins[bin] then print(2 ^ bin .. " and more", bins[bin]) end
end
