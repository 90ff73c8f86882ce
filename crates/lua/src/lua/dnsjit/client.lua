-- dnsjit.output.udpcli, .tcpcli, .tlscli and .dnscli.
--
-- Over streams a message is sent with its length before it, once: a length captured with TCP
-- payload is not sent twice, and is omitted over UDP.
local name, inside = ...
require("dnsjit.core.objects")
local api, ffi = inside.api.clients, inside.ffi
local what = name:match("[^.]+$")
local log = require("dnsjit.core.log").new("output." .. what)
local generic = ffi.typeof("core_object_t *")

local NONBLOCKING, UDP, TCP, TLS = 0x1, 0x10, 0x20, 0x30
local kinds = { udpcli = 0, tcpcli = 1, tlscli = 2 }
local modes = { [UDP] = 0, [TCP] = 1, [TLS] = 2 }

local Client = {}
Client.__index = Client

local function new(mode)
    local kind, no_wait = kinds[what], false
    if what == "dnscli" then
        mode = mode or UDP
        no_wait = mode % 2 == NONBLOCKING
        kind = modes[mode - mode % 2]
        if not kind then log:fatal("invalid mode " .. tostring(mode)) end
    end
    local self = setmetatable({
        kind = kind, no_wait = no_wait, sent = 0, got = 0, failed = 0, late = 0, seconds = 5,
        time = ffi.new("core_timespec_t", 5, 0),
        bytes = ffi.new("const uint8_t *[1]"), len = ffi.new("uint32_t[1]"),
        struct = ffi.new("core_object_payload_t"),
    }, Client)
    self.obj = self
    self.struct.obj_type = 40
    self.pointer = ffi.cast(generic, self.struct)
    return self
end

function Client:log() return log end

function Client:timeout(sec, nsec)
    if sec == nil then return self.time end
    self.time.sec, self.time.nsec = sec, nsec or 0
    self.seconds = tonumber(sec) + tonumber(nsec or 0) / 1e9
    if self.handle then api.set(self.handle, self.seconds, self.no_wait and 1 or 0) end
end

function Client:connect(host, port)
    local handle = api.open(self.kind, tostring(host), tostring(port), self.seconds)
    if handle == nil then
        log:critical("%s", ffi.string(inside.api.last_error()))
        return -1
    end
    self.handle = ffi.gc(handle, api.free)
    api.set(handle, self.seconds, self.no_wait and 1 or 0)
    return 0
end

function Client:nonblocking(value)
    if value ~= nil then
        self.no_wait = value == true or value == 1
        if self.handle then api.set(self.handle, self.seconds, self.no_wait and 1 or 0) end
    end
    return self.no_wait
end

-- The message, and whether its length must be sent before it.
local function message_of(obj)
    local top = ffi.cast(generic, obj)
    if top.obj_type == 50 then
        local dns = ffi.cast("const core_object_dns_t *", top)
        if dns.len > 0 then
            if dns.includes_dnslen ~= 0 and dns.len >= 2 then return dns.payload + 2, dns.len - 2 end
            return dns.payload, dns.len
        end
    end
    while top ~= nil and top.obj_type ~= 40 do top = ffi.cast(generic, top.obj_prev) end
    if top == nil then return nil end
    local payload = ffi.cast("const core_object_payload_t *", top)
    local at, len = payload.payload, payload.len
    if payload.gannet_over == 31 and len >= 2 and at[0] * 256 + at[1] == len - 2 then
        return at + 2, len - 2
    end
    return at, len
end

function Client:send(obj)
    local bytes, len = message_of(obj)
    if bytes == nil or not self.handle or api.send(self.handle, bytes, len, 1) ~= 0 then
        self.failed = self.failed + 1
        return -1
    end
    self.sent = self.sent + 1
    return 0
end

function Client:receive() return Client.send, self end

-- An empty payload if nothing arrived in time; nil if the connection broke.
local function produce(self)
    local struct = self.struct
    struct.payload, struct.len, struct.padding = nil, 0, 0
    local rc = api.receive(self.handle, self.bytes, self.len)
    if rc < 0 then
        -- For datagrams, an error means that an earlier one did not arrive.
        self.failed = self.failed + 1
        return self.kind == 0 and self.pointer or nil
    end
    if rc == 0 then
        if not self.no_wait then self.late = self.late + 1 end
        return self.pointer
    end
    self.got = self.got + 1
    struct.payload, struct.len = self.bytes[0], self.len[0]
    -- dnscli returns messages of streams with the length before them, the other modules without.
    if self.kind ~= 0 and what ~= "dnscli" then
        struct.payload, struct.len = struct.payload + 2, struct.len - 2
    end
    return self.pointer
end

function Client:produce()
    if not self.handle then log:fatal("not connected") end
    return produce, self
end

function Client:packets() return self.sent end
function Client:received() return self.got end
function Client:errors() return self.failed end
function Client:timeouts() return self.late end

return { new = new, UDP = UDP, TCP = TCP, TLS = TLS, NONBLOCKING = NONBLOCKING }
