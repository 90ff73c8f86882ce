-- dnsjit.filter.copy, .split, .ipsplit and .timing.
local name, inside = ...
require("dnsjit.core.objects")
local ffi = inside.ffi
local log = require("dnsjit.core.log").new(name:gsub("^dnsjit%.", ""))
local generic = ffi.typeof("core_object_t *")

-- A chain of copies of the layers that are asked for; whoever gets it frees it.
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

-- By client: each source address goes to one receiver for good.
local IpSplit = {}
IpSplit.__index = IpSplit

function IpSplit:receiver(o, weight)
    weight = weight or 1
    if weight < 1 then log:fatal("weight must be a positive integer") end
    local recv, ctx = o:receive()
    self[#self + 1] = { recv = recv, ctx = ctx, weight = weight, clients = 0 }
    self.total = self.total + weight
end
function IpSplit:log() return log end
function IpSplit:discarded() return self.lost end
function IpSplit:sequential() self.is_random = false end
function IpSplit:random(seed)
    self.is_random = true
    if seed then self.seed = seed % 2147483648 end
end
function IpSplit:overwrite_none() self.overwrite = nil end
function IpSplit:overwrite_src() self.overwrite = "src" end
function IpSplit:overwrite_dst() self.overwrite = "dst" end

-- The generator of C's example rand(), on 31 bits, so that a split is the same everywhere.
local function random(self)
    local low = self.seed % 65536
    local high = (self.seed - low) / 65536
    -- Products of a 16-bit part are exact in a double.
    local product = (low * 1103515245 + (high * 1103515245 % 65536) * 65536) % 2147483648
    self.seed = (product + 12345) % 2147483648
    return self.seed
end

local function assign(self)
    if self.is_random then
        local left = random(self) % self.total + 1
        while true do
            left = left - self[self.at].weight
            if left <= 0 then break end
            self.at = self.at % #self + 1
        end
    end
    local to = self[self.at]
    to.clients = to.clients + 1
    local client = { to = to, number = to.clients }
    if not self.is_random and to.clients % to.weight == 0 then self.at = self.at % #self + 1 end
    return client
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
        local is_v4 = ip.obj_type == 20
        ip = inside.object_cast(ip)
        local key = ffi.string(ip.src, is_v4 and 4 or 16)
        local client = this.known[key]
        if not client then
            client = assign(this)
            this.known[key] = client
        end
        if this.overwrite then
            number[0] = client.number
            ffi.copy(ip[this.overwrite], number, 4)
        end
        client.to.recv(client.to.ctx, obj)
    end, self
end

-- Delays objects as their captures were: on a schedule from the first packet, so that nothing adds
-- up, asleep for long gaps and awake for short ones.
local Timing = {}
Timing.__index = Timing

local clock, nap = ffi.new("gannet_time_t"), ffi.new("gannet_time_t")
local function now()
    ffi.C.clock_gettime(1, clock)
    return tonumber(clock.sec) * 1e9 + tonumber(clock.nsec)
end

function Timing:keep() self.due = function(_, gap) return gap end end
function Timing:increase(ns) self.due = function(_, gap) return gap + tonumber(ns) end end
function Timing:reduce(ns) self.due = function(_, gap) return math.max(gap - tonumber(ns), 0) end end
function Timing:multiply(factor) self.due = function(_, gap) return gap * factor end end
function Timing:fixed(ns) self.due = function() return tonumber(ns) end end
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
    local sec, nsec = ts.sec, ts.nsec
    if not self.start then
        self.start, self.sum = now(), 0
    else
        local gap = tonumber((sec - self.sec) * 1000000000LL + (nsec - self.nsec))
        self.sum = self.sum + math.max(self:due(gap), 0)
        local due = self.start + self.sum
        local left = due - now()
        if self.drift and -left > self.drift then
            log:fatal("aborting, real time drift exceeds the limit")
        end
        while left > 0 do
            if left > 200000 then
                local sleep = math.min(left - 150000, 1e9)
                nap.sec, nap.nsec = math.floor(sleep / 1e9), sleep % 1e9
                ffi.C.nanosleep(nap, nil)
            end
            left = due - now()
        end
    end
    self.sec, self.nsec = sec, nsec
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
        return setmetatable({ at = 1, total = 0, lost = 0, known = {}, seed = 1 }, IpSplit)
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
