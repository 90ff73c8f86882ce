-- The names that are asked for most.
-- gannet run top-names.lua CAPTURE [COUNT]
local counts = gannet.input(arg[2]):dns():queries():count_by("qname")
for _, row in ipairs(counts:top(tonumber(arg[3]) or 10)) do
    print(row.count, row.key)
end
