-- dnsjit.core.log, .channel, .loader, .file, .compat, .receiver and .producer.
local name, inside = ...
local ffi = inside.ffi

if name == "dnsjit.core.log" then
    local levels = { debug = true, info = true, notice = true, warning = true }
    local Log = {}
    Log.__index = Log
    local global = setmetatable({ on = {} }, Log)
    local show_line = false

    -- Methods work on an object, on a module and, called with a dot, on all: log.enable("all").
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
    local log = require("dnsjit.core.log").new("core.channel")
    local pointer = ffi.typeof("void *")
    -- A queue of pointers. It never loses one: put() into a full channel drains it into the
    -- receiver, or says that nobody empties it.
    local Channel = {}
    Channel.__index = Channel
    local function new(capacity)
        capacity = capacity or 2048
        if capacity < 4 or math.log(capacity) / math.log(2) % 1 ~= 0 then
            log:fatal("invalid capacity, must be a power of two and at least 4")
        end
        local self = setmetatable({ first = 1, last = 0, capacity = capacity, closed = 0 }, Channel)
        self.obj = self
        return self
    end
    function Channel:log() return log end
    function Channel:size() return self.last - self.first + 1 end
    function Channel:full() return self:size() >= self.capacity end
    function Channel:close() self.closed = 1 end
    function Channel:try_put(obj)
        if self:full() then return -1 end
        self.last = self.last + 1
        self[self.last] = ffi.cast(pointer, obj)
        return 0
    end
    function Channel:put(obj)
        if self:full() and self.recv then self:run() end
        if self:try_put(obj) ~= 0 then
            error("the channel is full, and nobody empties it in this thread", 2)
        end
    end
    function Channel:try_get()
        if self:size() == 0 then return nil end
        local obj = self[self.first]
        self[self.first] = nil
        self.first = self.first + 1
        return obj
    end
    Channel.get = Channel.try_get
    function Channel:receive() return Channel.put, self end
    function Channel:receiver(o) self.recv, self.rctx = o:receive() end
    function Channel:run()
        while self:size() > 0 do
            self.recv(self.rctx, ffi.cast("core_object_t *", self:try_get()))
        end
    end
    return { new = new }
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
