-- dnsjit.output.pcap, .null, .udpcli and .dnscli (UDP), and dnsjit.input.zero.
local name, inside = ...
require("dnsjit.core.objects")
local ffi = inside.ffi
local log = require("dnsjit.core.log").new(name:gsub("^dnsjit%.", ""))
local generic = ffi.typeof("core_object_t *")
local what = name:match("[^.]+$")

local function find(obj, kind)
    local at = ffi.cast(generic, obj)
    while at ~= nil and at.obj_type ~= kind do at = ffi.cast(generic, at.obj_prev) end
    if at == nil then return nil end
    return inside.object_cast(at)
end

if what == "pcap" then
    local Pcap = {}
    Pcap.__index = Pcap
    local function pack(format, ...)
        return ffi.string(ffi.new(format, ...), ffi.sizeof(format))
    end
    ffi.cdef([[
    typedef struct gannet_pcap_file {
        uint32_t magic; uint16_t major, minor; int32_t zone; uint32_t figures, snaplen, network;
    } gannet_pcap_file_t;
    typedef struct gannet_pcap_packet { uint32_t sec, nsec, caplen, len; } gannet_pcap_packet_t;
    ]])
    -- With nanoseconds, so that no time is cut.
    function Pcap:open(path, linktype, snaplen)
        local file, problem = path == "-" and io.stdout or io.open(path, "wb")
        if not file then
            log:critical(problem or ("cannot open " .. path))
            return -1
        end
        self.file, self.errors = file, 0
        file:write(pack("gannet_pcap_file_t", 0xa1b23c4d, 2, 4, 0, 0, snaplen or 262144, linktype))
        return 0
    end
    function Pcap:close()
        if self.file and self.file ~= io.stdout and not self.file:close() then self.errors = 1 end
        self.file = nil
    end
    function Pcap:have_errors() return self.errors ~= 0 end
    function Pcap:log() return log end
    function Pcap:receive()
        if not self.file then log:fatal("no PCAP opened") end
        return function(this, obj)
            local pcap = find(obj, 1)
            if not pcap then return end
            local head = pack("gannet_pcap_packet_t", ffi.cast("uint32_t", pcap.ts.sec),
                ffi.cast("uint32_t", pcap.ts.nsec), pcap.caplen, pcap.len)
            if not this.file:write(head, ffi.string(pcap.bytes, pcap.caplen)) then this.errors = 1 end
        end, self
    end
    return { new = function() return setmetatable({ errors = 0 }, Pcap) end }
end

if what == "null" then
    local Null = {}
    Null.__index = Null
    function Null:log() return log end
    function Null:receive() return function(this) this.count = this.count + 1 end, self end
    function Null:producer(o) self.prod, self.pctx = o:produce() end
    function Null:run(n)
        local left = n and tonumber(n) or -1
        while left ~= 0 and self.prod(self.pctx) ~= nil do
            self.count, left = self.count + 1, left - 1
        end
    end
    function Null:packets() return self.count end
    return { new = function() return setmetatable({ count = 0 }, Null) end }
end

if what == "zero" then
    local Zero = {}
    Zero.__index = Zero
    local struct = ffi.new("core_object_null_t")
    struct.obj_type = 11
    local pointer = ffi.cast(generic, struct)
    function Zero:log() return log end
    function Zero:receiver(o) self.recv, self.rctx = o:receive() end
    function Zero:produce() return function() return pointer end, self end
    function Zero:run(n)
        for _ = 1, tonumber(n) do self.recv(self.rctx, pointer) end
    end
    return { new = function() return setmetatable({}, Zero) end }
end

