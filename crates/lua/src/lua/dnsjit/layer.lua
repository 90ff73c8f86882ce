-- dnsjit.filter.layer: from the link layer to the payload.
--
-- A packet that cannot be parsed further is passed on with the layers parsed so far: no packet ends
-- the stream. Up to four VLAN tags are parsed, of any of their types and in any order.
local _, inside = ...
require("dnsjit.core.objects")
local ffi = inside.ffi
local bit = require("bit")
local band, rshift = bit.band, bit.rshift
local log = require("dnsjit.core.log").new("filter.layer")

local Layer = {}
Layer.__index = Layer
local generic = ffi.typeof("core_object_t *")

local function make(self, name, number)
    local struct = ffi.new("core_object_" .. name .. "_t")
    struct.obj_type = number
    self[name] = struct
    self[name .. "_p"] = ffi.cast(generic, struct)
end

local VLANS = 4

local function new()
    local self = setmetatable({}, Layer)
    self.obj = self
    for name, number in pairs({
        ether = 10, null = 11, loop = 12, linuxsll = 13, gre = 15, linuxsll2 = 16, ip = 20, ip6 = 21,
        icmp = 22, icmp6 = 23, udp = 30, tcp = 31, payload = 40,
    }) do
        make(self, name, number)
    end
    self.vlan = {}
    for index = 1, VLANS do
        local struct = ffi.new("core_object_ieee802_t")
        struct.obj_type = 14
        self.vlan[index] = { struct, ffi.cast(generic, struct) }
    end
    return self
end

local function u16(at, offset) return at[offset] * 256 + at[offset + 1] end
local function u32(at, offset) return u16(at, offset) * 65536 + u16(at, offset + 2) end

local function payload(self, prev, at, len, padding, over)
    local p = self.payload
    p.obj_prev, p.payload, p.len, p.padding, p.gannet_over = prev, at, len, padding, over or 0
    return self.payload_p
end

-- The payload of IP: `len` bytes according to its header, followed by `padding` captured bytes.
local function transport(self, prev, protocol, at, len, padding)
    if protocol == 17 then
        if len < 8 then return prev end
        local udp = self.udp
        udp.obj_prev = prev
        udp.sport, udp.dport, udp.ulen, udp.sum = u16(at, 0), u16(at, 2), u16(at, 4), u16(at, 6)
        local own = len - 8
        -- If the datagram's own length is shorter, the rest is padding as well.
        if udp.ulen >= 8 and udp.ulen - 8 < own then
            padding = padding + own - (udp.ulen - 8)
            own = udp.ulen - 8
        end
        return payload(self, self.udp_p, at + 8, own, padding)
    elseif protocol == 6 then
        if len < 20 then return prev end
        local tcp = self.tcp
        tcp.obj_prev = prev
        tcp.sport, tcp.dport, tcp.seq, tcp.ack = u16(at, 0), u16(at, 2), u32(at, 4), u32(at, 8)
        local head = rshift(at[12], 4) * 4
        tcp.off, tcp.x2, tcp.flags = rshift(at[12], 4), band(at[12], 15), at[13]
        tcp.win, tcp.sum, tcp.urp = u16(at, 14), u16(at, 16), u16(at, 18)
        tcp.opts_len = 0
        if head < 20 or head > len then return self.tcp_p end
        if head > 20 then
            ffi.copy(tcp.opts, at + 20, head - 20)
            tcp.opts_len = head - 20
        end
        return payload(self, self.tcp_p, at + head, len - head, padding, 31)
    elseif protocol == 1 or protocol == 58 then
        if len < 4 then return prev end
        local icmp, pointer = self.icmp, self.icmp_p
        if protocol == 58 then icmp, pointer = self.icmp6, self.icmp6_p end
        icmp.obj_prev = prev
        icmp.type, icmp.code, icmp.cksum = at[0], at[1], u16(at, 2)
        -- ICMP quotes a part of another packet, which is not a payload.
        return pointer
    elseif protocol == 47 then
        if len < 4 then return prev end
        local gre = self.gre
        gre.obj_prev = prev
        gre.gre_flags, gre.ether_type = u16(at, 0), u16(at, 2)
        return self.gre_p
    end
    return payload(self, prev, at, len, padding)
end

local function ip4(self, prev, at, left)
    if left < 20 then return prev end
    local ip = self.ip
    local head = band(at[0], 15) * 4
    ip.obj_prev = prev
    ip.v, ip.hl, ip.tos, ip.len = rshift(at[0], 4), band(at[0], 15), at[1], u16(at, 2)
    ip.id, ip.off, ip.ttl, ip.p, ip.sum = u16(at, 4), u16(at, 6), at[8], at[9], u16(at, 10)
    ffi.copy(ip.src, at + 12, 4)
    ffi.copy(ip.dst, at + 16, 4)
    if head < 20 or head > left then return self.ip_p end
    local total = ip.len
    -- Zero if segmentation was offloaded to the network card: then the captured length is used.
    if total == 0 or total > left then total = left end
    if total < head then return self.ip_p end
    local body, padding = total - head, left - total
    if band(ip.off, 0x3fff) ~= 0 then
        return payload(self, self.ip_p, at + head, body, padding)
    end
    return transport(self, self.ip_p, ip.p, at + head, body, padding)
end

