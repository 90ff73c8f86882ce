-- Who sends most packets, of all protocols.
-- gannet run talkers.lua CAPTURE
for _, row in ipairs(gannet.input(arg[2]):count_by("src", "proto"):top(10)) do
    if row.key ~= "\t" then print(row.count, (row.key:gsub("\t", " "))) end
end