-- A client over UDP, by the system's own calls.
ffi.cdef([[
int socket(int domain, int type, int protocol);
int close(int fd);
int connect(int fd, const void *address, unsigned int length);
intptr_t send(int fd, const void *data, size_t size, int flags);
intptr_t recv(int fd, void *data, size_t size, int flags);
int setsockopt(int fd, int level, int name, const void *value, unsigned int length);
typedef struct gannet_addrinfo {
    int flags, family, socktype, protocol; unsigned int addrlen; void *addr; char *canonname;
    struct gannet_addrinfo *next;
} gannet_addrinfo_t;
int getaddrinfo(const char *node, const char *service, const gannet_addrinfo_t *hints,
    gannet_addrinfo_t **found);
void freeaddrinfo(gannet_addrinfo_t *found);
]])
local C = ffi.C
local DONTWAIT = 0x40
local Client = {}
Client.__index = Client

local function new(mode)
    if what == "dnscli" and mode % 8 ~= 1 then log:fatal("only UDP is there") end
    local self = setmetatable({ fd = -1, sent = 0, got = 0, failed = 0, late = 0, seconds = 5 }, Client)
    self.no_wait = what == "dnscli" and mode >= 8
    self.buffer = ffi.new("uint8_t[65536]")
    self.struct = ffi.new("core_object_payload_t")
    self.struct.obj_type = 40
    self.pointer = ffi.cast(generic, self.struct)
    return self
end
function Client:log() return log end
function Client:timeout(sec, nsec)
    self.seconds = tonumber(sec) + tonumber(nsec or 0) / 1e9
    if self.fd >= 0 then self:set_timeout() end
end
function Client:set_timeout()
    local value = ffi.new("int64_t[2]", math.floor(self.seconds), self.seconds % 1 * 1e6)
    C.setsockopt(self.fd, 1, 20, value, 16)
end
function Client:connect(host, port)
    local hints, found = ffi.new("gannet_addrinfo_t"), ffi.new("gannet_addrinfo_t *[1]")
    hints.socktype = 2
    if C.getaddrinfo(host, tostring(port), hints, found) ~= 0 then
        log:critical("cannot resolve " .. tostring(host) .. " " .. tostring(port))
        return -1
    end
    local first = found[0]
    self.fd = C.socket(first.family, 2, 0)
    local rc = self.fd < 0 and -1 or C.connect(self.fd, first.addr, first.addrlen)
    C.freeaddrinfo(first)
    if rc == 0 then self:set_timeout() end
    return rc
end
function Client:nonblocking(value)
    if value ~= nil then self.no_wait = value == true or value == 1 end
    return self.no_wait
end
local function bytes_of(obj)
    local top = ffi.cast(generic, obj)
    if top.obj_type == 50 then
        local dns = ffi.cast("const core_object_dns_t *", top)
        if dns.len > 0 then
            if dns.includes_dnslen ~= 0 then return dns.payload + 2, dns.len - 2 end
            return dns.payload, dns.len
        end
    end
    local payload = find(obj, 40)
    if not payload then return nil end
    return payload.payload, payload.len
end
function Client:send(obj)
    local data, len = bytes_of(obj)
    if data == nil then
        self.failed = self.failed + 1
        return -1
    end
    -- An error of an earlier datagram is told with the next one, which is then sent.
    local rc = C.send(self.fd, data, len, 0)
    if rc < 0 then rc = C.send(self.fd, data, len, 0) end
    if rc < 0 then
        self.failed = self.failed + 1
        return -1
    end
    self.sent = self.sent + 1
    return 0
end
function Client:receive() return function(this, obj) this:send(obj) end, self end
-- A payload without bytes where nothing came in time.
function Client:produce()
    return function(this)
        local n = tonumber(C.recv(this.fd, this.buffer, 65536, this.no_wait and DONTWAIT or 0))
        if n < 0 then
            n = 0
            if not this.no_wait then this.late = this.late + 1 end
        else
            this.got = this.got + 1
        end
        this.struct.payload, this.struct.len = this.buffer, n
        return this.pointer
    end, self
end
function Client:packets() return self.sent end
function Client:received() return self.got end
function Client:errors() return self.failed end
function Client:timeouts() return self.late end
return { new = function(mode) return new(mode or 1) end, UDP = 1, TCP = 2, TLS = 3, NONBLOCKING = 8 }
