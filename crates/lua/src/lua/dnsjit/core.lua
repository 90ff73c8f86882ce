-- dnsjit.core.log, .channel, .thread, .loader, .file, .compat, .receiver and .producer.
local name, inside = ...
local ffi = inside.ffi

if name == "dnsjit.core.log" then
    local levels = { debug = true, info = true, notice = true, warning = true }
    local Log = {}
    Log.__index = Log
    local global = setmetatable({ on = {} }, Log)
    local show_line = false

    -- Methods apply to an object, to a module or, called with a dot, to all modules:
    -- log.enable("all").
    local function split(self, ...)
        if type(self) == "table" then return self, ... end
        return global, self, ...
    end
    local function switch(value)
        return function(...)
            local self, level = split(...)
            if level == "all" then
                for one in pairs(levels) do self.on[one] = value end
            elseif levels[level] then
                self.on[level] = value
            else
                error("invalid log level: " .. tostring(level), 2)
            end
        end
    end
    Log.enable, Log.disable, Log.clear = switch(true), switch(false), switch(nil)
    function Log.display_file_line(...)
        local _, value = split(...)
        show_line = value ~= false
    end
    function Log.new(own, module)
        local parent = type(module) == "table" and module or global
        return setmetatable({ name = own, parent = parent, on = {} }, Log)
    end
    function Log:log() return self end
    local function is_on(self, level)
        if not levels[level] then return true end
        while self do
            if self.on[level] ~= nil then return self.on[level] end
            self = self.parent
        end
        return false
    end
    local function say(level)
        return function(...)
            local self, text = split(...)
            if not is_on(self, level) then return end
            local arguments = { select(type((...)) == "table" and 3 or 2, ...) }
            if #arguments > 0 then text = tostring(text):format(unpack(arguments)) end
            local place = ""
            if show_line then
                local info = debug.getinfo(2, "Sl")
                place = info.short_src .. ":" .. info.currentline .. " "
            end
            io.stderr:write(place, self.name and self.name .. " " or "", level, ": ", tostring(text), "\n")
            if level == "fatal" then os.exit(1, true) end
        end
    end
    for _, level in ipairs({ "debug", "info", "notice", "warning", "critical", "fatal" }) do
        Log[level] = say(level)
    end
    function Log.errstr(number)
        ffi.cdef("char *strerror(int number);")
        return ffi.string(ffi.C.strerror(number))
    end
    return Log
end

if name == "dnsjit.core.channel" then
    require("dnsjit.core.objects")
    local threads = inside.api.threads
    local log = require("dnsjit.core.log").new("core.channel")
    local pointer, generic = ffi.typeof("void *"), ffi.typeof("core_object_t *")
    local word = ffi.new("void *[1]")
    -- A queue of pointers between two threads. It never drops one: put() blocks while it is full.
    -- If no other thread holds the channel, or those that held it have ended, put() would block
    -- forever: it then empties the channel into its receiver or raises an error, and get() returns
    -- nil.
    local Channel = {}
    function Channel.__index(self, key)
        if key == "closed" then return threads.ring_closed(rawget(self, "ring")) end
        return Channel[key]
    end
    local function of(ring)
        local self = setmetatable({ ring = ffi.gc(ring, threads.ring_free) }, Channel)
        rawset(self, "obj", self)
        return self
    end
    local function new(capacity)
        capacity = capacity or 2048
        if capacity < 4 or math.log(capacity) / math.log(2) % 1 ~= 0 then
            log:fatal("invalid capacity, must be a power of two and at least 4")
        end
        return of(threads.ring_new(capacity))
    end
    function Channel:log() return log end
    function Channel:share()
        return ffi.cast(pointer, self.ring), "core_channel_t *", "dnsjit.core.channel"
    end
    function Channel:size() return threads.ring_len(self.ring) end
    function Channel:full()
        return threads.ring_len(self.ring) >= threads.ring_capacity(self.ring)
    end
    function Channel:close() threads.ring_close(self.ring) end
    function Channel:try_put(obj) return threads.ring_try_put(self.ring, ffi.cast(pointer, obj)) end
    function Channel:put(obj)
        obj = ffi.cast(pointer, obj)
        if threads.ring_try_put(self.ring, obj) == 0 then return end
        if self.recv and threads.ring_alone(self.ring) ~= 0 then self:run() end
        if threads.ring_put(self.ring, obj) ~= 0 then
            error(threads.ring_closed(self.ring) ~= 0 and "the channel is closed"
                or "the channel is full, and no other thread empties it", 2)
        end
    end
    local function take(self, wait)
        if threads.ring_take(self.ring, wait, word) ~= 0 then return nil end
        return word[0] ~= nil and word[0] or nil
    end
    function Channel:get() return take(self, 1) end
    function Channel:try_get() return take(self, 0) end
    function Channel:receive() return Channel.put, self end
    function Channel:receiver(o)
        rawset(self, "recv", nil)
        local recv, ctx = o:receive()
        rawset(self, "recv", recv)
        rawset(self, "rctx", ctx)
    end
    -- Passes on items until the channel is closed, or a nil arrives.
    function Channel:run()
        local recv, ctx, ring = self.recv, self.rctx, self.ring
        while threads.ring_take(ring, 1, word) == 0 and word[0] ~= nil do
            recv(ctx, ffi.cast(generic, word[0]))
        end
    end
    return { new = new, _of = of }
