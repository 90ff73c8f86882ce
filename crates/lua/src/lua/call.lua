-- Returns a function that calls a script's, and returns nil, or the error as text with its trace-back.
local traceback, xpcall, type, tostring, next, getmetatable = debug.traceback, xpcall, type, tostring, next, debug.getmetatable
local gsub, rawget, sort, concat, format = string.gsub, rawget, table.sort, table.concat, string.format

-- An error that is a table without a text of its own: its fields.
local function describe(value)
    local meta = getmetatable(value)
    if type(value) ~= "table" or (meta and rawget(meta, "__tostring")) then return tostring(value) end
    local fields = {}
    for key, field in next, value do
        local text = type(field) == "string" and format("%q", field) or tostring(field)
        fields[#fields + 1] = tostring(key) .. " = " .. text
    end
    sort(fields)
    return "error object { " .. concat(fields, ", ") .. " }"
end

local function handler(value)
    -- Without the frames of this module, which are the last ones.
    local text = gsub(traceback(describe(value), 3), "\n\t%[C%]: in function 'xpcall'\n\tgannet%.call:.*$", "")
    return text
end

return function(script)
    local ok, problem = xpcall(script, handler)
    if not ok then return tostring(problem) end
end
