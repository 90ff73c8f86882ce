--- Packets, DNS messages and pipelines over them.
--
-- A pipeline begins with an input and ends with a verb. The stages between run natively, batch
-- by batch; only functions given to a stage run in Lua.
--
--     gannet.input("day.pcap"):filter("udp port 53"):dns():each(function(m)
--         print(m.src, m.qname, m.rcode_name)
--     end)
--
-- A pipeline is read once. A view is valid until the function returns: to keep data, keep
-- its fields. A truncated or damaged capture delivers everything before the damage; then the verb
-- raises an error with its position.
local _, inside = ...
local api, ffi, blame = inside.api, inside.ffi, inside.blame
local setmetatable, type, error, tostring = setmetatable, type, error, tostring
local tonumber, select, ipairs, pairs, next = tonumber, select, ipairs, pairs, next
local rawget = rawget
local format, find = string.format, string.find
local min, max, floor, abs = math.min, math.max, math.floor, math.abs
local str = ffi.string

-- In the sandbox a script may replace everything that it can access: globals, methods of strings,
-- functions of modules. So this module calls only local names, modules are loaded before the script
-- runs, and the objects of a script are keys of a weak table whose values it cannot access.

local gannet = {}

-- Raises errors of the program at the calling line of the script.
local function problem()
    local text = api.last_error()
    return text == nil and "unknown error" or str(text)
end

-- The constructors of views, and the names of types and of response codes; loaded at the first use.
local views
local function view(which)
    views = views or { inside.load("gannet.views")()() }
    return views[which]
end

----------------------------------------------------------------------------------------------------
-- Pipelines

local Pipeline = {}
local pipeline = { __index = Pipeline, __metatable = "pipeline" }

-- Returns a function that reports progress at intervals.
local function reporter(handle, position, call)
    local now, begun, last = api.clock, api.clock(), 0
    local at = ffi.new("gannet_progress")
    return function(done)
        local seconds = now() - begun
        if not done and seconds - last < 0.2 then return end
        last = seconds
        position(handle, at)
        if not call then return api.report(at, seconds, done and 1 or 0) end
        local packets, bytes = tonumber(at.packets), tonumber(at.bytes)
        local total = at.has_total ~= 0 and tonumber(at.total) or nil
        call({
            packets = packets, bytes = bytes, total = total, seconds = seconds, done = done,
            fraction = total and (total > 0 and min(bytes / total, 1) or 1) or nil,
            rate = seconds > 0 and packets / seconds or 0,
        })
    end
end

-- The private state of pipelines, which scripts cannot access.
local insides = setmetatable({}, { __mode = "k" })

local function make(handle, kind)
    local self = setmetatable({}, pipeline)
    insides[self] = {
        handle = ffi.gc(handle, api.stream_free), kind = kind, limit = -1,
        progress = inside.progress and reporter(handle, api.stream_progress) or nil,
    }
    return self
end

local function of(self, verb)
    local me = insides[self]
    if not me then error("call " .. verb .. " with a colon: pipeline:" .. verb .. "(...)", 3) end
    if me.used then error("this pipeline was read already", 3) end
    return me
end

-- Raises an error if an expression is not a string, or would read a file in the sandbox.
local function check_filter(expression)
    if type(expression) ~= "string" then error("filter wants an expression, a string", 3) end
    if inside.sandbox and find(expression, "@", 1, true) then
        error("the sandbox reads no lists from files", 3)
    end
end

-- Raises an error if a table of options has an unknown one.
local function check_options(verb, options, known)
    for name in pairs(options) do
        if not known[name] then error(verb .. " has no option '" .. tostring(name) .. "'", 3) end
    end
end

