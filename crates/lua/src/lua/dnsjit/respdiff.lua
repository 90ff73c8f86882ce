-- dnsjit.output.respdiff: queries with two answers each, for respdiff.
local _, inside = ...
require("dnsjit.core.objects")
local api, ffi = inside.api.respdiffs, inside.ffi
local log = require("dnsjit.core.log").new("output.respdiff")

local Respdiff = {}
Respdiff.__index = Respdiff

local function problem() return ffi.string(inside.api.last_error()) end

-- The map size that dnsjit requires is ignored: the map grows as needed.
local function new(path, origname, recvname)
    local names = ffi.new("const char *[2]", origname, recvname)
    local handle = api.create(path, names, 2)
    if handle == nil then log:fatal("%s", problem()) end
    local self = setmetatable({
        handle = ffi.gc(handle, api.free), answers = ffi.new("gannet_answer[2]"),
        time = ffi.new("gannet_time_t"),
    }, Respdiff)
    self.obj = self
    return self
end

function Respdiff:log() return log end

local function set(answer, payload, took)
    answer.seconds = -1
    if payload then answer.bytes, answer.len, answer.seconds = payload.payload, payload.len, took end
end

-- Receives the payload of a query, preceded by that of the captured answer, and before that the
-- received one, if any. The response time counts from the call with the previous query.
function Respdiff:receive()
    return function(this, obj)
        local chain, at = {}, ffi.cast("core_object_t *", obj)
        while at ~= nil and #chain < 3 do
            if at.obj_type ~= 40 then log:fatal("a payload is wanted in a chain of payloads") end
            chain[#chain + 1] = inside.object_cast(at)
            at = ffi.cast("core_object_t *", at.obj_prev)
        end
        if #chain < 2 then log:fatal("a query and an answer to it are wanted") end
        ffi.C.clock_gettime(1, this.time)
        local now = tonumber(this.time.sec) + tonumber(this.time.nsec) / 1e9
        local took = math.max(now - (this.before or now), 0)
        this.before = now
        set(this.answers[0], chain[2], 0)
        set(this.answers[1], chain[3], took)
        if api.put(this.handle, chain[1].payload, chain[1].len, this.answers, 2) ~= 0 then
            log:fatal("%s", problem())
        end
    end, self
end

function Respdiff:commit(start_time, end_time)
    if api.finish(self.handle, start_time, end_time) < 0 then log:fatal("%s", problem()) end
end

return { new = new }
