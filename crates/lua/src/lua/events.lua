-- gannet.analyze: typed events and log rows. Returns a function that adds it to the module.
local _, inside = ...
local ffi = inside.ffi
local calls = inside.api.analyses
local setmetatable, type, error, tostring, rawset, rawget = setmetatable, type, error, tostring, rawset, rawget
local pairs, ipairs, next = pairs, ipairs, next
local format, concat, sort, min, floor = string.format, table.concat, table.sort, math.min, math.floor
local match, gmatch, byte = string.match, string.gmatch, string.byte
local str = ffi.string
local values = inside.load("gannet.values")()

local DAMAGED = "these values are damaged"

-- A metatable that unpacks the values of a table when a field is first accessed. `read` sets the
-- values, `names` is the set of their names; `problem` formats the error for other names.
local function lazy(what, names, read, problem)
    local meta = { __metatable = what }
    function meta.__index(it, name)
        if not names[name] then
            if type(name) ~= "string" then return nil end
            error(problem(name), 2)
        end
        if rawget(it, 3) == nil then
            rawset(it, 3, true)
            read(it)
        end
        return rawget(it, name)
    end
    function meta.__newindex() error("a value of " .. what .. " cannot be added", 2) end
    return meta
end

local function listed(names)
    local list = {}
    for name in pairs(names) do list[#list + 1] = name end
    sort(list)
    return concat(list, ", ")
end

-- Reads the parameters of an event or the fields of a record into a table, whose packed bytes are its first value.
local function reader(params)
    local count = #params
    return function(it)
        local text = rawget(it, 1)
        if type(text) ~= "string" then error(DAMAGED, 0) end
        local bytes, at, value = values.bytes(text), 0, nil
        for place = 1, count do
            local param = params[place]
            value, at = param.read(bytes, at, #text, it)
            rawset(it, param.name, value)
        end
    end
end

-- The parameters of a description, and the set of their names.
local function params_of(lines, names)
    local params = {}
    for name, kind, optional in gmatch(lines, "\n([^\t\n]*)\t([^\t\n]*)\t(%??)") do
        params[#params + 1] = { name = name, kind = kind, read = values.event(kind, optional == "?") }
        names[name] = true
    end
    return params
end

local function describe(handle, kind)
    local text = ffi.new("const char *[1]")
    local len = calls.describe(handle, kind, text)
    return str(text[0], len)
end

-- The types of connections and files: tables with the fields of Zeek's records.
local function record_of(handle, kind, what, key)
    local names = {}
    local params = params_of(describe(handle, kind), names)
    local function problem(name)
        return format("a %s has no '%s' (it has %s)", what, tostring(name), listed(names))
    end
    local meta = lazy(what, names, reader(params), problem)
    meta.__tostring = function(it) return tostring(it[key]) end
    return meta
end

-- A value as text, as `print` shows it.
local function shown(value, kind)
    if value == nil then return "-" end
    if match(kind, "^record") or match(kind, "^table") then return "{...}" end
    local of = match(kind, "^list%((.*)%)$")
    if kind == "conn_id" then
        return format("%s:%d > %s:%d", value.orig_h, value.orig_p, value.resp_h, value.resp_p)
    end
    if not of then return tostring(value) end
    local list = {}
    for place, each in ipairs(value) do list[place] = shown(each, of) end
    return concat(list, ",")
end

-- The edit distance of two names.
local function distance(a, b)
    local row = {}
    for j = 0, #b do row[j] = j end
    for i = 1, #a do
        local before = row[0]
        row[0] = i
        for j = 1, #b do
            local cost = byte(a, i) == byte(b, j) and 0 or 1
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + cost)
        end
    end
    return row[#b]
end

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
    --- Analyses captures like `gannet analyze`, and calls functions with events and rows instead of writing
    -- logs:
    --
    --     gannet.analyze("day.pcap"):on("http_header", function(e)
    --         if e.name == "USER-AGENT" then print(e.ts, e.c.id.orig_h, e.value) end
    --     end):run()
    --
    -- Only events and logs with a function are generated.
    -- @param ... paths, as for `gannet.input`
    -- @return an analysis
    function gannet.analyze(...)
        local handle = open("gannet.analyze", calls.open, ...)
        local self = setmetatable({}, analysis)
        insides[self] = { handle = ffi.gc(handle, calls.free), wanted = {} }
        if inside.progress then
            insides[self].progress = reporter(handle, calls.progress)
        end
        return self
    end

    local function known(me)
        if not me.logs then
            local text = ffi.new("const char *[1]")
            me.logs, me.events = {}, {}
            for list, call in pairs({ logs = calls.logs, events = calls.events }) do
                local len = call(me.handle, text)
                for name in gmatch(str(text[0], len), "[^\n]+") do me[list][name] = true end
            end
        end
        return me
    end

    local function unknown(me, name)
        local near = {}
        for _, names in ipairs({ me.events, me.logs }) do
            for each in pairs(names) do
                if type(name) == "string" and #name < 64 and distance(name, each) <= 2 then
                    near[#near + 1] = "'" .. each .. "'"
                end
            end
        end
        sort(near)
        local hint = "gannet events --list prints the names of events, docs/logs.md has those of logs"
        if near[1] then hint = "is it " .. concat(near, " or ") .. "?" end
        error(format("there is no event or log '%s'; %s", tostring(name), hint), 4)
    end

    local function add(me, name, call)
        if type(call) ~= "function" then error("on wants a function for " .. tostring(name), 3) end
        local is_event = known(me).events[name]
        if not is_event and not me.logs[name] then unknown(me, name) end
        if not me.wanted[name] then
            me.wanted[name] = {}
            calls.select(me.handle, name, is_event and 1 or 0)
        end
        local list = me.wanted[name]
        list[#list + 1] = call
    end

    --- Requests an event by its name: `http_header`, `dns_request`, `connection_state_remove` and all others that
    -- `gannet events --list` prints; or for each row of a log: `conn`, `dns`, `http`, `files` and all others of
    -- docs/logs.md. A table of names and functions requests several. Returning false from a function ends the
    -- analysis.
    --
    -- A function gets one table. That of an event has the event's arguments by their names, with Zeek's names and
    -- meaning: `e.name`, `e.value`, `e.is_orig`, and the connection as `e.c` with `e.c.uid`, `e.c.id.orig_h`,
    -- `e.c.orig.size`, `e.c.history`, `e.c.service`; `e.event` is the name of the event, `e.ts` the time and `e.packet`
    -- the number of the packet. That of a row has the log's columns: `e.ts`, `e.query`, `e["id.orig_h"]`, and
    -- `e.id` is a table of `orig_h`, `orig_p`, `resp_h`, `resp_p`; `e.log` is the name of the log. Times,
    -- intervals, counts and ports are numbers, addresses and enumerators strings, sets and vectors lists; what is
    -- unset is nil. Tables stay valid: keep them as long as you like.
    --
    -- Events come in the order of packets, those of one packet in the order in which they arose, as handlers of
    -- Zeek get them: a connection shows its state after the packet. Rows come when they are written, before the
    -- events of the same packet.
    -- @param name of the event or log, or a table of functions by name
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

    --- Analyses in several threads, including the script's, in which the functions are called. They are called with the
    -- same events in the same order for any number of threads. An analysis with functions of rows has one thread.
    -- @param threads 1 to 255; by default the number of processors
    function Analysis:parallel(threads)
        local me = of(self, "parallel")
        if threads == nil then threads = min(inside.api.processors(), 255) end
        if type(threads) ~= "number" or threads ~= floor(threads) or threads < 1 or threads > 255 then
            error("parallel wants a number of threads, 1 to 255", 2)
        end
        calls.parallel(me.handle, threads)
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

    -- The kind of a log's rows: their functions, and the reader that converts them to tables.
    local function rows_of(me, kind, log, lines)
        local names, columns = { log = true }, {}
        for name, type_name in gmatch(lines, "\n([^\t\n]*)\t([^\t\n]*)") do
            columns[#columns + 1] = { name = name, read = values.cell(type_name, #columns) }
            names[name] = true
        end
        local has_id = names["id.orig_h"]
        local read = reader(columns)
        if has_id then names.id = true end
        local function problem(name)
            local list = {}
            for place, column in ipairs(columns) do list[place] = column.name end
            return format("a row of %s has no '%s' (it has %s)", log, tostring(name), concat(list, ", "))
        end
        local meta = lazy("event", names, function(it)
            read(it)
            if has_id then
                rawset(it, "id", {
                    orig_h = it["id.orig_h"], orig_p = it["id.orig_p"],
                    resp_h = it["id.resp_h"], resp_p = it["id.resp_p"],
                })
            end
        end, problem)
        meta.__tostring = function(it)
            local row, text = rawget(it, 1), ffi.new("const char *[1]")
            if type(row) ~= "string" then error(DAMAGED, 0) end
            local len = calls.line(me.handle, kind, row, #row, text)
            return str(text[0], len)
        end
        return {
            handlers = me.wanted[log] or {},
            make = function(item, bytes)
                return setmetatable({ str(bytes + item.values.start, item.values.len), log = log }, meta)
            end,
        }
    end

    -- The kind of an event: its functions, and the reader that converts it to a table.
    local function events_of(me, event, lines)
        local names = { event = true, ts = true, packet = true }
        local params = params_of(lines, names)
        local function problem(name)
            return format("%s has no '%s' (it has %s)", event, tostring(name), listed(names))
        end
        local meta = lazy("event", names, reader(params), problem)
        meta.__tostring = function(it)
            local list = { event }
            for _, param in ipairs(params) do list[#list + 1] = shown(it[param.name], param.kind) end
            return concat(list, "\t")
        end
        if not me.records then
            me.records = {
                connection = record_of(me.handle, 0xffffffff, "connection", "uid"),
                fa_file = record_of(me.handle, 0xfffffffe, "fa_file", "id"),
            }
        end
        local records = me.records
        local mentions = match(lines, "connection") or match(lines, "fa_file")
        -- The connections and files of the events that were delivered together.
        local function mentioned(item, bytes, spans)
            local last = me.mentioned
            if last and last.first == item.conns and last.batch == me.batch then return last end
            local all = { first = item.conns, batch = me.batch, connection = {}, fa_file = {}, records = records }
            local at = item.conns
            for _, list in ipairs({ { all.connection, item.conn_count }, { all.fa_file, item.file_count } }) do
                for place = 1, list[2] do
                    local span = spans[at]
                    list[1][place] = str(bytes + span.start, span.len)
                    at = at + 1
                end
            end
            me.mentioned = all
            return all
        end
        return {
            handlers = me.wanted[event] or {},
            make = function(item, bytes, spans)
                return setmetatable({
                    str(bytes + item.values.start, item.values.len),
                    mentions and mentioned(item, bytes, spans) or false,
                    event = event, ts = values.seconds(item.time), packet = values.number(item.packet),
                }, meta)
            end,
        }
    end

    local function kind_of(me, number)
        local lines = describe(me.handle, number)
        local what, name = match(lines, "^(%l+)\t([^\n]*)")
        if what == "row" then return rows_of(me, number, name, lines) end
        return events_of(me, name, lines)
    end

    --- Runs the analysis to its end. A capture that is cut or damaged gives the events before the damage; then
    -- an error says where it is.
    -- @return `{packets=, bytes=, filtered=, connections=, events=}`; `events` is the number of calls of functions,
    -- and the rest is nil where a function ended the analysis
    function Analysis:run()
        local me = of(self, "run")
        me.used = true
        if next(me.wanted) == nil then error("on comes first: no event is asked for", 2) end
        local kinds, events, goes_on = {}, 0, true
        me.batch = 0
        while goes_on do
            local n = calls.next(me.handle)
            if me.progress then me.progress(n <= 0) end
            if n < 0 then error(problem(), 2) end
            if n == 0 then break end
            me.batch = me.batch + 1
            local items, bytes, spans = calls.items(me.handle), calls.bytes(me.handle), calls.mentioned(me.handle)
            for index = 0, n - 1 do
                local item = items[index]
                local kind = kinds[item.kind]
                if not kind then
                    kind = kind_of(me, item.kind)
                    kinds[item.kind] = kind
                end
                local event = kind.make(item, bytes, spans)
                local handlers = kind.handlers
                for place = 1, #handlers do
                    events = events + 1
                    if handlers[place](event) == false then goes_on = false end
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