-- Opens captures by a function of the program.
local function open(verb, call, ...)
    local count = select("#", ...)
    if count == 0 then error(verb .. " wants the path of a capture", 3) end
    local paths = ffi.new("const char *[?]", count)
    -- Strings must be kept alive while the program reads them.
    local kept = {}
    for index = 1, count do
        local path = select(index, ...)
        if type(path) ~= "string" then
            error(format("%s: path %d is a %s, not a string", verb, index, type(path)), 3)
        end
        kept[index] = path
        paths[index - 1] = path
    end
    local handle = call(paths, count)
    if handle == nil then error(problem(), 3) end
    return handle
end

--- Opens captures and folders of captures, as one stream in the order of time. `-` is standard
-- input. Every format and compression that `gannet analyze` reads is read.
-- @param ... paths
-- @return a pipeline of packets
function gannet.input(...)
    return make(open("gannet.input", api.stream_open, ...), "packets")
end

--- Keeps the packets that match an expression of the capture filter language (pcap-filter).
function Pipeline:filter(expression)
    local me = of(self, "filter")
    if me.kind ~= "packets" then error("filter stands before dns: it is about packets", 2) end
    check_filter(expression)
    if api.stream_filter(me.handle, expression) ~= 0 then error(problem(), 2) end
    return self
end

--- Continues with the DNS messages of the packets: over UDP, and over reassembled TCP streams;
-- fragments are reassembled first.
-- @param ... ports of servers, default 53
function Pipeline:dns(...)
    local me = of(self, "dns")
    if me.kind ~= "packets" then error("these are DNS messages already", 2) end
    local count = select("#", ...)
    local ports = ffi.new("uint16_t[?]", max(count, 1), 53)
    for index = 1, count do
        local port = tonumber((select(index, ...)))
        if not port or port < 1 or port > 65535 then error("dns wants port numbers", 2) end
        ports[index - 1] = port
    end
    api.stream_dns(me.handle, ports, max(count, 1))
    me.kind = "messages"
    return self
end

local function only(which)
    return function(self)
        local me = of(self, which == 1 and "queries" or "responses")
        if me.kind ~= "messages" then error("dns() comes first", 2) end
        api.stream_only(me.handle, which)
        return self
    end
end

--- Keeps the queries among messages.
Pipeline.queries = only(1)

--- Keeps the responses among messages.
Pipeline.responses = only(2)

--- Pairs each query with its response: same addresses, ports, transport, id and question. `each`
-- receives views of both; the response is nil if none came in time.
-- @param timeout seconds to wait for a response in packet time, default 5
function Pipeline:join(timeout)
    local me = of(self, "join")
    if me.kind ~= "messages" then error("dns() comes first", 2) end
    timeout = timeout or 5
    if type(timeout) ~= "number" or not (timeout > 0 and timeout < 1e9) then
        error("join wants a timeout in seconds", 2)
    end
    api.stream_join(me.handle, timeout * 1e9)
    me.kind = "pairs"
    return self
end

--- Delays packets, messages or pairs until they are due, for functions of `each` and for written
-- captures. Due times count from the first of them, so delays do not add up. One of
-- `{ speed = 2 }` (captured gaps divided by this; 1 is the original speed), `{ rate = 1000 }` (items
-- a second), `{ gap = 0.001 }` (seconds between two), `{ shift = 0.001 }` (seconds added to each
-- gap; may be negative).
function Pipeline:pace(options)
    local me = of(self, "pace")
    local kinds = { speed = 0, rate = 1, gap = 1, shift = 2 }
    local name, value = next(type(options) == "table" and options or {})
    local other = name ~= nil and next(options, name) or nil
    local kind = kinds[name]
    if not kind or other ~= nil or type(value) ~= "number" or value ~= value or abs(value) > 1e9
        or (name ~= "shift" and value < 0) or ((name == "speed" or name == "rate") and value == 0) then
        error("pace wants one of { speed = }, { rate = }, { gap = }, { shift = } and a number", 2)
    end
    if name == "rate" then value = 1e9 / value elseif name ~= "speed" then value = value * 1e9 end
    api.stream_pace(me.handle, kind, value)
    me.paced = true
    return self
