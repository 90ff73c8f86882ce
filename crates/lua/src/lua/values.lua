-- Readers of the packed values of events and rows. Returns functions that create them.
--
-- A reader gets the bytes, the offset of the value, their length and the table that will contain
-- the value; it returns the value and the offset of the next one. Bounds are checked before each
-- read, because scripts can replace the packed bytes of a table: arbitrary bytes cause at most an
-- error.
local _, inside = ...
local ffi, api = inside.ffi, inside.api
local tonumber, error, type, setmetatable, rawget = tonumber, error, type, setmetatable, rawget
local match, sub, byte, find = string.match, string.sub, string.byte, string.find
local str, cast, floor = ffi.string, ffi.cast, math.floor

local U8, U32 = ffi.typeof("const uint8_t *"), ffi.typeof("const uint32_t *")
local I64, U64, F64 = ffi.typeof("const int64_t *"), ffi.typeof("const uint64_t *"), ffi.typeof("const double *")

local function need(at, size, len)
    if at + size > len then error("these values are damaged", 0) end
end

local function address(bytes)
    local buffer = ffi.new("char[64]")
    return str(buffer, api.address_text(bytes, buffer))
end

-- Converts nanoseconds to seconds, truncated to microseconds as in logs.
local function seconds(ns) return tonumber(ns / 1000) / 1e6 end

local function read_bool(p, at, len)
    need(at, 1, len)
    return p[at] ~= 0, at + 1
end
local function read_count(p, at, len)
    need(at, 8, len)
    return tonumber(cast(U64, p + at)[0]), at + 8
end
local function read_int(p, at, len)
    need(at, 8, len)
    return tonumber(cast(I64, p + at)[0]), at + 8
end
local function read_double(p, at, len)
    need(at, 8, len)
    local low, high = cast(U32, p + at)[0], cast(U32, p + at + 4)[0]
    local magnitude = high % 0x80000000
    if magnitude < 0x7ff00000 then return cast(F64, p + at)[0], at + 8 end
    -- LuaJIT would interpret the bits of most NaNs as values of other types.
    if magnitude > 0x7ff00000 or low ~= 0 then return 0 / 0, at + 8 end
    return high == magnitude and 1 / 0 or -1 / 0, at + 8
end
local function read_time(p, at, len)
    need(at, 8, len)
    return seconds(cast(I64, p + at)[0]), at + 8
end
local function read_size(p, at, len)
    need(at, 4, len)
    return cast(U32, p + at)[0], at + 4
end
local function read_text(p, at, len)
    local size
    size, at = read_size(p, at, len)
    need(at, size, len)
    return str(p + at, size), at + size
end
local function read_addr(p, at, len)
    need(at, 16, len)
    return address(p + at), at + 16
end
local function read_port(p, at, len)
    need(at, 3, len)
    return p[at] + 256 * p[at + 1], at + 3
end
local function read_subnet(p, at, len)
    need(at, 17, len)
    local text = address(p + at)
    local width = p[at + 16]
    -- Prefix lengths of IPv4 include the 96 bits before the address.
    if not find(text, ":", 1, true) then width = width - 96 end
    return text .. "/" .. width, at + 17
end
local function read_conn_id(p, at, len)
    local id = {}
    id.orig_h, at = read_addr(p, at, len)
    id.orig_p, at = read_port(p, at, len)
    id.resp_h, at = read_addr(p, at, len)
    id.resp_p, at = read_port(p, at, len)
    need(at, 1, len)
    id.proto = p[at]
    return id, at + 1
end

-- A connection or file, by its index among those of the event.
local function read_mentioned(what)
    return function(p, at, len, it)
        local index
        index, at = read_size(p, at, len)
        local all = rawget(it, 2)
        local list = type(all) == "table" and rawget(all, what)
        local text = type(list) == "table" and rawget(list, index + 1)
        if type(text) ~= "string" then error("these values are damaged", 0) end
        return setmetatable({ text }, all.records[what]), at
    end
end

local scalars = {
    bool = read_bool, count = read_count, int = read_int, double = read_double, time = read_time,
    interval = read_double, string = read_text, enum = read_text, addr = read_addr, port = read_port,
    subnet = read_subnet, conn_id = read_conn_id, connection = read_mentioned("connection"),
    fa_file = read_mentioned("fa_file"),
}

local function optional(read)
    return function(p, at, len, it)
        need(at, 1, len)
        if p[at] == 0 then return nil, at + 1 end
        return read(p, at + 1, len, it)
    end
end

local parse

local function list_of(text, at)
    local read
    read, at = parse(text, at)
    return function(p, at, len, it)
        local count
        count, at = read_size(p, at, len)
        need(at, count, len)
        local list = {}
        for place = 1, count do list[place], at = read(p, at, len, it) end
        return list, at
    end, at + 1
end

