-- Views of packets and DNS messages: their fields, and the check that their packet is still valid.
-- Returns functions that create views, and the names of record types and response codes.
local _, inside = ...
local api, ffi, blame = inside.api, inside.ffi, inside.blame
local rawget, error, tostring, tonumber, pairs = rawget, error, tostring, tonumber, pairs
local format, concat, sort = string.format, table.concat, table.sort
local gmatch, match, floor = string.gmatch, string.match, math.floor
local type = type
local byte, sub = string.byte, string.sub
local str = ffi.string

local function address(bytes)
    local buffer = ffi.new("char[64]")
    return str(buffer, api.address_text(bytes, buffer))
end

-- Fields of a packet, computed from its record.
local packet_fields = {}
-- Fields of a message.
local message_fields = {}

local function seconds(r) return tonumber(r.time) / 1e9 end

local protocols = { [1] = "icmp", [6] = "tcp", [17] = "udp", [58] = "icmp6" }

packet_fields.time = seconds
packet_fields.time_ns = function(r) return r.time end
packet_fields.number = function(r) return tonumber(r.number) end
packet_fields.len = function(r) return r.wire_len end
packet_fields.caplen = function(r) return r.len end
packet_fields.link_type = function(r) return r.link_type end
packet_fields.src = function(r) return r.has_ip ~= 0 and address(r.src) or nil end
packet_fields.dst = function(r) return r.has_ip ~= 0 and address(r.dst) or nil end
packet_fields.sport = function(r) return r.has_ports ~= 0 and r.sport or nil end
packet_fields.dport = function(r) return r.has_ports ~= 0 and r.dport or nil end
packet_fields.proto = function(r)
    return r.has_ip ~= 0 and (protocols[r.proto] or tostring(r.proto)) or nil
end
packet_fields.bytes = function(r) return str(r.bytes, r.len) end
packet_fields.payload = function(r) return str(r.bytes + r.payload_at, r.payload_len) end

local types = {
    [1] = "A", [2] = "NS", [5] = "CNAME", [6] = "SOA", [12] = "PTR", [13] = "HINFO", [15] = "MX",
    [16] = "TXT", [24] = "SIG", [25] = "KEY", [28] = "AAAA", [29] = "LOC", [33] = "SRV",
    [35] = "NAPTR", [39] = "DNAME", [41] = "OPT", [43] = "DS", [44] = "SSHFP", [46] = "RRSIG",
    [47] = "NSEC", [48] = "DNSKEY", [50] = "NSEC3", [51] = "NSEC3PARAM", [52] = "TLSA",
    [59] = "CDS", [60] = "CDNSKEY", [64] = "SVCB", [65] = "HTTPS", [99] = "SPF", [249] = "TKEY",
    [250] = "TSIG", [251] = "IXFR", [252] = "AXFR", [255] = "ANY", [257] = "CAA",
}
local classes = { [1] = "IN", [3] = "CH", [4] = "HS", [254] = "NONE", [255] = "ANY" }
local rcodes = {
    [0] = "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET",
    "NXRRSET", "NOTAUTH", "NOTZONE",
}
local opcodes = { [0] = "QUERY", "IQUERY", "STATUS", [4] = "NOTIFY", [5] = "UPDATE", [6] = "DSO" }

local function flag(mask)
    return function(r) return floor(r.flags / mask) % 2 == 1 end
end

message_fields.time = seconds
message_fields.time_ns = function(r) return r.time end
message_fields.number = packet_fields.number
message_fields.len = function(r) return r.len end
message_fields.src = function(r) return address(r.src) end
message_fields.dst = function(r) return address(r.dst) end
message_fields.sport = function(r) return r.sport end
message_fields.dport = function(r) return r.dport end
message_fields.transport = function(r) return r.proto == 6 and "tcp" or "udp" end
message_fields.id = function(r) return r.id end
message_fields.qr = flag(0x8000)
message_fields.is_response = message_fields.qr
message_fields.is_query = function(r) return r.flags < 0x8000 end
message_fields.opcode = function(r) return floor(r.flags / 2048) % 16 end
message_fields.opcode_name = function(r)
    local code = floor(r.flags / 2048) % 16
    return opcodes[code] or "OPCODE" .. code