end

--- Ends the pipeline after `count` packets or messages.
function Pipeline:limit(count)
    local me = of(self, "limit")
    if type(count) ~= "number" or count < 0 or count % 1 ~= 0 then
        error("limit wants a whole number, 0 or more", 2)
    end
    me.limit = count
    return self
end

--- Runs the pipeline in several threads, including the script's. All of them read, filter, decode
-- and sum; a function given to `each` is called only in the script's thread, in the order of the
-- packets. So every result is the same for any number of threads. With `limit`, which depends on
-- order, verbs that sum run in one thread.
-- @param threads 1 to 256; by default the number of processors
function Pipeline:parallel(threads)
    local me = of(self, "parallel")
    if threads == nil then threads = api.processors() end
    if type(threads) ~= "number" or threads ~= floor(threads) or threads < 1
        or threads > 256 then
        error("parallel wants a number of threads, 1 to 256", 2)
    end
    api.stream_parallel(me.handle, threads)
    return self
end

--- Reports the progress of reading a few times a second: on standard error, or to a function with
-- `{packets=, bytes=, total=, fraction=, seconds=, rate=, done=}` (bytes on disk, total and fraction
-- nil for pipes, rate in packets per second). Standard output is not used.
-- @param call the function; by default a line on standard error
function Pipeline:progress(call)
    local me = of(self, "progress")
    if call ~= nil and type(call) ~= "function" then error("progress wants a function", 2) end
    me.progress = reporter(me.handle, api.stream_progress, call)
    return self
end

-- Iterates over arrays of records until the input ends; then raises its error, if any.
local function read(me)
    local n = api.stream_next(me.handle)
    if me.progress then me.progress(n <= 0) end
    if n > 0 then return n end
    if n < 0 then error(problem(), 3) end
    return nil
end

--- Calls a function with every packet, message or pair; returning false ends the pipeline.
-- Functions for pairs get the query, the response or nil, and the time between them in seconds.
-- @return their number
function Pipeline:each(call)
    local me = of(self, "each")
    if type(call) ~= "function" then error("each wants a function", 2) end
    me.used = true
    -- Views keep the handle alive, and with it the memory that they read.
    local state = { place = 0, n = 0, handle = me.handle }
    local meta = view(me.kind == "packets" and 1 or 2)(state)
    local count, place, limit = 0, 0, me.limit
    while limit ~= 0 do
        -- Reading the next batch invalidates all views; progress functions run after that.
        state.n = 0
        local n = read(me)
        if not n then break end
        local records = api.stream_records(me.handle)
        state.records, state.n = records, n
        state.names = api.stream_names(me.handle)
        local index = 0
        while index < n do
            local record = records[index]
            if me.paced then api.stream_wait(me.handle, record.time) end
            place = place + 1
            state.place = place
            local answer
            if me.kind == "pairs" then
                local response, took
                local query = setmetatable({ place, index }, meta)
                if record.has_pair ~= 0 then
                    index = index + 1
                    local other = records[index]
                    response = setmetatable({ place, index }, meta)
                    took = tonumber(other.time - record.time) / 1e9
                end
                answer = call(query, response, took)
            else
                answer = call(setmetatable({ place, index }, meta))
            end
            index = index + 1
            count = count + 1
            if answer == false or count == limit then
                limit = 0
                break
            end
        end
        state.place = 0
    end
    state.place, state.n = 0, 0
    return count
end

-- Continues a native verb until it is done; errors are raised at the given level.
local function finish(me, level)
    while true do
        local more = api.stream_step(me.handle)
        if more < 0 then error(problem(), level) end
        if me.progress then me.progress(more == 0) end
        if more == 0 then return end
    end
end

-- Fields that native code can group by.
local groups = {
    src = 1, dst = 2, sport = 3, dport = 4, proto = 5, transport = 5, len = 6, qname = 7, qtype = 8,
    qclass = 9, rcode = 10, opcode = 11, id = 12, qr = 13,
}

