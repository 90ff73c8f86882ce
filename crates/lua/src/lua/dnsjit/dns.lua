-- dnsjit.core.object.dns and its label, q and rr: parsing of messages up to the first error.
local name, inside = ...
require("dnsjit.core.objects")
local ffi, modules = inside.ffi, inside.modules
if modules[name] then return modules[name] end

ffi.cdef([[
typedef struct core_object_dns_label {
    uint8_t is_end, have_length, have_offset, have_extension_bits, have_dn, extension_bits, length;
    uint16_t offset;
} core_object_dns_label_t;
typedef struct core_object_dns_q {
    uint8_t have_type, have_class; uint16_t type, class; size_t labels;
} core_object_dns_q_t;
typedef struct core_object_dns_rr {
    uint8_t have_type, have_class, have_ttl, have_rdlength, have_rdata, have_rdata_labels,
        have_padding;
    uint16_t type, class; uint32_t ttl; uint16_t rdlength;
    size_t labels, rdata_offset, rdata_labels, padding_offset, padding_length;
} core_object_dns_rr_t;
]])

local Dns = inside.object_methods()
local Label, Q, Rr = {}, {}, {}

local function tables(list)
    local by_name, by_number = {}, {}
    for word in list:gmatch("%S+") do
        local text, number = word:match("^(.-)=(%d+)$")
        by_name[text], by_number[tonumber(number)] = tonumber(number), text
    end
    return by_name, by_number
end

Dns.CLASS, Dns.CLASS_STR = tables("IN=1 CH=3 HS=4 NONE=254 ANY=255")
Dns.TYPE, Dns.TYPE_STR = tables([[A=1 NS=2 MD=3 MF=4 CNAME=5 SOA=6 MB=7 MG=8 MR=9 NULL=10 WKS=11
    PTR=12 HINFO=13 MINFO=14 MX=15 TXT=16 RP=17 AFSDB=18 X25=19 ISDN=20 RT=21 NSAP=22 NSAP-PTR=23
    SIG=24 KEY=25 PX=26 GPOS=27 AAAA=28 LOC=29 NXT=30 EID=31 NIMLOC=32 SRV=33 ATMA=34 NAPTR=35 KX=36
    CERT=37 A6=38 DNAME=39 SINK=40 OPT=41 APL=42 DS=43 SSHFP=44 IPSECKEY=45 RRSIG=46 NSEC=47
    DNSKEY=48 DHCID=49 NSEC3=50 NSEC3PARAM=51 TLSA=52 SMIMEA=53 HIP=55 NINFO=56 RKEY=57 TALINK=58
    CDS=59 CDNSKEY=60 OPENPGPKEY=61 CSYNC=62 ZONEMD=63 SVCB=64 HTTPS=65 SPF=99 NID=104 L32=105
    L64=106 LP=107 EUI48=108 EUI64=109 TKEY=249 TSIG=250 IXFR=251 AXFR=252 MAILB=253 MAILA=254
    ANY=255 URI=256 CAA=257 AVC=258 TA=32768 DLV=32769]])
Dns.OPCODE, Dns.OPCODE_STR = tables("QUERY=0 IQUERY=1 STATUS=2 NOTIFY=4 UPDATE=5")
Dns.RCODE, Dns.RCODE_STR = tables([[NOERROR=0 FORMERR=1 SERVFAIL=2 NXDOMAIN=3 NOTIMP=4 REFUSED=5
    YXDOMAIN=6 YXRRSET=7 NXRRSET=8 NOTAUTH=9 NOTZONE=10 BADVERS=16 BADKEY=17 BADTIME=18 BADMODE=19
    BADNAME=20 BADALG=21 BADTRUNC=22 BADCOOKIE=23]])
Dns.AFSDB, Dns.AFSDB_STR = tables("SUBTYPE_AFS3LOCSRV=1 SUBTYPE_DCENCA=2")
Dns.DHCID, Dns.DHCID_STR = tables("TYPE_1OCTET=0 TYPE_DATAOCTET=1 TYPE_CLIENT_DUID=2")
Dns.EDNS0, Dns.EDNS0_STR = tables([[OPT_LLQ=1 OPT_UL=2 OPT_NSID=3 OPT_DAU=5 OPT_DHU=6 OPT_N3U=7
    OPT_CLIENT_SUBNET=8 OPT_EXPIRE=9 OPT_COOKIE=10 OPT_TCP_KEEPALIVE=11 OPT_PADDING=12 OPT_CHAIN=13
    OPT_DEVICEID=26946]])

local function to_string(by_number)
    return function(number)
        number = tonumber(number)
        return by_number[number] or "UNKNOWN(" .. number .. ")"
    end
