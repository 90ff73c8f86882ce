-- dnsjit.input.*: all of them read every format and compression that gannet reads; what the names
-- promise (mapping, streaming, a compression) is how it is done anyway.
local name, inside = ...
require("dnsjit.core.objects")
local api, ffi = inside.api, inside.ffi
local log = require("dnsjit.core.log").new("input", name)

local Input = {}
Input.__index = Input

local function new()
    local self = setmetatable({ count = 0, at = 0, n = 0, is_swapped = 0, is_nanosec = 0 }, Input)
    self.obj = self
    self.struct = ffi.new("core_object_pcap_t")
    self.struct.obj_type = 1
    self.pointer = ffi.cast("core_object_t *", self.struct)
    return self
end

function Input:log() return log end

-- 0, or -1 where it cannot be opened or is no capture, which is said on standard error.
function Input:open(path)
    if type(path) ~= "string" then error("open wants a path", 2) end
    local paths = ffi.new("const char *[1]", { path })
    local handle = api.stream_open(paths, 1)
    if handle == nil then
        log:critical(ffi.string(api.last_error()))
        return -1
    end
    self.handle = ffi.gc(handle, api.stream_free)
    -- The first batch is read at once: what is no capture is said here, and linktype() is known.
    self:next_batch()
    self.network = self.n > 0 and self.records[0].link_type or 1
    return 0
end
Input.open_offline = Input.open

-- Standard input is all that can be read through a file that Lua opened.
function Input:openfp(file)
    if file ~= io.stdin then
        log:critical("openfp() reads standard input only")
        return -1
    end
    return self:open("-")
end

function Input:create() return log:fatal("live capture is not there") end
function Input:activate() return -1 end
function Input:fadvise_sequential() return 0 end
function Input:lz4() return self end
Input.zstd, Input.gzip, Input.lzma = Input.lz4, Input.lz4, Input.lz4
function Input:have_support() return true end

function Input:next_batch()
    self.at, self.n = 0, 0
    if self.done then return false end
    local n = api.stream_next(self.handle)
    if n <= 0 then
        self.done = true
        -- Damage is no end: what was before it is delivered, and this says where it is.
        if n < 0 then
            self.problem = ffi.string(api.last_error())
            log:critical(self.problem)
        end
        return false
    end
    self.records, self.n = api.stream_records(self.handle), n
    return true
end

local function produce(self)
    local at = self.at
    if at >= self.n then
        if not self.handle or not self:next_batch() then return nil end
        at = 0
    end
    local record, struct = self.records[at], self.struct
    self.at = at + 1
    self.count = self.count + 1
    local time = record.time
    local sec = time / 1000000000LL
    local nsec = time - sec * 1000000000LL
    if nsec < 0 then sec, nsec = sec - 1, nsec + 1000000000LL end
    struct.ts.sec, struct.ts.nsec = sec, nsec
    struct.snaplen, struct.linktype = 262144, record.link_type
    struct.caplen, struct.len, struct.bytes = record.len, record.wire_len, record.bytes
    return self.pointer
end

function Input:produce()
    if not self.handle then log:fatal("no PCAP opened") end
    return produce, self
end

function Input:receiver(o) self.recv, self.rctx = o:receive() end

-- Drives the receiver to the end of the input, or for `n` packets.
function Input:run(n)
    if not self.recv then log:fatal("no receiver set") end
    local recv, ctx, left = self.recv, self.rctx, n or -1
    if left == 0 then left = -1 end
    while left ~= 0 do
        local obj = produce(self)
        if obj == nil then return self.problem and -1 or 0 end
        recv(ctx, obj)
        left = left - 1
    end
    return 0
end
Input.loop, Input.dispatch = Input.run, Input.run

function Input:packets() return self.count end
function Input:linktype() return self.network end
function Input:snaplen() return 262144 end

return { new = new }
