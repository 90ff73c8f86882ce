-- Counts queries by name, with the given number of threads. Run by `cargo xtask pipes`.
local counts = gannet.input(arg[2]):dns():queries():parallel(tonumber(arg[3])):count_by("qname")
print(counts:total(), counts:keys())
for _, row in ipairs(counts:top(10)) do print(row.key, row.count) end