-- Adds up a field natively, or 1 for each item, by fields.
local function sum(me, verb, value, ...)
    local count = select("#", ...)
    local fields = ffi.new("uint8_t[8]")
    for index = 1, count do
        local name = select(index, ...)
        local group = groups[name]
        if not group or (group > 6 and me.kind == "packets") then
            error(format("%s cannot group %s by '%s'", verb, me.kind, tostring(name)), 3)
        end
        fields[index - 1] = group
    end
    me.used = true
    api.stream_sum(me.handle, value, fields, count, me.limit)
    finish(me, 4)
end

local function wants_len(verb, field)
    if field ~= "len" then
        error(format("%s adds up 'len', not '%s'", verb, tostring(field)), 3)
    end
end

--- Counts packets, messages or pairs.
function Pipeline:count()
    local me = of(self, "count")
    sum(me, "count", 0)
    return tonumber(api.stream_total(me.handle, 0))
end

--- Adds up a field, natively.
-- @param field "len": bytes on the wire of packets, or of messages
function Pipeline:sum(field)
    local me = of(self, "sum")
    wants_len("sum", field)
    sum(me, "sum", groups.len)
    return tonumber(api.stream_total(me.handle, 0))
end

local Counts = {}

-- The counts of a pipeline.
local sums = setmetatable({}, { __mode = "k" })

local function sums_of(self, verb)
    local mine = sums[self]
    if not mine then error("call " .. verb .. " with a colon: counts:" .. verb .. "(...)", 3) end
    return mine
end

-- The first `n` rows in order of count.
local function top(mine, n)
    api.stream_total(mine.handle, n)
    local list = {}
    local key, len = ffi.new("const char *[1]"), ffi.new("uint32_t[1]")
    for row = 0, n - 1 do
        local count = tonumber(api.stream_row(mine.handle, row, key, len))
        list[row + 1] = { key = str(key[0], len[0]), count = count }
    end
    return list
end

-- The count of a key, nil if the key does not exist.
local function count_of(mine, key)
    if not mine.by_key then
        mine.by_key = {}
        for _, row in ipairs(top(mine, mine.rows)) do mine.by_key[row.key] = row.count end
    end
    if type(key) == "number" then key = tostring(key) end
    return mine.by_key[key]
end

local counts = {
    -- Methods take precedence: a key comes from traffic and must not hide a method.
    __index = function(self, name) return Counts[name] or count_of(sums[self], name) end,
    __metatable = "counts",
}

-- The counts keep the pipeline's handle alive.
local function counts_of(me)
    local self = setmetatable({}, counts)
    sums[self] = { handle = me.handle, rows = tonumber(api.stream_rows(me.handle)) }
    return self
end

--- Counts by fields, natively: `count_by("qname")`, `count_by("src", "rcode")`. Fields are src,
-- dst, sport, dport, proto, len, and of messages qname, qtype, qclass, rcode, opcode, id, qr.
-- @return counts: `counts[key]` or `counts:get(key)`, `counts:top(n)`, `counts:each(f)`, `counts:keys()`,
-- `counts:total()`. Keys are text, also those of numbers: `"3"` for NXDOMAIN of `count_by("rcode")`, and a tab
-- separates the values of several fields. `counts[3]` is the same as `counts["3"]`.
function Pipeline:count_by(...)
    local me = of(self, "count_by")
    if select("#", ...) < 1 or select("#", ...) > 8 then
        error("count_by wants one to eight fields", 2)
    end
    sum(me, "count_by", 0, ...)
    return counts_of(me)
end

