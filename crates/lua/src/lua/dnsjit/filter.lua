-- dnsjit.filter.copy, .split, .ipsplit and .timing.
local name, inside = ...
require("dnsjit.core.objects")
local ffi, stages = inside.ffi, inside.api.stages
local log = require("dnsjit.core.log").new(name:gsub("^dnsjit%.", ""))
local generic = ffi.typeof("core_object_t *")

-- A chain of copies of the requested layers; the receiver must free it.
local Copy = {}
Copy.__index = Copy

local function copy_chain(self, obj)
    local first, last
    local at = ffi.cast(generic, obj)
    while at ~= nil do
        if self.wanted[at.obj_type] then
            local made = ffi.cast(generic, inside.object_copy(at))
            if last then last.obj_prev = made else first = made end
            last = made
        end
        at = ffi.cast(generic, at.obj_prev)
    end
    return first
end

function Copy:obj_type(number) self.wanted[number] = true end
function Copy:receiver(o) self.recv, self.rctx = o:receive() end
function Copy:log() return log end
function Copy:receive()
    return function(this, obj)
        local made = copy_chain(this, obj)
        if made then this.recv(this.rctx, made) end
    end, self
end

local Split = {}
Split.__index = Split

function Split:roundrobin() self.all = false end
function Split:sendall() self.all = true end
function Split:receiver(o)
    local recv, ctx = o:receive()
    self[#self + 1] = { recv, ctx }
end
function Split:log() return log end
function Split:receive()
    if #self == 0 then log:fatal("no receiver(s) set") end
    return function(this, obj)
        if this.all then
            for _, to in ipairs(this) do to[1](to[2], obj) end
            return
        end
        local to = this[this.at]
        this.at = this.at % #this + 1
        to[1](to[2], obj)
    end, self
end

-- By client: each source address is always assigned to the same receiver, by the same stage as in
-- gannet's pipelines. The stage is created with the first packet, when all receivers are known.
local IpSplit = {}
IpSplit.__index = IpSplit

function IpSplit:receiver(o, weight)
    weight = weight or 1
    if weight < 1 then log:fatal("weight must be a positive integer") end
    if self.handle then log:fatal("receivers are set before the first packet") end
    local recv, ctx = o:receive()
    self[#self + 1] = { recv = recv, ctx = ctx, weight = weight }
end
function IpSplit:log() return log end
function IpSplit:discarded() return self.lost end
function IpSplit:sequential() self.seed = nil end
function IpSplit:random(seed) self.seed = seed and seed % 2147483648 or self.seed or 1 end
function IpSplit:overwrite_none() self.overwrite = nil end
function IpSplit:overwrite_src() self.overwrite = "src" end
function IpSplit:overwrite_dst() self.overwrite = "dst" end

local function begin(self)
    local weights = ffi.new("uint32_t[?]", #self)
    for index, to in ipairs(self) do weights[index - 1] = to.weight end
    local handle = stages.split(weights, #self, self.seed or -1)
    if handle == nil then log:fatal(ffi.string(inside.api.last_error())) end
    self.handle = ffi.gc(handle, stages.split_free)
end

local number = ffi.new("uint32_t[1]")
function IpSplit:receive()
    if #self == 0 then log:fatal("no receiver(s) set") end
    return function(this, obj)
        local ip = ffi.cast(generic, obj)
        while ip ~= nil and ip.obj_type ~= 20 and ip.obj_type ~= 21 do
            ip = ffi.cast(generic, ip.obj_prev)
        end
        if ip == nil then
            this.lost = this.lost + 1
            return
        end
        if not this.handle then begin(this) end
        local is_v4 = ip.obj_type == 20
        ip = inside.object_cast(ip)
        local to = this[stages.split_output(this.handle, ip.src, is_v4 and 4 or 16, number) + 1]
        if this.overwrite then ffi.copy(ip[this.overwrite], number, 4) end
        to.recv(to.ctx, obj)
    end, self
end

-- Delays objects according to their capture times, by the same schedule as in gannet's pipelines:
-- relative to the first packet, so that delays do not add up; it sleeps for long gaps and polls the
-- clock for short ones.
local Timing = {}
Timing.__index = Timing

local SPEED, GAP, SHIFT = 0, 1, 2

local function set(self, kind, value)
    self.drift = nil
    self.schedule = ffi.gc(stages.schedule(kind, tonumber(value)), stages.schedule_free)
end

function Timing:keep() set(self, SPEED, 1) end
function Timing:increase(ns) set(self, SHIFT, ns) end
function Timing:reduce(ns) set(self, SHIFT, -ns) end
function Timing:multiply(factor) set(self, SPEED, 1 / factor) end
function Timing:fixed(ns) set(self, GAP, ns) end
function Timing:realtime(drift)
    self:keep()
    self.drift = (drift or 1) * 1e9
end
function Timing:log() return log end

local function wait(self, obj)
    local pcap = ffi.cast(generic, obj)
    while pcap ~= nil and pcap.obj_type ~= 1 do pcap = ffi.cast(generic, pcap.obj_prev) end
    if pcap == nil then return end
    local ts = ffi.cast("const core_object_pcap_t *", pcap).ts
    local late = stages.schedule_wait(self.schedule, ts.sec * 1000000000LL + ts.nsec)
    if self.drift and late > self.drift then
        log:fatal("aborting, real time drift exceeds the limit")
    end
end

function Timing:receiver(o) self.recv, self.rctx = o:receive() end
function Timing:receive()
    return function(this, obj)
        wait(this, obj)
        this.recv(this.rctx, obj)
    end, self
end
function Timing:producer(o) self.prod, self.pctx = o:produce() end
function Timing:produce()
    return function(this)
        local obj = this.prod(this.pctx)
        if obj == nil then return nil end
        wait(this, obj)
        return obj
    end, self
end

local makers = {
    copy = function() return setmetatable({ wanted = {} }, Copy) end,
    split = function() return setmetatable({ at = 1, all = false }, Split) end,
    ipsplit = function()
        return setmetatable({ lost = 0 }, IpSplit)
    end,
    timing = function()
        local self = setmetatable({}, Timing)
        self:keep()
        return self
    end,
}
local make = makers[name:match("[^.]+$")]
return {
    new = function()
        local self = make()
        self.obj = self
        return self
    end,
}
