-- dnsjit.input.*: all modules read every format and compression that gannet reads, independent of
-- the mapping, streaming or compression in their names.
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

-- Returns 0, or -1 if it cannot be opened or is not a capture, with a message on standard error.
function Input:open(path)
    if type(path) ~= "string" then error("open wants a path", 2) end
    local paths = ffi.new("const char *[1]", { path })
    local handle = api.stream_open(paths, 1)
    if handle == nil then
        log:critical(ffi.string(api.last_error()))
        return -1
    end
    self.handle = ffi.gc(handle, api.stream_free)
    -- The first batch is read at once, so that a file that is not a capture is reported here, and
    -- linktype() is known.
    self:next_batch()
    self.network = self.n > 0 and self.records[0].link_type or 1
    return 0
end
Input.open_offline = Input.open

-- Of the files opened by Lua, only standard input can be read.
function Input:openfp(file)
    if file ~= io.stdin then
        log:critical("openfp() reads standard input only")
        return -1
    end
    return self:open("-")
end

-- Live capture with a Linux packet socket, on one interface or, for `any` and `all`, on all of
-- them, with a LINUX_SLL header in place of each interface's own.
local SLL, ROOM = 113, 65536
local ALL = 0x0300

function Input:create(interface)
    if ffi.os ~= "Linux" then log:fatal("live capture is there on Linux only") end
    if not inside.packet_socket then
        ffi.cdef([[
        typedef struct gannet_sockaddr_ll {
            uint16_t family, protocol; int ifindex; uint16_t hatype; uint8_t pkttype, halen, addr[8];
        } gannet_sockaddr_ll_t;
        int socket(int domain, int type, int protocol);
        int close(int fd);
        int bind(int fd, const void *address, unsigned int length);
        int getsockname(int fd, void *address, unsigned int *length);
        unsigned int if_nametoindex(const char *name);
        intptr_t recvfrom(int fd, void *to, size_t size, int flags, void *from, unsigned int *length);
        int ioctl(int fd, unsigned long request, ...);
        ]])
        inside.packet_socket = true
    end
    self.interface = interface
    self.every = interface == "any" or interface == "all"
end

local function failed(self, doing)
    local text = require("dnsjit.core.log").errstr(ffi.errno())
    log:critical("%s: %s: %s", tostring(self.interface), doing, text)
    return -1
end

function Input:activate()
    if not self.interface then log:fatal("no interface: create() comes first") end
    local C = ffi.C
    local fd = C.socket(17, self.every and 2 or 3, ALL)
    if fd < 0 then return failed(self, "cannot open a packet socket") end
    self.fd = ffi.gc(ffi.new("int[1]", fd), function(own) C.close(own[0]) end)
    self.from, self.from_len = ffi.new("gannet_sockaddr_ll_t"), ffi.new("unsigned int[1]")
    self.network = SLL
    if not self.every then
        local index = C.if_nametoindex(self.interface)
        if index == 0 then return failed(self, "no such interface") end
        self.from.family, self.from.protocol, self.from.ifindex = 17, ALL, index
        if C.bind(fd, self.from, 20) ~= 0 then return failed(self, "cannot capture on it") end
        self.from_len[0] = 20
        C.getsockname(fd, self.from, self.from_len)
        -- Ethernet and loopback interfaces have an Ethernet header; others deliver bare IP.
        local kind = self.from.hatype
        self.network = (kind == 1 or kind == 772) and 1 or 101
    end
    self.buffer = ffi.new("uint8_t[?]", ROOM + 16)
    return 0
end

local function live(self)
    local C, fd, buffer, from = ffi.C, self.fd[0], self.buffer, self.from
    local len
    repeat
        self.from_len[0] = 20
        -- MSG_TRUNC: the result is the length on the wire.
        len = tonumber(C.recvfrom(fd, buffer + 16, ROOM, 0x20, from, self.from_len))
        if len < 0 and ffi.errno() ~= 4 then
            failed(self, "capture ended")
            return nil
        end
    until len >= 0
    local struct = self.struct
    -- SIOCGSTAMPNS: time of reception in the kernel.
    if C.ioctl(fd, 0x8907, ffi.cast("void *", struct.ts)) ~= 0 then
        C.clock_gettime(0, ffi.cast("gannet_time_t *", struct.ts))
    end
    local at, kept = buffer + 16, math.min(len, ROOM)
    if self.every then
        at, kept, len = buffer, kept + 16, len + 16
        buffer[0], buffer[1] = 0, from.pkttype
        buffer[2], buffer[3] = math.floor(from.hatype / 256), from.hatype % 256
        buffer[4], buffer[5] = 0, from.halen
        ffi.copy(buffer + 6, from.addr, 8)
        ffi.copy(buffer + 14, ffi.cast("uint8_t *", from) + 2, 2)
    end
    struct.snaplen, struct.linktype = ROOM, self.network
    struct.caplen, struct.len, struct.bytes = kept, len, at
    self.count = self.count + 1
    return self.pointer
end
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
        -- Everything before the damage was delivered; this message has its position.
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
    if self.fd then return live, self end
    if not self.handle then log:fatal("no PCAP opened") end
    return produce, self
end

function Input:receiver(o) self.recv, self.rctx = o:receive() end

-- Passes packets to the receiver to the end of the input, or `n` packets.
function Input:run(n)
    if not self.recv then log:fatal("no receiver set") end
    local recv, ctx, left = self.recv, self.rctx, n or -1
    if left == 0 then left = -1 end
    local next = self:produce()
    while left ~= 0 do
        local obj = next(self)
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
