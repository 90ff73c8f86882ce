-- Queries a second, by the second.
-- gannet run rate.lua CAPTURE
local first, rates = nil, {}
gannet.input(arg[2]):dns():queries():each(function(m)
    first = first or m.time
    local second = math.floor(m.time - first)
    rates[second] = (rates[second] or 0) + 1
end)
local last = -1
for second in pairs(rates) do last = math.max(last, second) end
for second = 0, last do print(second, rates[second] or 0) end
