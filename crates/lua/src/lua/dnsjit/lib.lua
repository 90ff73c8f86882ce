-- dnsjit.lib.*
local name, inside = ...
local ffi = inside.ffi

if name == "dnsjit.lib.ip" then
    require("dnsjit.core.objects")
    local Ip = {}
    function Ip.ipstring(ip) return inside.v4(ffi.cast("const uint8_t *", ip)) end
    function Ip.ip6string(ip, pretty) return inside.v6(ffi.cast("const uint8_t *", ip), pretty) end
    -- Selected by the size of an array; a bare pointer is assumed to be an IPv6 address.
    function Ip.tostring(ip, pretty)
        local ok, size = pcall(ffi.sizeof, ip)
        if ok and size == 4 then return Ip.ipstring(ip) end
        return Ip.ip6string(ip, pretty)
    end
    return Ip
end

if name == "dnsjit.lib.clock" then
    require("dnsjit.core.objects")
    local time = ffi.new("gannet_time_t")
    local function read(clock)
        return function()
            ffi.C.clock_gettime(clock, time)
            return tonumber(time.sec), tonumber(time.nsec)
        end
    end
    return { realtime = read(0), monotonic = read(1) }
end

if name == "dnsjit.lib.base64url" then
    local letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    local values = {}
    for index = 1, #letters do values[letters:byte(index)] = index - 1 end
    local log = require("dnsjit.core.log").new("lib.base64url")
    -- RFC 4648 §5, without padding.
    local function encode(data, length)
        if type(data) ~= "string" then data = ffi.string(data, length) end
        local out = {}
        for at = 1, #data, 3 do
            local a, b, c = data:byte(at, at + 2)
            local bits = a * 65536 + (b or 0) * 256 + (c or 0)
            for index = 0, b and (c and 3 or 2) or 1 do
                local six = math.floor(bits / 2 ^ (18 - 6 * index)) % 64 + 1
                out[#out + 1] = letters:sub(six, six)
            end
        end
        return table.concat(out)
    end
    local function decode(text)
        local out, bits, count = {}, 0, 0
        for at = 1, #text do
            local value = values[text:byte(at)]
            if not value then
                if text:sub(at):match("^=+$") then break end
                log:critical("invalid base64url data at byte " .. at)
                return nil
            end
            bits, count = bits * 64 + value, count + 6
            if count >= 8 then
                count = count - 8
                out[#out + 1] = string.char(math.floor(bits / 2 ^ count))
                bits = bits % 2 ^ count
            end
        end
        if count >= 6 then
            log:critical("base64url data ends within a byte")
            return nil
        end
        return table.concat(out)
    end
    return { encode = encode, decode = decode }
end

if name == "dnsjit.lib.getopt" then
    local log = require("dnsjit.core.log").new("lib.getopt")
    local Getopt = {}
    Getopt.__index = Getopt
    local function new(options)
        local self = setmetatable({ list = {}, by_name = {}, left = {} }, Getopt)
        for _, option in ipairs(options or {}) do self:add(unpack(option, 1, 5)) end
        if not self.by_name.help then self:add("h", "help", false, "Display this help text", "?") end
        return self
    end
    function Getopt:log() return log end
    function Getopt:add(short, long, default, help, extensions)
        local option = { short = short, long = long, default = default, help = help,
            extensions = extensions or "", kind = type(default) }
        option.counts = option.kind == "number" and option.extensions:find("%+") ~= nil
        option.many = option.extensions:find("%*") ~= nil
        option.value = option.many and {} or default
        self.list[#self.list + 1] = option
        for _, key in ipairs({ short or "", long or "" }) do
            if key ~= "" then self.by_name[key] = option end
        end
    end
    function Getopt:usage()
        if self.usage_desc then print("usage: " .. self.usage_desc) end
        for _, option in ipairs(self.list) do
            local short = option.short and "-" .. option.short or "  "
            print("  " .. short .. "  --" .. (option.long or ""), option.help or "")
        end
    end
    local function set(option, text)
        local value = text
        if option.kind == "number" then
            value = tonumber(text)
            if not value then log:fatal("option --" .. option.long .. " wants a number") end
        end
        if option.many then table.insert(option.value, value) else option.value = value end
    end
    -- Parses the script's options; arguments that are not options are returned, and stored in
    -- `left`.
    function Getopt:parse(arguments, start)
        arguments, start = arguments or arg, start or 2
        local left, at, only_left = {}, start, false
        while arguments[at] ~= nil do
            local word = arguments[at]
            at = at + 1
            local function take(option, given)
                if option.kind == "boolean" then
                    option.value = not option.default
                elseif option.counts and not given then
                    option.value = option.value + 1
                else
                    if not given then
                        given = arguments[at]
                        at = at + 1
                    end
                    if given == nil then log:fatal("option " .. word .. " wants a value") end
                    set(option, given)
                end
            end
            if only_left or word == "-" or word:sub(1, 1) ~= "-" then
                left[#left + 1] = word
            elseif word == "--" then
                only_left = true
            elseif word:sub(1, 2) == "--" then
                local long, given = word:match("^%-%-([^=]+)=?(.*)$")
                local option = self.by_name[long]
                if not option then log:fatal("unknown option " .. word) end
                take(option, word:find("=", 1, true) and given or nil)
            else
                local letters = word:sub(2)
                while #letters > 0 do
                    local option = self.by_name[letters:sub(1, 1)]
                    if not option then log:fatal("unknown option -" .. letters:sub(1, 1)) end
                    letters = letters:sub(2)
                    if option.kind == "boolean" or option.counts then
                        take(option)
                    else
                        take(option, #letters > 0 and letters or nil)
                        letters = ""
                    end
                end
            end
        end
        self.left = left
        return left
    end
    function Getopt:val(key)
        local option = self.by_name[key]
        return option and option.value
    end
    return { new = new }
end

if name == "dnsjit.lib.parseconf" then
    local log = require("dnsjit.core.log").new("lib.parseconf")
    local Conf = {}
    Conf.__index = Conf
    function Conf:func(word, call) self.funcs[word] = call end
    function Conf:val(word) return self.vals[word] end
    function Conf:line(line)
        local words = {}
        for word in line:gsub("#.*", ""):gsub(";%s*$", ""):gmatch("%S+") do words[#words + 1] = word end
        local key = table.remove(words, 1)
        if not key then return end
        if self.funcs[key] then return self.funcs[key](key, unpack(words)) end
        for index, word in ipairs(words) do words[index] = tonumber(word) or word end
        self.vals[key] = #words <= 1 and words[1] or words
    end
    function Conf:file(path)
        local file, problem = io.open(path)
        if not file then
            log:critical(problem)
            return -1
        end
        for line in file:lines() do self:line(line) end
        file:close()
        return 0
    end
    return { new = function() return setmetatable({ funcs = {}, vals = {} }, Conf) end }
end

-- dnsjit.lib.trie: a map from bytes to a C value, in the order of the bytes.
require("dnsjit.core.objects")
local Trie, Node, Iter = {}, {}, {}
Trie.__index, Node.__index, Iter.__index = Trie, Node, Iter
local log = require("dnsjit.core.log").new("lib.trie")

local function new(ctype, binary, keylen)
    local size = ffi.sizeof(ctype)
    if size > ffi.sizeof("void *") then log:fatal("values are as long as a pointer at the most") end
    return setmetatable({ ctype = ffi.typeof("$[1]", ffi.typeof(ctype)), binary = binary or false,
        keylen = keylen, nodes = {}, count = 0 }, Trie)
end

local function key_of(self, key, length)
    if not self.binary then return key end
    length = length or self.keylen
    if type(key) == "string" then return length and key:sub(1, length) or key end
    return ffi.string(key, length or ffi.sizeof(key))
end

function Trie:log() return log end
function Trie:clear() self.nodes, self.count, self.order = {}, 0, nil end
function Trie:weight() return self.count end
function Trie:get_try(key, length) return self.nodes[key_of(self, key, length)] end
function Trie:get_ins(key, length)
    local bytes = key_of(self, key, length)
    local node = self.nodes[bytes]
    if not node then
        node = setmetatable({ bytes = bytes, value = self.ctype(), binary = self.binary }, Node)
        self.nodes[bytes] = node
        self.count, self.order = self.count + 1, nil
    end
    return node
end
local function order(self)
    if not self.order then
        self.order = {}
        for _, node in pairs(self.nodes) do self.order[#self.order + 1] = node end
        table.sort(self.order, function(a, b) return a.bytes < b.bytes end)
    end
    return self.order
end
function Trie:get_first()
    local first = order(self)[1]
    if not first then return nil end
    return first
end
function Trie:iter() return setmetatable({ order = order(self), at = 1 }, Iter) end

function Node:key()
    if not self.binary then return self.bytes end
    local length = #self.bytes
    local key = ffi.new("uint8_t[?]", length)
    ffi.copy(key, self.bytes, length)
    return key, length
end
function Node:get() return self.value[0] end
function Node:set(value) self.value[0] = value end
function Node:log() return log end
function Iter:node() return self.order[self.at] end
function Iter:next() self.at = self.at + 1 end
function Iter:log() return log end
return { new = new }