end
Dns.class_tostring, Dns.type_tostring = to_string(Dns.CLASS_STR), to_string(Dns.TYPE_STR)
Dns.opcode_tostring, Dns.rcode_tostring = to_string(Dns.OPCODE_STR), to_string(Dns.RCODE_STR)
Dns.afsdb_tostring, Dns.dhcid_tostring = to_string(Dns.AFSDB_STR), to_string(Dns.DHCID_STR)
Dns.edns0_tostring = to_string(Dns.EDNS0_STR)

function Dns.new(obj)
    local self = ffi.new("core_object_dns_t")
    self.obj_type = 50
    if obj ~= nil then self.obj_prev = ffi.cast("core_object_t *", obj) end
    return self
end

-- Resets the object to unparsed, including the caller's setting of the transport.
function Dns:reset()
    ffi.fill(self, ffi.sizeof("core_object_dns_t"))
    self.obj_type = 50
end

local function u16(at) return at[0] * 256 + at[1] end

-- Reads a two-byte field and advances; returns false if the message ends before.
local function take16(self, field)
    if self.left < 2 then return false end
    self[field] = u16(self.at)
    self["have_" .. field] = 1
    self.at, self.left = self.at + 2, self.left - 2
    return true
end

-- Returns 0, or -2 if the message ends within its header; the fields before are set. Without a
-- payload (an empty datagram, a segment without data) it returns -2 and sets no field.
function Dns:parse_header()
    local payload = self.obj_prev
    while payload ~= nil and payload.obj_type ~= 40 do payload = payload.obj_prev end
    if payload == nil then return -2 end
    payload = ffi.cast("const core_object_payload_t *", payload)
    if payload.payload == nil or payload.len == 0 then return -2 end
    self.payload, self.len = payload.payload, payload.len
    -- If the caller does not state that a segment begins with a length, a length is detected if it
    -- equals that of the rest.
    if self.gannet_found_dnslen ~= 0 then self.includes_dnslen, self.gannet_found_dnslen = 0, 0 end
    if self.includes_dnslen == 0 and payload.gannet_over == 31 and self.len >= 2
        and u16(self.payload) == self.len - 2 then
        self.includes_dnslen, self.gannet_found_dnslen = 1, 1
    end
    self.at, self.left = self.payload, self.len
    if self.includes_dnslen ~= 0 and not take16(self, "dnslen") then return -2 end
    if not take16(self, "id") then return -2 end
    if self.left < 1 then return -2 end
    local flags = self.at[0]
    self.at, self.left = self.at + 1, self.left - 1
    self.have_qr, self.qr = 1, flags >= 128 and 1 or 0
    self.have_opcode, self.opcode = 1, math.floor(flags / 8) % 16
    self.have_aa, self.aa = 1, math.floor(flags / 4) % 2
    self.have_tc, self.tc = 1, math.floor(flags / 2) % 2
    self.have_rd, self.rd = 1, flags % 2
    if self.left < 1 then return -2 end
    flags = self.at[0]
    self.at, self.left = self.at + 1, self.left - 1
    self.have_ra, self.ra = 1, math.floor(flags / 128)
    self.have_z, self.z = 1, math.floor(flags / 64) % 2
    self.have_ad, self.ad = 1, math.floor(flags / 32) % 2
    self.have_cd, self.cd = 1, math.floor(flags / 16) % 2
    self.have_rcode, self.rcode = 1, flags % 16
    for _, field in ipairs({ "qdcount", "ancount", "nscount", "arcount" }) do
        if not take16(self, field) then return -2 end
    end
    return 0
end

-- Reads labels into slots from `first` on; returns their number, or nil and -2 (malformed) or -3
-- (more slots are needed). Offsets are those of the labels' length bytes, from the start of the
-- message.
local function take_labels(self, labels, first, slots)
    local n = 0
    local base = self.payload
    if self.includes_dnslen ~= 0 then base = base + 2 end
    while true do
        if self.left < 1 then return nil, -2 end
        if first + n >= slots then return nil, -3 end
        local label = labels[first + n]
        local place = tonumber(self.at - base)
        ffi.fill(label, ffi.sizeof("core_object_dns_label_t"))
        local length = self.at[0]
        n = n + 1
        if length >= 192 then
            if self.left < 2 then return nil, -2 end
            label.have_offset, label.offset = 1, (length - 192) * 256 + self.at[1]
            self.at, self.left = self.at + 2, self.left - 2
            return n
        elseif length >= 64 then
            label.have_extension_bits, label.extension_bits = 1, math.floor(length / 64)
            return nil, -2
        end
        label.have_length, label.length = 1, length
        self.at, self.left = self.at + 1, self.left - 1
        if length == 0 then
            label.is_end = 1
            return n
        end
        if self.left < length then return nil, -2 end
        label.have_dn, label.offset = 1, place
        self.at, self.left = self.at + length, self.left - length
    end
