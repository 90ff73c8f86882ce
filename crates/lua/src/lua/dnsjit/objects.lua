-- dnsjit.core.object*: layers of a packet as a chain of C structs, the top-most first.
--
-- The layouts are public: scripts read and write the fields. A producer reuses its structs for the
-- next packet; copy() keeps one until free().
local _, inside = ...
local ffi = inside.ffi
local C = ffi.C

ffi.cdef([[
void *malloc(size_t size);
void free(void *ptr);
typedef struct gannet_time { int64_t sec; int64_t nsec; } gannet_time_t;
int clock_gettime(int clock, gannet_time_t *time);
int nanosleep(const gannet_time_t *time, gannet_time_t *left);
typedef unsigned char uchar;
typedef struct core_timespec { int64_t sec; int64_t nsec; } core_timespec_t;
typedef struct core_object core_object_t;
struct core_object { const core_object_t *obj_prev; int32_t obj_type; };
typedef struct core_object_pcap {
    const core_object_t *obj_prev; int32_t obj_type;
    uint32_t snaplen, linktype; core_timespec_t ts; uint32_t caplen, len;
    const unsigned char *bytes; uint8_t is_swapped;
} core_object_pcap_t;
typedef struct core_object_ether {
    const core_object_t *obj_prev; int32_t obj_type;
    uint8_t dhost[6]; uint8_t shost[6]; uint16_t type;
} core_object_ether_t;
typedef struct core_object_null {
    const core_object_t *obj_prev; int32_t obj_type; uint32_t family;
} core_object_null_t;
typedef struct core_object_loop {
    const core_object_t *obj_prev; int32_t obj_type; uint32_t family;
} core_object_loop_t;
typedef struct core_object_linuxsll {
    const core_object_t *obj_prev; int32_t obj_type;
    uint16_t packet_type, arp_hardware, link_layer_address_length;
    uint8_t link_layer_address[8]; uint16_t ether_type;
} core_object_linuxsll_t;
typedef struct core_object_ieee802 {
    const core_object_t *obj_prev; int32_t obj_type;
    uint16_t tpid; uint8_t pcp; uint8_t dei; uint16_t vid; uint16_t ether_type;
} core_object_ieee802_t;
typedef struct core_object_gre {
    const core_object_t *obj_prev; int32_t obj_type;
    uint16_t gre_flags, ether_type, checksum, offset; uint32_t key, sequence;
} core_object_gre_t;
typedef struct core_object_linuxsll2 {
    const core_object_t *obj_prev; int32_t obj_type;
    uint16_t protocol_type, reserved; uint32_t interface_index; uint16_t arphrd_type;
    uint8_t packet_type, link_layer_address_length, link_layer_address[8];
} core_object_linuxsll2_t;
typedef struct core_object_ip {
    const core_object_t *obj_prev; int32_t obj_type;
    uint8_t v, hl, tos; uint16_t len, id, off; uint8_t ttl, p; uint16_t sum;
    uint8_t src[4], dst[4];
} core_object_ip_t;
typedef struct core_object_ip6 {
    const core_object_t *obj_prev; int32_t obj_type;
    uint32_t flow; uint16_t plen; uint8_t nxt, hlim, src[16], dst[16], is_frag, have_rtdst;
    uint16_t frag_offlg, frag_ident; uint8_t rtdst[16]; uint16_t hlen;
} core_object_ip6_t;
typedef struct core_object_icmp {
    const core_object_t *obj_prev; int32_t obj_type; uint8_t type, code; uint16_t cksum;
} core_object_icmp_t;
typedef struct core_object_icmp6 {
    const core_object_t *obj_prev; int32_t obj_type; uint8_t type, code; uint16_t cksum;
} core_object_icmp6_t;
typedef struct core_object_udp {
    const core_object_t *obj_prev; int32_t obj_type; uint16_t sport, dport, ulen, sum;
} core_object_udp_t;
typedef struct core_object_tcp {
    const core_object_t *obj_prev; int32_t obj_type;
    uint16_t sport, dport; uint32_t seq, ack; uint8_t off : 4; uint8_t x2 : 4; uint8_t flags;
    uint16_t win, sum, urp; uint8_t opts[64]; size_t opts_len;
} core_object_tcp_t;
typedef struct core_object_payload {
    const core_object_t *obj_prev; int32_t obj_type;
    int32_t gannet_over; /* what the bytes came over, in a hole of the layout */
    const uint8_t *payload; size_t len; size_t padding;
} core_object_payload_t;
typedef struct core_object_dns {
    const core_object_t *obj_prev; int32_t obj_type;
    int includes_dnslen; const uint8_t *payload, *at; size_t len, left;
    uint8_t have_dnslen, have_id, have_qr, have_opcode, have_aa, have_tc, have_rd, have_ra, have_z,
        have_ad, have_cd, have_rcode, have_qdcount, have_ancount, have_nscount, have_arcount;
    uint16_t dnslen, id; int8_t qr; uint8_t opcode, aa, tc, rd, ra, z, ad, cd, rcode;
    uint16_t qdcount, ancount, nscount, arcount;
    uint16_t gannet_found_dnslen; /* behind the layout's end, where it is rounded up */
} core_object_dns_t;
]])