local function ip6(self, prev, at, left)
    if left < 40 then return prev end
    local ip = self.ip6
    ip.obj_prev = prev
    ip.flow, ip.plen, ip.nxt, ip.hlim = u32(at, 0), u16(at, 4), at[6], at[7]
    ffi.copy(ip.src, at + 8, 16)
    ffi.copy(ip.dst, at + 24, 16)
    ip.is_frag, ip.have_rtdst, ip.frag_offlg, ip.frag_ident, ip.hlen = 0, 0, 0, 0, 0
    at, left = at + 40, left - 40
    local body = ip.plen
    if body == 0 or body > left then body = left end
    local padding = left - body
    local next_header = ip.nxt
    -- Each header has at least eight bytes, so the loop ends with the packet.
    while next_header == 0 or next_header == 43 or next_header == 44 or next_header == 60 do
        if body < 8 then return self.ip6_p end
        local size = 8
        if next_header == 44 then
            ip.is_frag, ip.frag_offlg, ip.frag_ident = 1, u16(at, 2), u16(at, 6)
        else
            size = (at[1] + 1) * 8
            if size > body then return self.ip6_p end
            -- Routing type 0 (RFC 2460 §4.4): the last address is the destination.
            if next_header == 43 and at[2] == 0 and at[3] > 0 and size >= 24 then
                ip.have_rtdst = 1
                ffi.copy(ip.rtdst, at + size - 16, 16)
            end
        end
        next_header = at[0]
        at, body = at + size, body - size
        ip.hlen = ip.hlen + size
    end
    if next_header == 59 then return payload(self, self.ip6_p, at, body, padding) end
    if ip.is_frag ~= 0 and band(ip.frag_offlg, 0xfff9) ~= 0 then
        return payload(self, self.ip6_p, at, body, padding)
    end
    return transport(self, self.ip6_p, next_header, at, body, padding)
end

local function network(self, prev, ether_type, at, left)
    local tags = 0
    while ether_type == 0x8100 or ether_type == 0x88a8 or ether_type == 0x9100 do
        tags = tags + 1
        if left < 4 or tags > VLANS then return prev end
        local tag, pointer = self.vlan[tags][1], self.vlan[tags][2]
        local tci = u16(at, 0)
        tag.obj_prev, tag.tpid = prev, ether_type
        tag.pcp, tag.dei, tag.vid = rshift(tci, 13), band(rshift(tci, 12), 1), band(tci, 0xfff)
        ether_type = u16(at, 2)
        tag.ether_type = ether_type
        prev, at, left = pointer, at + 4, left - 4
    end
    if ether_type == 0x0800 then return ip4(self, prev, at, left) end
    if ether_type == 0x86dd then return ip6(self, prev, at, left) end
    return prev
end

local function raw(self, prev, at, left)
    if left < 1 then return prev end
    local version = rshift(at[0], 4)
    if version == 4 then return ip4(self, prev, at, left) end
    if version == 6 then return ip6(self, prev, at, left) end
    return prev
end

local pcap_pointer = ffi.typeof("const core_object_pcap_t *")

local function parse(self, obj)
    local pcap = ffi.cast(pcap_pointer, obj)
    local link, at, left = pcap.linktype, pcap.bytes, pcap.caplen
    if link == 1 then
        if left < 14 then return obj end
        local ether = self.ether
        ether.obj_prev = obj
        ffi.copy(ether.dhost, at, 6)
        ffi.copy(ether.shost, at + 6, 6)
        ether.type = u16(at, 12)
        return network(self, self.ether_p, ether.type, at + 14, left - 14)
    elseif link == 0 or link == 108 then
        if left < 4 then return obj end
        local struct, pointer = self.null, self.null_p
        if link == 108 then struct, pointer = self.loop, self.loop_p end
        struct.obj_prev = obj
        -- NULL headers have the byte order of the capturing machine; families are small numbers, so
        -- the order can be detected.
        local family = u32(at, 0)
        if family >= 65536 then family = at[0] + at[1] * 256 end
        struct.family = family
        return raw(self, pointer, at + 4, left - 4)
    elseif link == 101 or link == 12 or link == 14 or link == 228 or link == 229 then
        return raw(self, obj, at, left)
    elseif link == 113 then
        if left < 16 then return obj end
        local sll = self.linuxsll
        sll.obj_prev = obj
        sll.packet_type, sll.arp_hardware = u16(at, 0), u16(at, 2)
        sll.link_layer_address_length, sll.ether_type = u16(at, 4), u16(at, 14)
        ffi.copy(sll.link_layer_address, at + 6, 8)
        return network(self, self.linuxsll_p, sll.ether_type, at + 16, left - 16)
    elseif link == 276 then
        if left < 20 then return obj end
        local sll = self.linuxsll2
        sll.obj_prev = obj
        sll.protocol_type, sll.reserved, sll.interface_index = u16(at, 0), u16(at, 2), u32(at, 4)
        sll.arphrd_type, sll.packet_type = u16(at, 8), at[10]
        sll.link_layer_address_length = at[11]
        ffi.copy(sll.link_layer_address, at + 12, 8)
        return network(self, self.linuxsll2_p, sll.protocol_type, at + 20, left - 20)
    end
    return obj
end

function Layer:log() return log end

function Layer:producer(o) self.prod, self.pctx = o:produce() end

function Layer:produce()
    if not self.prod then log:fatal("no producer set") end
    return function(this)
        local obj = this.prod(this.pctx)
        if obj == nil then return nil end
        return parse(this, obj)
    end, self
end

function Layer:receiver(o) self.recv, self.rctx = o:receive() end

function Layer:receive()
    return function(this, obj) this.recv(this.rctx, parse(this, obj)) end, self
end

return { new = new }