end

-- A two-byte field of a question or record.
local function field16(self, into, field)
    if self.left < 2 then return false end
    into[field], into["have_" .. field] = u16(self.at), 1
    self.at, self.left = self.at + 2, self.left - 2
    return true
end

local function parse_q(self, q, labels, first, slots)
    ffi.fill(q, ffi.sizeof("core_object_dns_q_t"))
    local n, problem = take_labels(self, labels, first, slots)
    if not n then return problem end
    q.labels = n
    if not field16(self, q, "type") or not field16(self, q, "class") then return -2 end
    return 0, n
end

-- Names in the data of a type: number of bytes before the first name, and number of names.
local named = {
    NS = { 0, 1 }, MD = { 0, 1 }, MF = { 0, 1 }, CNAME = { 0, 1 }, SOA = { 0, 2 }, MB = { 0, 1 },
    MG = { 0, 1 }, MR = { 0, 1 }, PTR = { 0, 1 }, MINFO = { 0, 2 }, MX = { 2, 1 }, RP = { 0, 2 },
    AFSDB = { 2, 1 }, RT = { 2, 1 }, SIG = { 18, 1 }, PX = { 2, 2 }, NXT = { 0, 1 }, SRV = { 6, 1 },
    KX = { 2, 1 }, DNAME = { 0, 1 }, NSEC = { 0, 1 }, RRSIG = { 18, 1 }, TALINK = { 0, 2 },
    LP = { 2, 1 }, TKEY = { 0, 1 }, TSIG = { 0, 1 },
}
local named_types = {}
for text, place in pairs(named) do named_types[Dns.TYPE[text]] = place end

local function parse_rr(self, rr, labels, first, slots)
    ffi.fill(rr, ffi.sizeof("core_object_dns_rr_t"))
    local n, problem = take_labels(self, labels, first, slots)
    if not n then return problem end
    rr.labels = n
    if not field16(self, rr, "type") or not field16(self, rr, "class") then return -2 end
    if self.left < 4 then return -2 end
    rr.ttl, rr.have_ttl = u16(self.at) * 65536 + u16(self.at + 2), 1
    self.at, self.left = self.at + 4, self.left - 4
    if not field16(self, rr, "rdlength") then return -2 end
    local length = rr.rdlength
    if self.left < length then return -2 end
    rr.have_rdata = 1
    rr.rdata_offset = ffi.cast("size_t", self.at - self.payload)
    local place = named_types[rr.type]
    local after, left = self.at + length, self.left - length
    if place and length > place[1] then
        self.at, self.left = self.at + place[1], ffi.cast("size_t", length - place[1])
        local names = 0
        for _ = 1, place[2] do
            local m, wrong = take_labels(self, labels, first + n + names, slots)
            if not m then
                if wrong == -3 then return wrong end
                names = nil
                break
            end
            names = names + m
        end
        if names then
            rr.have_rdata_labels, rr.rdata_labels = 1, names
            if self.left > 0 then
                rr.have_padding = 1
                rr.padding_offset = ffi.cast("size_t", self.at - self.payload)
                rr.padding_length = self.left
            end
        end
    end
    self.at, self.left = after, left
    return 0, n + tonumber(rr.rdata_labels)
end

function Dns:parse_q(q, labels, num_labels) return (parse_q(self, q, labels, 0, num_labels)) end

function Dns:parse_rr(rr, labels, num_labels) return (parse_rr(self, rr, labels, 0, num_labels)) end