local objects = {
    NONE = 0, PCAP = 1, ETHER = 10, NULL = 11, LOOP = 12, LINUXSLL = 13, IEEE802 = 14, GRE = 15,
    LINUXSLL2 = 16, IP = 20, IP6 = 21, ICMP = 22, ICMP6 = 23, UDP = 30, TCP = 31, PAYLOAD = 40,
    DNS = 50,
}
local names = {
    [1] = "pcap", [10] = "ether", [11] = "null", [12] = "loop", [13] = "linuxsll", [14] = "ieee802",
    [15] = "gre", [16] = "linuxsll2", [20] = "ip", [21] = "ip6", [22] = "icmp", [23] = "icmp6",
    [30] = "udp", [31] = "tcp", [40] = "payload", [50] = "dns",
}
local pointers, sizes = {}, {}
local generic = ffi.typeof("core_object_t *")
for number, name in pairs(names) do
    pointers[number] = ffi.typeof("core_object_" .. name .. "_t *")
    sizes[number] = ffi.sizeof("core_object_" .. name .. "_t")
end
sizes[0] = ffi.sizeof("core_object_t")

local function uncast(self) return ffi.cast(generic, self) end

local function cast(self)
    local pointer = pointers[self.obj_type]
    return pointer and ffi.cast(pointer, self) or uncast(self)
end

local function prev(self)
    local before = self.obj_prev
    if before == nil then return nil end
    return ffi.cast(generic, before)
end

-- A copy is independent, with its bytes after the struct in one allocation.
local function copy(self)
    local kind = self.obj_type
    local size, bytes, len = sizes[kind], nil, 0
    local typed = cast(self)
    if kind == 1 then
        bytes, len = typed.bytes, typed.caplen
    elseif kind == 40 then
        bytes, len = typed.payload, tonumber(typed.len + typed.padding)
    end
    local block = C.malloc(size + len)
    if block == nil then error("no memory for a copy", 2) end
    ffi.copy(block, self, size)
    local made = ffi.cast(pointers[kind] or generic, block)
    made.obj_prev = nil
    if len > 0 then
        local at = ffi.cast("uint8_t *", block) + size
        ffi.copy(at, bytes, len)
        if kind == 1 then made.bytes = at else made.payload = at end
    end
    return made
end

local function free(self) C.free(ffi.cast("void *", self)) end

local function cast_to(self, wanted)
    local at = uncast(self)
    while at ~= nil do
        if at.obj_type == wanted then return cast(at) end
        at = at.obj_prev
    end
    return nil
end

local function type_name(self) return names[self.obj_type] or "none" end

local function methods()
    return {
        type = type_name, prev = prev, cast = cast, uncast = uncast, copy = copy, free = free,
        cast_to = cast_to,
    }
end

local modules = {}
inside.modules = modules
inside.object_cast, inside.object_copy = cast, copy
inside.object_uncast = uncast

local function v4(bytes) return string.format("%d.%d.%d.%d", bytes[0], bytes[1], bytes[2], bytes[3]) end

-- All eight groups, or with the longest run of zeros omitted (RFC 5952).
local function v6(bytes, pretty)
    local groups = {}
    for index = 0, 7 do groups[index + 1] = bytes[2 * index] * 256 + bytes[2 * index + 1] end
    -- A trie passes the length of a key as the next argument, where other callers pass `pretty`; it
    -- must not be interpreted as that.
    if pretty ~= true then
        for index = 1, 8 do groups[index] = string.format("%04x", groups[index]) end
        return table.concat(groups, ":")
    end
    local best, best_len, at = nil, 1, 1
    while at <= 8 do
        local stop = at
        while stop <= 8 and groups[stop] == 0 do stop = stop + 1 end
        if stop - at > best_len then best, best_len = at, stop - at end
        at = math.max(stop, at) + 1
    end
    for index = 1, 8 do groups[index] = string.format("%x", groups[index]) end
    if not best then return table.concat(groups, ":") end
    return table.concat(groups, ":", 1, best - 1) .. "::" .. table.concat(groups, ":", best + best_len)
end
inside.v4, inside.v6 = v4, v6

modules["dnsjit.core.object"] = methods()
ffi.metatype("core_object_t", { __index = modules["dnsjit.core.object"] })
for _, name in pairs(names) do
    if name ~= "dns" then
        local own = methods()
        if name == "ip" then
            own.source = function(self) return v4(self.src) end
            own.destination = function(self) return v4(self.dst) end
        elseif name == "ip6" then
            own.source = function(self, pretty) return v6(self.src, pretty) end
            own.destination = function(self, pretty) return v6(self.dst, pretty) end
        end
        own.new = function() return ffi.new("core_object_" .. name .. "_t") end
        modules["dnsjit.core.object." .. name] = own
        ffi.metatype("core_object_" .. name .. "_t", { __index = own })
    end
end
modules["dnsjit.core.timespec"] = {
    new = function() return ffi.new("core_timespec_t") end,
    max_init = function(self)
        self = self or ffi.new("core_timespec_t")
        self.sec, self.nsec = 9223372036854775807LL, 999999999
        return self
    end,
}
ffi.metatype("core_timespec_t", { __index = modules["dnsjit.core.timespec"] })
inside.object_methods = methods
return objects