end

if name == "dnsjit.core.thread" then
    require("dnsjit.core.objects")
    local threads = inside.api.threads
    local log = require("dnsjit.core.log").new("core.thread")
    local Thread = {}
    Thread.__index = Thread
    local item = ffi.typeof("gannet_item")
    local function new()
        return setmetatable({ handle = ffi.gc(threads.thread_new(), threads.thread_free) }, Thread)
    end
    function Thread:log() return log end
    function Thread:start(call)
        local code = string.dump(call)
        if threads.thread_start(self.handle, code, #code) == 0 then return 0 end
        log:critical("%s", ffi.string(inside.api.last_error()))
        return -1
    end
    -- Waits for the end of the thread; returns -1 if it raised an error, which is printed to
    -- standard error.
    function Thread:stop()
        if threads.thread_stop(self.handle) == 0 then return 0 end
        log:critical("%s", ffi.string(inside.api.last_error()))
        return -1
    end
    function Thread:push(...)
        for index = 1, select("#", ...) do
            local value = select(index, ...)
            local raw = item()
            if type(value) == "number" then
                raw.number = value
            elseif type(value) == "string" then
                raw.text, raw.len = value, #value
            elseif type(value) == "table" and value.ring then
                raw.ring = value.ring
            else
                error("push takes numbers, strings and channels, not a " .. type(value), 2)
            end
            threads.thread_push(self.handle, raw)
        end
    end
    -- Waits for values; returns nil once stop() was called and no values remain.
    local function pop(self)
        local raw = item()
        local kind = threads.thread_pop(self.handle, raw)
        if kind == 1 then return tonumber(raw.number) end
        if kind == 2 then return ffi.string(raw.text, raw.len) end
        if kind == 3 then return require("dnsjit.core.channel")._of(raw.ring) end
        return nil
    end
    function Thread:pop(count)
        local values = {}
        for index = 1, count or 1 do
            values[index] = pop(self)
            if values[index] == nil then break end
        end
        return unpack(values, 1, count or 1)
    end
    local function enter(pointer, code)
        local own = setmetatable({ handle = ffi.cast("gannet_thread *", pointer) }, Thread)
        local ok, problem = xpcall(function() loadstring(code)(own) end, debug.traceback)
        if not ok then error(problem, 0) end
    end
    return { new = new, _enter = enter }
end

if name == "dnsjit.core.loader" then
    return { load = function(library, global) return ffi.load(library, global ~= false) end }
end
if name == "dnsjit.core.file" then
    return { exists = function(path)
        local file = io.open(path)
        if file then file:close() end
        return file ~= nil
    end }
end
return {}
