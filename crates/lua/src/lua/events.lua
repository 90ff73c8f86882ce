-- gannet.analyze: the rows of logs as events. Returns what makes it part of the module.
local _, inside = ...
local api, ffi = inside.api, inside.ffi
local calls = api.analyses
local setmetatable, type, error, tostring = setmetatable, type, error, tostring
local tonumber, pairs, ipairs, next = tonumber, pairs, ipairs, next
local format, concat, sort, char = string.format, table.concat, table.sort, string.char
local find, match, gmatch, gsub = string.find, string.match, string.gmatch, string.gsub
local str = ffi.string

-- What came of a column's text: values of Lua, nil where it is unset.
local function unescaped(text)
    if not find(text, "\\x", 1, true) then return text end
    return (gsub(text, "\\x(%x%x)", function(digits) return char(tonumber(digits, 16)) end))
end
local function of_text(text)
    if text == "-" then return nil end
    return text == "(empty)" and "" or unescaped(text)
end
local function of_number(text)
    return text ~= "-" and tonumber(text) or nil
end
local function of_bool(text)
    if text == "-" then return nil end
    return text == "T"
end
local numbers = { time = true, interval = true, double = true, count = true, int = true, port = true }
local function reader(kind)
    local inner = match(kind, "^%a+%[(.*)%]$")
    if inner then
        local element = reader(inner)
        return function(text)
            if text == "-" then return nil end
            local list = {}
            if text == "(empty)" then return list end
            for part in gmatch(text .. ",", "([^,]*),") do
                -- An element that is unset has its place all the same.
                local value = element(part)
                list[#list + 1] = value == nil and "-" or value
            end
            return list
        end
    end
    if numbers[kind] then return of_number end
    return kind == "bool" and of_bool or of_text
end

-- Events that are not just a log's name: the log, and which of its rows.
local aliases = {
    connection_end = { "conn" },
    dns_request = { "dns" },
    dns_response = { "dns", "rcode" },
    http_request = { "http", "method" },
    http_reply = { "http", "status_code" },
    ssl_established = { "ssl", "established", "T" },
    file = { "files" },
}

local Analysis = {}
local analysis = { __index = Analysis, __metatable = "analysis" }

local insides = setmetatable({}, { __mode = "k" })

local function of(self, verb)
    local me = insides[self]
    if not me then error("call " .. verb .. " with a colon: analysis:" .. verb .. "(...)", 3) end
    if me.used then error("this analysis was run already", 3) end
    return me
end

return function(gannet, problem, open, reporter, check_filter)
    --- Analyses captures like `gannet analyze`, and calls functions with the rows of logs instead of
    -- writing them:
    --
    --     gannet.analyze("day.pcap"):on("dns_response", function(e)
    --         if e.rcode_name == "NXDOMAIN" then print(e.ts, e.id.orig_h, e.query) end
    --     end):run()
    --
    -- Only logs with a function are made.
    -- @param ... paths, as for `gannet.input`
    -- @return an analysis
    function gannet.analyze(...)
        local handle = open("gannet.analyze", calls.open, ...)
        local self = setmetatable({}, analysis)
        insides[self] = { handle = ffi.gc(handle, calls.free), wanted = {}, names = {} }
        if inside.progress then
            insides[self].progress = reporter(handle, calls.progress)
        end
        return self
    end

    local function known_logs(me)
        if not me.logs then
            local text = ffi.new("const char *[1]")
            local len = calls.logs(me.handle, text)
            me.logs = {}
            for name in gmatch(str(text[0], len), "[^\n]+") do me.logs[name] = true end
        end
        return me.logs
    end

    local function add(me, name, call)
        if type(call) ~= "function" then error("on wants a function for " .. tostring(name), 3) end
        local alias = aliases[name] or { name }
        local log = alias[1]
        if not known_logs(me)[log] then
            local names = {}
            for known in pairs(me.logs) do names[#names + 1] = known end
            for known in pairs(aliases) do names[#names + 1] = known end
            sort(names)
            error(format("there is no event '%s' (there are %s)", tostring(name),
                concat(names, ", ")), 3)
        end
        if not me.wanted[log] then
            me.wanted[log] = {}
            calls.select(me.handle, log)
        end
        local list = me.wanted[log]
        list[#list + 1] = { call = call, column = alias[2], value = alias[3] }
    end

    --- Requests an event: the name of a log (`conn`, `dns`, `http`, `ssl`, `files`, `weird`, `notice` and
    -- all others of `gannet logs`), for each of its rows; or `connection_end` (as `conn`), `dns_request`
    -- (as `dns`), `dns_response` (rows of `dns` with a response), `http_request`, `http_reply` (rows of
    -- `http` with a method, with a status), `ssl_established`, `file` (as `files`). A table of names and
    -- functions requests several. Events come when the analysis writes the row, in one fixed order for
    -- all logs; several functions for an event are called one after the other. Returning false from a
    -- function ends the analysis.
    --
    -- An event has the log's columns by their names: `e.ts`, `e.query`, `e["id.orig_h"]`, and `e.id` is
    -- a table of `orig_h`, `orig_p`, `resp_h`, `resp_p`; `e.log` is the name of the log. Times, intervals,
    -- counts and ports are numbers, T and F are true and false, sets and vectors lists, unset columns
    -- nil. It is a value and may be kept.
    -- @param name of the event, or a table of functions by name
    -- @param call the function
    function Analysis:on(name, call)
        local me = of(self, "on")
        if type(name) == "table" then
            local names = {}
            for each in pairs(name) do
                if type(each) ~= "string" then error("names of events are strings", 2) end
                names[#names + 1] = each
            end
            sort(names)
            for _, each in ipairs(names) do add(me, each, name[each]) end
        else
            add(me, name, call)
        end
        return self
    end

    --- Analyses only packets that match an expression of the capture filter language.
    function Analysis:filter(expression)
        local me = of(self, "filter")
        check_filter(expression)
        if me.filtered then error("an analysis has one filter: join expressions by 'and'", 2) end
        me.filtered = true
        if calls.filter(me.handle, expression) ~= 0 then error(problem(), 2) end
        return self
    end

    --- Ignores checksums, like `gannet analyze -C`.
    function Analysis:ignore_checksums()
        calls.ignore_checksums(of(self, "ignore_checksums").handle)
        return self
    end

    --- Reports the progress of reading, as for pipelines.
    -- @param call the function; by default a line on standard error
    function Analysis:progress(call)
        local me = of(self, "progress")
        if call ~= nil and type(call) ~= "function" then error("progress wants a function", 2) end
        me.progress = reporter(me.handle, calls.progress, call)
        return self
    end

    -- The columns of a stream by name, each a place and how to read it; and what makes events of it.
    local function stream_of(me, number)
        local text = ffi.new("const char *[1]")
        local len = calls.columns(me.handle, number, text)
        local lines, columns, place = str(text[0], len), {}, 0
        local log = match(lines, "^[^\n]*")
        local names = {}
        for name, kind in gmatch(lines, "\n([^\t\n]*)\t([^\n]*)") do
            place = place + 1
            columns[name] = { place = place, read = reader(kind) }
            names[#names + 1] = name
        end
        local meta = { __metatable = "event" }
        local texts = setmetatable({}, { __mode = "k" })
        local function split(event)
            local parts = texts[event]
            if type(parts) ~= "table" then
                local list = {}
                for part in gmatch(parts .. "\t", "([^\t]*)\t") do list[#list + 1] = part end
                texts[event] = list
                parts = list
            end
            return parts
        end
        function meta.__index(event, name)
            local column = columns[name]
            if column then return column.read(split(event)[column.place] or "-") end
            if name == "log" then return log end
            if name == "id" and columns["id.orig_h"] then
                return {
                    orig_h = event["id.orig_h"], orig_p = event["id.orig_p"],
                    resp_h = event["id.resp_h"], resp_p = event["id.resp_p"],
                }
            end
            error(format("an event of %s has no '%s' (it has %s)", log, tostring(name),
                concat(names, ", ")), 2)
        end
        function meta.__newindex() error("an event cannot be changed", 2) end
        meta.__tostring = function(event)
            return log .. "\t" .. concat(split(event), "\t")
        end
        local handlers = {}
        for _, handler in ipairs(me.wanted[log] or {}) do
            local column = handler.column and columns[handler.column]
            handlers[#handlers + 1] = {
                call = handler.call, place = column and column.place, value = handler.value,
            }
        end
        return {
            handlers = handlers,
            make = function(line)
                local event = setmetatable({}, meta)
                texts[event] = line
                return event, split
            end,
        }
    end

    --- Runs the analysis to its end. A truncated or damaged capture delivers the events before the
    -- damage; then it raises an error with the position.
    -- @return `{packets=, bytes=, filtered=, connections=, events=}`; events are calls of functions,
    -- and the rest is nil if a function ended the analysis
    function Analysis:run()
        local me = of(self, "run")
        me.used = true
        if next(me.wanted) == nil then error("on comes first: no event is asked for", 2) end
        local streams, events, goes_on = {}, 0, true
        while goes_on do
            local n = calls.next(me.handle)
            if me.progress then me.progress(n <= 0) end
            if n < 0 then error(problem(), 2) end
            if n == 0 then break end
            local rows, bytes = calls.rows(me.handle), calls.bytes(me.handle)
            for index = 0, n - 1 do
                local row = rows[index]
                local stream = streams[row.stream]
                if not stream then
                    stream = stream_of(me, row.stream)
                    streams[row.stream] = stream
                end
                local event, split = stream.make(str(bytes + row.start, row.len))
                for _, handler in ipairs(stream.handlers) do
                    local text = handler.place and split(event)[handler.place]
                    if not text or (handler.value or text) == text and text ~= "-" then
                        events = events + 1
                        if handler.call(event) == false then goes_on = false end
                    end
                end
                if not goes_on then break end
            end
        end
        if not goes_on then return { events = events } end
        local sums = ffi.new("gannet_statistics")
        calls.statistics(me.handle, sums)
        return {
            packets = tonumber(sums.packets), bytes = tonumber(sums.bytes),
            filtered = tonumber(sums.filtered), connections = tonumber(sums.connections),
            events = events,
        }
    end
end