end
message_fields.aa, message_fields.tc, message_fields.rd = flag(0x400), flag(0x200), flag(0x100)
message_fields.ra, message_fields.ad, message_fields.cd = flag(0x80), flag(0x20), flag(0x10)
message_fields.rcode = function(r) return r.flags % 16 end
message_fields.rcode_name = function(r) return rcodes[r.flags % 16] or "RCODE" .. r.flags % 16 end
message_fields.qdcount = function(r) return r.counts[0] end
message_fields.ancount = function(r) return r.counts[1] end
message_fields.nscount = function(r) return r.counts[2] end
message_fields.arcount = function(r) return r.counts[3] end
message_fields.has_question = function(r) return r.has_question ~= 0 end
message_fields.qname = function(r, names)
    return r.has_question ~= 0 and str(names + r.name_at, r.name_len) or nil
end
message_fields.qtype = function(r) return r.has_question ~= 0 and r.qtype or nil end
message_fields.qtype_name = function(r)
    return r.has_question ~= 0 and (types[r.qtype] or "TYPE" .. r.qtype) or nil
end
message_fields.qclass = function(r) return r.has_question ~= 0 and r.qclass or nil end
message_fields.qclass_name = function(r)
    return r.has_question ~= 0 and (classes[r.qclass] or "CLASS" .. r.qclass) or nil
end
message_fields.bytes = function(r) return str(r.bytes, r.len) end
message_fields.answers = function(r)
    local out = ffi.new("const char *[1]")
    local len = api.dns_answers(r.bytes, r.len, out)
    local list = {}
    for line in gmatch(str(out[0], len), "[^\n]+") do
        local section, name, kind, class, ttl, value =
            match(line, "^(%d)\t([^\t]*)\t(%d+)\t(%d+)\t(%d+)\t(.*)$")
        kind = tonumber(kind)
        list[#list + 1] = {
            section = tonumber(section), name = name, type = kind,
            type_name = types[kind] or "TYPE" .. kind, class = tonumber(class),
            ttl = tonumber(ttl), data = value,
        }
    end
    return list
end

local function edns(r)
    local out = ffi.new("gannet_edns")
    return api.dns_edns(r.bytes, r.len, out) ~= 0 and out or nil
end
local function edns_field(name)
    return function(r)
        local found = edns(r)
        return found and found[name]
    end
end
message_fields.has_edns = function(r) return edns(r) ~= nil end
message_fields.edns_size = edns_field("size")
message_fields.edns_version = edns_field("version")
message_fields.edns_rcode = edns_field("rcode")
message_fields.edns_do = function(r)
    local found = edns(r)
    return found and found.flags >= 0x8000
end

local options = {
    [3] = "NSID", [8] = "CLIENT-SUBNET", [9] = "EXPIRE", [10] = "COOKIE", [11] = "TCP-KEEPALIVE", [12] = "PADDING",
    [14] = "KEY-TAG", [15] = "EDE",
}
message_fields.edns_options = function(r)
    local found = edns(r)
    if not found then return nil end
    local text, list, at = str(r.bytes + found.options_at, found.options_len), {}, 1
    while at + 3 <= #text do
        local a, b, c, d = byte(text, at, at + 3)
        local code, len = a * 256 + b, c * 256 + d
        if at + 3 + len > #text then break end
        list[#list + 1] = {
            code = code, name = options[code] or "OPTION" .. code, data = sub(text, at + 4, at + 3 + len),
        }
        at = at + 4 + len
    end
    return list
end

-- A kind of view. Each reading pipeline has its own `now`: the number and address of the current
-- record. A view with another number is invalid.
local function view_kind(what, fields, methods)
    local names = {}
    for name in pairs(fields) do names[#names + 1] = name end
    sort(names)
    return function(state)
        local meta = { __metatable = what }
        local function record(view, raise)
            local index = rawget(view, 2)
            if rawget(view, 1) ~= state.place or type(index) ~= "number"
                or not (index >= 0 and index < state.n) then
                raise(format("this %s is gone: a view ends with its packet, keep fields instead", what), 3)
            end
            return state.records[index]
        end
        local called = {}
        for name, method in pairs(methods) do
            called[name] = function(view, ...)
                if type(view) ~= "table" or rawget(view, 1) == nil then
                    blame(format("call %s with a colon: %s:%s(...)", name, what, name))
                end
                return method(record(view, blame), ...)
            end
        end
        function meta.__index(view, name)
            local field = fields[name]
            if not field then
                if called[name] then return called[name] end
                error(format("a %s has no field '%s' (it has %s)", what, tostring(name),
                    concat(names, ", ")), 2)
            end
            return field(record(view, error), state.names)
        end
        function meta.__newindex()
            error("a " .. what .. " cannot be changed", 2)
        end
        meta.__tostring = function() return what end
        return meta
    end
end

local packet_view = view_kind("packet", packet_fields, { with = inside.with })
local message_view = view_kind("message", message_fields, {})

return function() return packet_view, message_view, types, rcodes end
