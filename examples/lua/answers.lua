-- What names stand for: every address that was told.
-- gannet run answers.lua CAPTURE
local seen = {}
gannet.input(arg[2]):dns():responses():each(function(m)
    for _, record in ipairs(m.answers) do
        local key = record.name .. "\t" .. record.data
        if (record.type == 1 or record.type == 28) and not seen[key] then
            seen[key] = true
            print(record.name, record.type_name, record.ttl, record.data)
        end
    end
end)
