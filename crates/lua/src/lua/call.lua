-- Returns a function that calls a script's function, and returns nil, or the error as text with its
-- trace-back. Its arguments are a function that receives the script's thread, and one that returns
-- the script's position when memory was exhausted.
local watch, place_of_failure = ...
local traceback, getinfo, getmetatable = debug.traceback, debug.getinfo, debug.getmetatable
local create, resume, status, running = coroutine.create, coroutine.resume, coroutine.status, coroutine.running
local pcall, type, tostring, next, rawget = pcall, type, tostring, next, rawget
local max, sort, concat = math.max, table.sort, table.concat
local format, sub, match, find = string.format, string.sub, string.match, string.find

-- The fields of an error that is a table without a `__tostring`.
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

-- File and line where memory was exhausted: those of the innermost function of a script's file, not
-- of a module of the program.
local function place(thread)
    local level = 0
    while true do
        local info = getinfo(thread, level, "Sl")
        if not info then return "" end
        if sub(info.source, 1, 1) == "@" then
            local line = info.currentline
            if line <= 0 then
                -- For a function that raised an error, Lua has only the line where it called
                -- another function.
                local file, failed, begin = place_of_failure()
                line = file == info.short_src and begin == info.linedefined and failed or max(info.linedefined, 1)
            end
            return info.short_src .. ":" .. line .. ": "
        end
        level = level + 1
    end
end

-- The stack of a thread that ended with an error remains available, even when memory was exhausted,
-- where LuaJIT calls no handler of xpcall. Scripts cannot access this thread.
local main
function coroutine.running()
    local thread = running()
    if thread ~= main then return thread end
end

-- The error text with the stack of the script. The line of the innermost function is only in the
-- text, not in the stack.
local function with_trace(text)
    local trace = traceback(main, text, 0)
    local info = getinfo(main, 0, "Sl")
    local begin = info and info.what ~= "C" and info.currentline <= 0 and info.short_src .. ":"
    local line = begin and sub(text, 1, #begin) == begin and match(text, "^%d+", #begin + 1)
    local at = line and find(trace, "\n\t" .. begin .. " ", 1, true)
    if not at then return trace end
    local after = at + 2 + #begin
    return sub(trace, 1, after - 1) .. line .. ":" .. sub(trace, after)
end

return function(script)
    main = create(script)
    watch(main)
    local ok, problem = resume(main)
    if ok and status(main) == "dead" then return nil end
    if ok then problem = place(main) .. "attempt to yield outside a coroutine" end
    local text = problem == "not enough memory" and place(main) .. problem or describe(problem)
    local whole, trace = pcall(with_trace, text)
    return whole and trace or text
end