--- Adds up a field by others, natively: `sum_by("len", "src")` is bytes by sender.
-- @param field "len": bytes on the wire of packets, or of messages
-- @param ... fields as for `count_by`
-- @return counts as from `count_by`, with sums
function Pipeline:sum_by(field, ...)
    local me = of(self, "sum_by")
    wants_len("sum_by", field)
    if select("#", ...) < 1 or select("#", ...) > 8 then
        error("sum_by wants one to eight fields to group by", 2)
    end
    sum(me, "sum_by", groups.len, ...)
    return counts_of(me)
end

--- The keys with the highest counts, all or `n` of them: a list of `{key=, count=}`, ties by key.
function Counts:top(n)
    local mine = sums_of(self, "top")
    if n == nil then n = mine.rows end
    if type(n) ~= "number" or not (n >= 0) then error("top wants how many, a number", 2) end
    return top(mine, min(floor(n), mine.rows))
end

--- The count of a key, 0 if there is none. `counts[key]` is nil then, and a method for a key with the name of one
-- (`top`).
-- @param key text or a number
function Counts:get(key)
    local mine = sums_of(self, "get")
    if type(key) ~= "string" and type(key) ~= "number" then error("get wants a key, text or a number", 2) end
    return count_of(mine, key) or 0
end

--- Calls a function with every key and count, highest count first.
function Counts:each(call)
    local mine = sums_of(self, "each")
    if type(call) ~= "function" then error("each wants a function", 2) end
    for _, row in ipairs(top(mine, mine.rows)) do call(row.key, row.count) end
end

--- The sum of all counts.
function Counts:total()
    return tonumber(api.stream_total(sums_of(self, "total").handle, 0))
end

--- The number of keys.
function Counts:keys()
    return sums_of(self, "keys").rows
end

--- The latencies of responses, natively: after `join`.
-- @return `{queries=, answered=, mean=, min=, p50=, p90=, p99=, max=}`, times in seconds
function Pipeline:latencies()
    local me = of(self, "latencies")
    if me.kind ~= "pairs" then error("join() comes first", 2) end
    me.used = true
    if api.stream_latencies(me.handle, me.limit) ~= 0 then error(problem(), 2) end
    finish(me, 3)
    local out = ffi.new("gannet_latencies")
    api.stream_measured(me.handle, out)
    local summary = { queries = tonumber(out.queries), answered = tonumber(out.answered) }
    for _, name in ipairs({ "mean", "min", "p50", "p90", "p99", "max" }) do
        summary[name] = out[name] / 1e9
    end
    return summary
end

