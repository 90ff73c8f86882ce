-- dnsjit.output.pcap and .null, and dnsjit.input.zero.
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
    -- With nanoseconds, so that no time is truncated.
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
