-- What each host sent, in bytes, by all processors at once.
-- gannet run hosts.lua CAPTURE [HOW MANY]
local sums = gannet.input(arg[2]):parallel():sum_by("len", "src")
for _, row in ipairs(sums:top(tonumber(arg[3]) or 20)) do
    print(row.key == "" and "(no IP)" or row.key, row.count)
end