-- Writes packets to captures: `how` is 0 for all of them to each, 1 in turn, 2 by client.
local function write(self, verb, list, how, weights, seed)
    local me = of(self, verb)
    if me.kind ~= "packets" then
        error(verb .. " stands before dns: it writes packets", 3)
    end
    if inside.sandbox then error("the sandbox writes no files", 3) end
    local paths, weighs = ffi.new("const char *[?]", #list), ffi.new("uint32_t[?]", #list)
    for index, path in ipairs(list) do
        if type(path) ~= "string" then error(verb .. " wants paths", 3) end
        paths[index - 1] = path
        weighs[index - 1] = tonumber(weights and weights[index] or 1) or 0
    end
    me.used = true
    if api.stream_write(me.handle, paths, #list, how, weighs, seed or -1, me.limit) ~= 0 then
        error(problem(), 3)
    end
    finish(me, 4)
    local counts = {}
    local key, len = ffi.new("const char *[1]"), ffi.new("uint32_t[1]")
    for index = 1, #list do
        counts[index] = tonumber(api.stream_row(me.handle, index - 1, key, len))
    end
    return counts
end

-- Changed packets: their bytes, and the fields that a capture stores with them.
local changed = setmetatable({}, { __mode = "k" })
local changed_packet = { __metatable = "changed packet" }
function changed_packet.__index(packet, name)
    local mine = changed[packet]
    local value = mine and mine[name]
    if value == nil then
        error("a changed packet has no field '" .. tostring(name) .. "' (it has bytes, caplen, len)", 2)
    end
    return value
end
function changed_packet.__newindex() error("a changed packet cannot be changed", 2) end

local change_names = { src = true, dst = true, sport = true, dport = true, payload = true, bytes = true }

local Packet = {}

--- Makes a packet with changes, for a function of `pipeline:write`: `src` and `dst`, addresses of the same version of IP; `sport` and
-- `dport`, ports of TCP and UDP; `payload`, that of TCP or UDP, a string. Lengths and checksums are
-- computed again, also where they were wrong; in packets that the capture or fragmentation cut,
-- checksums change as the addresses and ports do. `bytes` alone replaces the whole packet as it is.
-- Headers quoted in ICMP errors, inner packets of tunnels, link layers and payloads are not
-- changed.
--
-- The result is a value that may be kept, with the fields `bytes`, `caplen` and `len`. What a packet cannot have (a port without TCP or
-- UDP, an address without IP) is an error.
--
--     p:with({ src = "10.0.0.1", sport = 5353 })
-- @param changes a table
-- @return a packet to write
function Packet:with(changes)
    if type(changes) ~= "table" then blame("with wants a table of changes") end
    for name in pairs(changes) do
        if not change_names[name] then blame("with has no change '" .. tostring(name) .. "'") end
    end
    local made = setmetatable({}, changed_packet)
    local bytes = changes.bytes
    if bytes ~= nil then
        if type(bytes) ~= "string" or next(changes, next(changes)) ~= nil then
            blame("bytes is a string, and the only change")
        end
        changed[made] = { bytes = bytes, caplen = #bytes, len = #bytes, time = self.time, link_type = self.link_type }
        return made
    end
    local change = ffi.new("gannet_change")
    change.sport, change.dport = -1, -1
    for _, name in ipairs({ "src", "dst", "payload" }) do
        local value = changes[name]
        if value ~= nil and type(value) ~= "string" then blame(name .. " is a string") end
        change[name] = value
    end
    for _, name in ipairs({ "sport", "dport" }) do
        local value = changes[name]
        if value ~= nil then
            if type(value) ~= "number" or value ~= floor(value) or value < 0 or value > 65535 then
                blame(name .. " is a number from 0 to 65535")
            end
            change[name] = value
        end
    end
    change.payload_len = changes.payload and #changes.payload or 0
    local out, wire_len = ffi.new("const char *[1]"), ffi.new("uint32_t[1]")
    local len = api.packet_with(self, change, out, wire_len)
    if len < 0 then blame(problem()) end
    changed[made] = {
        bytes = str(out[0], len), caplen = tonumber(len), len = wire_len[0], time = self.time, link_type = self.link_type,
    }
    return made
end
inside.with = Packet.with

-- Writes the result of a function for each packet.
local function write_changed(self, path, call)
    local me = of(self, "write")
    if me.kind ~= "packets" then error("write stands before dns: it writes packets", 3) end
    if inside.sandbox then error("the sandbox writes no files", 3) end
    me.used = true
    local handle, limit = me.handle, me.limit
    local paths, weights = ffi.new("const char *[1]"), ffi.new("uint32_t[1]", 1)
    paths[0] = path
    if api.stream_write(handle, paths, 1, 0, weights, -1, -1) ~= 0 then error(problem(), 3) end
    local state = { place = 0, n = 0, handle = handle }
    local meta = view(1)(state)
    local taken, count, wrong = 0, 0, nil
    while taken ~= limit do
        state.n = 0
        local n = api.stream_next(handle)
        if me.progress then me.progress(n <= 0) end
        if n < 0 then wrong = problem() end
        if n <= 0 then break end
        local records = api.stream_records(handle)
        state.records, state.n = records, n
        for index = 0, n - 1 do
            local record = records[index]
            if me.paced then api.stream_wait(handle, record.time) end
            taken = taken + 1
            state.place = taken
            local answer = call(setmetatable({ taken, index }, meta))
            local mine = changed[answer]
            local put = 0
            if mine then
                put = api.stream_put(handle, mine.time, mine.link_type, mine.bytes, mine.caplen, mine.len)
            elseif answer == nil or answer == true then
                put = api.stream_put(handle, record.time, record.link_type, record.bytes, record.len, record.wire_len)
            elseif answer ~= false then
                error("a function of write returns a packet of with, nil or false, not a " .. type(answer), 3)
            end
            if put ~= 0 then error(problem(), 3) end
            if answer ~= false then count = count + 1 end
            if taken == limit then break end
        end
        state.place = 0
    end
    state.place, state.n = 0, 0
    if api.stream_end(handle) ~= 0 then error(problem(), 3) end
    if wrong then error(wrong, 3) end
    return count
end

--- Writes the packets to a capture: format and compression by the suffix, `-` is standard output. A function may change them: it
-- gets each packet and returns one of `packet:with`, nothing for the packet as it is, or false to leave it out. Where it raises an
-- error, no capture is made.
--
--     gannet.input(arg[2]):write("anonymous.pcap", function(p)
--         if p.src then return p:with({ src = anonymous(p.src), dst = anonymous(p.dst) }) end
--     end)
-- @param path of the capture
-- @param change a function
-- @return the number of packets that were written
function Pipeline:write(path, change)
    if type(path) ~= "string" then error("write wants a path", 2) end
    if change == nil then return write(self, "write", { path }, 0)[1] end
    if type(change) ~= "function" then error("write wants a function that changes packets", 2) end
    -- No tail call: the error's level counts this function.
    local count = write_changed(self, path, change)
    return count
end

local ways = { copy = 0, turn = 1, client = 2 }

--- Distributes the packets to several captures: `"turn"`, one packet to each in turn; `"client"`,
-- all packets of a source address to one (packets other than IP to none); `"copy"`, all to each.
--
--     gannet.input(arg[2]):split({ "a.pcap", "b.pcap" }, "client", { weights = { 3, 2 } })
-- @param paths of the captures
-- @param by how, default "turn"
-- @param options by client, `weights` of the captures, and `seed`, a number to distribute at random and not
-- one after the other
-- @return a list of the number of packets of each
function Pipeline:split(paths, by, options)
    if type(paths) ~= "table" or #paths == 0 then error("split wants a list of paths", 2) end
    local how = ways[by or "turn"]
    if not how then error("split goes by 'turn', 'client' or 'copy'", 2) end
    options = options or {}
    if type(options) ~= "table" then error("options of split are a table", 2) end
    check_options("split", options, { weights = true, seed = true })
    local seed = options.seed
    if seed ~= nil and (type(seed) ~= "number" or seed < 0 or seed >= 2 ^ 31) then
        error("a seed is a number from 0 to 2^31 - 1", 2)
    end
    -- No tail call: the error's level counts this function.
    local counts = write(self, "split", paths, how, options.weights, seed)
    return counts
end

-- Parts of the module that most scripts do not use are loaded at the first use; in the sandbox
-- before the script.
local parts = { analyze = "gannet.events", client = "gannet.client", respdiff = "gannet.respdiff" }
local function part(name)
    inside.load(parts[name])()(gannet, problem, open, reporter, check_filter, check_options)
    return rawget(gannet, name)
end
if inside.sandbox then
    for name in pairs(parts) do part(name) end
    view(1)
else
    setmetatable(gannet, { __index = function(_, name) 
        return parts[name] and part(name) or nil
    end })
end

--- gannet's version.
gannet.version = str(api.version())

local function named(which)
    return {
        __index = function(_, number) return view(which)[number] end,
        __newindex = function() error("read only", 2) end,
        __metatable = "names",
    }
end

--- Names of record types by number.
gannet.types = setmetatable({}, named(3))

--- Names of response codes by number.
gannet.rcodes = setmetatable({}, named(4))

return gannet
