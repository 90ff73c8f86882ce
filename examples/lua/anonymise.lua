-- A copy of a capture without its addresses: each one becomes another of the same version, the same for all of its packets.
-- What is above IP stays: names in DNS messages, headers that ICMP errors quote. Messages of DNS over UDP are cut to their headers.
-- gannet run anonymise.lua CAPTURE OUT
local known, count = {}, { [4] = 0, [6] = 0 }

local function anonymous(address)
    local other = known[address]
    if not other then
        local version = address:find(":", 1, true) and 6 or 4
        local n = count[version]
        count[version] = n + 1
        assert(n < 2 ^ 24, "more hosts than addresses")
        local a, b, c = math.floor(n / 65536) % 256, math.floor(n / 256) % 256, n % 256
        other = version == 4 and ("10.%d.%d.%d"):format(a, b, c) or ("fd00::%x:%x"):format(a, b * 256 + c)
        known[address] = other
    end
    return other
end

local written = gannet.input(arg[2]):write(arg[3] or "/dev/null", function(p)
    -- A packet without IP, such as ARP, has addresses elsewhere.
    if not p.src then return false end
    local changes = { src = anonymous(p.src), dst = anonymous(p.dst) }
    if p.proto == "udp" and (p.sport == 53 or p.dport == 53) and #p.payload > 12 then
        -- A message of a header alone has no questions and no records.
        changes.payload = p.payload:sub(1, 4) .. ("\0"):rep(8)
    end
    return p:with(changes)
end)
print(written .. " packets of " .. count[4] + count[6] .. " hosts")