-- Parses the whole message; returns rc, questions, their labels, records, their labels, each with
-- as many label slots as it needs, initially `num_labels`.
function Dns:parse(num_labels)
    local slots = num_labels or 16
    local qs, qlabels, rrs, rrlabels = {}, {}, {}, {}
    local rc = self:parse_header()
    if rc ~= 0 then return rc, qs, qlabels, rrs, rrlabels end
    local function all(count, ctype, parse, list, label_list)
        for _ = 1, count do
            local item = ffi.new(ctype)
            local room, at, left = slots, self.at, self.left
            local labels, code
            repeat
                labels = Label.new(room)
                self.at, self.left = at, left
                code = parse(self, item, labels, room)
                room = room * 2
            until code ~= -3 or room > 65536
            list[#list + 1], label_list[#label_list + 1] = item, labels
            if code ~= 0 then return code end
        end
        return 0
    end
    rc = all(self.qdcount, "core_object_dns_q_t", Dns.parse_q, qs, qlabels)
    if rc == 0 then
        rc = all(self.ancount + self.nscount + self.arcount, "core_object_dns_rr_t", Dns.parse_rr,
            rrs, rrlabels)
    end
    return rc, qs, qlabels, rrs, rrlabels
end

function Dns:print(num_labels)
    local rc, qs, qlabels, rrs, rrlabels = self:parse(num_labels)
    if self.have_id == 0 then return end
    print("id:", self.id)
    if self.have_qr ~= 0 then
        print("", "qr:", self.qr)
        print("", "opcode:", Dns.opcode_tostring(self.opcode))
        local flags = {}
        for _, flag in ipairs({ "aa", "tc", "rd", "ra", "z", "ad", "cd" }) do
            if self[flag] == 1 then flags[#flags + 1] = flag:upper() end
        end
        print("", "flags:", table.concat(flags, " "))
    end
    if self.have_rcode ~= 0 then print("", "rcode:", Dns.rcode_tostring(self.rcode)) end
    for _, count in ipairs({ "qdcount", "ancount", "nscount", "arcount" }) do
        if self["have_" .. count] ~= 0 then print("", count .. ":", self[count]) end
    end
    if #qs > 0 then
        print("questions:", "class", "type", "labels")
        for index, q in ipairs(qs) do
            print("", Dns.class_tostring(q.class), Dns.type_tostring(q.type),
                Label.tooffstr(self, qlabels[index], tonumber(q.labels)))
        end
    end
    local at = 0
    local sections = { { "answers", "ancount" }, { "authorities", "nscount" }, { "additionals", "arcount" } }
    for _, section in ipairs(sections) do
        local count = math.min(self[section[2]], #rrs - at)
        if count > 0 then
            print(section[1] .. ":", "class", "type", "ttl", "labels", "RR labels")
            for index = at + 1, at + count do
                local rr, labels = rrs[index], rrlabels[index]
                local own = tonumber(rr.labels)
                local line = { "", Dns.class_tostring(rr.class), Dns.type_tostring(rr.type), rr.ttl,
                    Label.tooffstr(self, labels, own) }
                if rr.have_rdata_labels ~= 0 then
                    line[#line + 1] = Label.tooffstr(self, labels, tonumber(rr.rdata_labels), own)
                end
                print(unpack(line))
            end
        end
        at = at + math.max(count, 0)
    end
    return rc
end

function Label.new(size) return ffi.new("core_object_dns_label_t[?]", size) end

-- Reads labels from `offset` on; returns their text, and the target of the pointer that ends them,
-- if any.
local function walk(dns, labels, count, offset, write)
    offset = tonumber(offset or 0)
    local base = dns.payload
    if dns.includes_dnslen ~= 0 then base = base + 2 end
    local parts = {}
    for index = offset, offset + tonumber(count) - 1 do
        local label = labels[index]
        if label.have_dn ~= 0 then
            parts[#parts + 1] = write(ffi.string(base + label.offset + 1, label.length), label.offset)
        elseif label.have_offset ~= 0 then
            return table.concat(parts), label.offset
        else
            break
        end
    end
    return table.concat(parts), nil
end

-- The labels, each followed by a dot, and the target of a pointer at their end.
function Label.tostring(dns, labels, num_labels, offset_labels)
    return walk(dns, labels, num_labels, offset_labels, function(text) return text .. "." end)
end

-- Escaped as in zone files (RFC 1035 §5.1): three decimal digits.
function Label.torfc1035(dns, labels, num_labels, offset_labels)
    return walk(dns, labels, num_labels, offset_labels, function(text)
        return text:gsub("[^%w_-]", function(c)
            if c:find("[!-~]") then return "\\" .. c end
            return ("\\%03d"):format(c:byte())
        end) .. "."
    end)
end

-- Each label preceded by its offset, and the offset of a pointer.
function Label.tooffstr(dns, labels, num_labels, offset_labels)
    local text, offset = walk(dns, labels, num_labels, offset_labels, function(label, at)
        return "<" .. at .. ">" .. label .. "."
    end)
    return offset and text .. "<" .. offset .. ">" or text
end

function Q.new() return ffi.new("core_object_dns_q_t") end

function Rr.new() return ffi.new("core_object_dns_rr_t") end

ffi.metatype("core_object_dns_t", { __index = Dns })
modules["dnsjit.core.object.dns"] = Dns
modules["dnsjit.core.object.dns.label"] = Label
modules["dnsjit.core.object.dns.q"] = Q
modules["dnsjit.core.object.dns.rr"] = Rr
return modules[name]
