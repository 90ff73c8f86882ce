-- Sends the given number of pointers through dnsjit's ring, from one thread to another, by its C
-- functions, which wait while the ring is full. Prints words per second and the number received.
local ffi = require("ffi")
require("dnsjit.core.objects")
local clock = require("dnsjit.lib.clock")
local words = tonumber(arg[2])
local channel = require("dnsjit.core.channel").new(2048)
local done = require("dnsjit.core.channel").new(4)
local thread = require("dnsjit.core.thread").new()
thread:start(function(own)
    local ffi = require("ffi")
    local channel, done = own:pop(2)
    local C, count = ffi.C, 0
    while C.core_channel_get(channel) ~= nil do count = count + 1 end
    C.core_channel_put(done, ffi.cast("void *", count))
end)
thread:push(channel, done)
local object = ffi.new("core_object_null_t")
local pointer, C = ffi.cast("core_object_t *", object), ffi.C
local sec, nsec = clock:monotonic()
for _ = 1, words do C.core_channel_put(channel, pointer) end
C.core_channel_put(channel, nil)
local count = tonumber(ffi.cast("intptr_t", C.core_channel_get(done)))
local sec2, nsec2 = clock:monotonic()
thread:stop()
print(words / (tonumber(sec2 - sec) + tonumber(nsec2 - nsec) / 1e9), count)