local function table_of(text, at)
    local read_key, read_value
    read_key, at = parse(text, at)
    read_value, at = parse(text, at + 1)
    return function(p, at, len, it)
        local count
        count, at = read_size(p, at, len)
        need(at, count, len)
        local all, key, value = {}, nil, nil
        for _ = 1, count do
            key, at = read_key(p, at, len, it)
            value, at = read_value(p, at, len, it)
            all[key] = value
        end
        return all, at
    end, at + 1
end

local function record_of(text, at)
    local fields = {}
    while byte(text, at) ~= 41 do
        local name = match(text, "^[^:]*", at)
        local read
        read, at = parse(text, at + #name + 1)
        if sub(text, at, at) == "?" then
            read, at = optional(read), at + 1
        end
        fields[#fields + 1] = { name = name, read = read }
        at = at + 1
    end
    return function(p, at, len, it)
        local record = {}
        for place = 1, #fields do
            local field = fields[place]
            record[field.name], at = field.read(p, at, len, it)
        end
        return record, at
    end, at + 1
end

-- The reader of the type at offset `at` of a description, and the end of the type.
function parse(text, at)
    local name = match(text, "^[%w_]+", at)
    local rest = at + #name
    if sub(text, rest, rest) ~= "(" then return scalars[name] or read_text, rest end
    if name == "list" then return list_of(text, rest + 1) end
    if name == "table" then return table_of(text, rest + 1) end
    if name == "record" then return record_of(text, rest + 1) end
    -- Scripts get the name of an opaque value, not its contents.
    local inner = match(text, "^[^)]*", rest + 1)
    return function(p, at, len)
        local _
        _, at = read_text(p, at, len)
        return inner, at
    end, rest + #inner + 2
end

-- Values of columns: eight-byte values are stored in their slots, or after the marks of elements.
local function read_seconds(p, at, len, mark)
    if mark == 1 then return read_time(p, at, len) end
    return read_double(p, at, len)
end
local words = {
    count = read_count, port = read_count, int = read_int, double = read_double,
    time = read_seconds, interval = read_seconds,
}

-- List elements: a mark, followed by the value unless it is unset.
local function element_of(name)
    local read = words[name] or scalars[name == "bool" and name or name == "addr" and name or "string"]
    return function(p, at, len)
        need(at, 1, len)
        local mark = p[at]
        if mark == 0 then return nil, at + 1 end
        return read(p, at + 1, len, mark)
    end
end

-- The offset in the variable part of a row that a slot with size and offset refers to, and the
-- size.
local function rest(p, slot, len)
    need(slot, 8, len)
    local size, place = cast(U32, p + slot)[0], cast(U32, p + slot + 4)[0]
    return cast(U32, p)[0] + place, size
end

-- A slot whose last byte has its highest bit set contains the value itself.
local function slot_text(p, slot, len)
    local last = p[slot + 7]
    if last >= 128 then return str(p + slot, last % 8) end
    local at, size = rest(p, slot, len)
    need(at, size, len)
    return str(p + at, size)
end
local function slot_addr(p, slot, len)
    if p[slot + 7] >= 128 then
        local mapped = ffi.new("uint8_t[16]")
        mapped[10], mapped[11] = 255, 255
        for place = 0, 3 do mapped[12 + place] = p[slot + place] end
        return address(mapped)
    end
    local at = cast(U32, p)[0] + cast(U32, p + slot)[0]
    need(at, 16, len)
    return address(p + at)
end
local function slot_list(name)
    local element = element_of(name)
    return function(p, slot, len)
        local at, count = rest(p, slot, len)
        need(at, count, len)
        local list, value = {}, nil
        for place = 1, count do
            value, at = element(p, at, len)
            -- An unset element keeps its index.
            list[place] = value == nil and "-" or value
        end
        return list
    end
end

local made = {
    seconds = seconds,
    number = function(value) return tonumber(value) end,
    -- The bytes of a string.
    bytes = function(text) return cast(U8, text) end,
}

-- The reader of a parameter of an event, or a field of a record.
function made.event(kind, is_optional)
    local read = parse(kind, 1)
    return is_optional and optional(read) or read
end

-- The reader of a column of a log, by its index. Marks of 32 columns, two bits each, precede their slots of eight bytes.
function made.cell(kind, column)
    local place = column % 32
    local marks = 4 + (column - place) / 32 * 264
    local slot, byte_at, unit = marks + 8 + place * 8, marks + floor(place / 4), 4 ^ (place % 4)
    local inner = match(kind, "^%a+%[(.*)%]$")
    local read = inner and slot_list(inner) or words[kind] or kind == "bool" and read_bool
        or kind == "addr" and slot_addr or slot_text
    return function(p, at, len)
        need(slot, 8, len)
        local mark = floor(p[byte_at] / unit) % 4
        if mark == 0 then return nil, at end
        local value = read(p, slot, len, mark)
        return value, at
    end
end

return made
