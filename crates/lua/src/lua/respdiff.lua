-- gannet.respdiff: writes queries and answers for respdiff. Returns a function that adds it to the
-- module.
local _, inside = ...
local api, ffi = inside.api.respdiffs, inside.ffi
local setmetatable, type, error, tonumber, ipairs = setmetatable, type, error, tonumber, ipairs
local time = os and os.time

local Respdiff = {}
local respdiff = { __index = Respdiff, __metatable = "respdiff" }

local insides = setmetatable({}, { __mode = "k" })

local function of(self, verb)
    local me = insides[self]
    if not me then error("call " .. verb .. " with a colon: respdiff:" .. verb .. "(...)", 3) end
    return me
end

return function(gannet, problem)
    --- Stores queries with the answers of several servers for respdiff's tools: an LMDB environment in its
    -- format of 2018-05-21.
    --
    --     local out = gannet.respdiff("answers", { "captured", "new" })
    --     local server = gannet.client("udp://127.0.0.1:5300")
    --     gannet.input(arg[2]):dns():join():each(function(q, r, took)
    --         out:put(q.bytes, { r and { r.bytes, took }, { server:ask(q.bytes), 0.001 } })
    --     end)
    --     out:finish()
    -- @param path of a folder, which is created if it does not exist
    -- @param servers their names, a list
    -- @return an object to put queries into
    function gannet.respdiff(path, servers)
        if inside.sandbox then error("the sandbox writes no files", 2) end
        if type(path) ~= "string" or type(servers) ~= "table" or #servers == 0 then
            error("gannet.respdiff wants a path and a list of names", 2)
        end
        local names = ffi.new("const char *[?]", #servers)
        for index, name in ipairs(servers) do
            if type(name) ~= "string" then error("names of servers are strings", 2) end
            names[index - 1] = name
        end
        local handle = api.create(path, names, #servers)
        if handle == nil then error(problem(), 2) end
        local self = setmetatable({}, respdiff)
        insides[self] = {
            handle = ffi.gc(handle, api.free), count = #servers, begun = time(),
            answers = ffi.new("gannet_answer[?]", #servers),
        }
        return self
    end

    --- Adds a query and its answers: for each server in order, `{ bytes, seconds }`, or false or nil
    -- if it gave none.
    function Respdiff:put(query, answers)
        local me = of(self, "put")
        if type(query) ~= "string" or type(answers) ~= "table" then
            error("put wants the bytes of a query and a list of answers", 2)
        end
        for index = 1, me.count do
            local answer, to = answers[index], me.answers[index - 1]
            to.seconds = -1
            if answer and type(answer) ~= "table" then error("an answer is { bytes, seconds }", 2) end
            if answer and answer[1] then
                local seconds = tonumber(answer[2])
                if type(answer[1]) ~= "string" or not seconds or not (seconds >= 0) then
                    error("an answer is { bytes, seconds }", 2)
                end
                -- The list keeps the string alive while the program reads it.
                to.bytes, to.len, to.seconds = answer[1], #answer[1], seconds
            end
        end
        if api.put(me.handle, query, #query, me.answers, me.count) ~= 0 then error(problem(), 2) end
    end

    --- Writes buffered queries; without this call the last ones are missing.
    -- @return the number of queries
    function Respdiff:finish()
        local me = of(self, "finish")
        local count = api.finish(me.handle, me.begun, time())
        if count < 0 then error(problem(), 2) end
        return tonumber(count)
    end
end
