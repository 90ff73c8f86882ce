-- Readers of packed values: those of events and those of rows. Returns functions that make them.
--
-- A reader gets the bytes, where the value begins, their number and the table that the value becomes part of; it
-- returns the value and where the next one begins. Bytes are checked before each read: scripts can reach the packed
-- text of a table, and whatever they put in its place is an error at most.
local _, inside = ...
local ffi, api = inside.ffi, inside.api
local tonumber, error, type, setmetatable, rawget = tonumber, error, type, setmetatable, rawget
local match, sub, byte, find = string.match, string.sub, string.byte, string.find
local str, cast = ffi.string, ffi.cast

local U8, U32 = ffi.typeof("const uint8_t *"), ffi.typeof("const uint32_t *")
local I64, U64, F64 = ffi.typeof("const int64_t *"), ffi.typeof("const uint64_t *"), ffi.typeof("const double *")

local function need(at, size, len)
    if at + size > len then error("these values are damaged", 0) end
end

local function address(bytes)
    local buffer = ffi.new("char[64]")
    return str(buffer, api.address_text(bytes, buffer))
end

-- Nanoseconds as seconds, cut to microseconds as in logs.
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
    -- LuaJIT takes the bits of most NaNs for values of other types.
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
    -- Those of IPv4 count the 96 bits in front of an address.
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

-- A connection or file, by its index among those that the event mentions.
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

-- The reader of a type that a description names from `at` on, and where the type ends.
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

-- Cells of rows: a mark, and the value unless it is unset.
local function read_seconds(p, at, len, mark)
    if mark == 1 then return read_time(p, at, len) end
    return read_double(p, at, len)
end
local cells = {
    bool = read_bool, count = read_count, port = read_count, int = read_int, double = read_double,
    time = read_seconds, interval = read_seconds, addr = read_addr,
}

local function cell_of(name)
    local read = cells[name] or read_text
    return function(p, at, len)
        need(at, 1, len)
        local mark = p[at]
        if mark == 0 then return nil, at + 1 end
        return read(p, at + 1, len, mark)
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

-- The reader of a column of a log.
function made.cell(kind)
    local inner = match(kind, "^%a+%[(.*)%]$")
    if not inner then return cell_of(kind) end
    local element = cell_of(inner)
    return function(p, at, len)
        need(at, 1, len)
        if p[at] == 0 then return nil, at + 1 end
        local count
        count, at = read_size(p, at + 1, len)
        need(at, count, len)
        local list, value = {}, nil
        for place = 1, count do
            value, at = element(p, at, len)
            -- An element that is unset has its place all the same.
            list[place] = value == nil and "-" or value
        end
        return list, at
    end
end

return made
