-- Returns a function that writes what was printed, and returns why that failed, if it did.
-- A reader that closed a pipe has seen enough.
local is_pipe = ...
local EPIPE = 32
local ffi = require("ffi")
ffi.cdef([[int gannet_ferror(void *) __asm__("ferror");]])
local out, flush, err, write = io.stdout, io.stdout.flush, io.stderr, io.stderr.write
-- A statically linked program may not find it: then only the last write counts.
local found, ferror = pcall(function() return ffi.C.gannet_ferror end)

local function check()
    local ok, why, code = flush(out)
    if ok and not is_pipe and found and ferror(out) ~= 0 then return "an earlier write failed" end
    if not ok and code ~= EPIPE then return why end
end

local exit = os.exit
function os.exit(code, ...)
    local why = (code == nil or code == true or code == 0) and check()
    if why then
        write(err, "error: standard output: ", why, "\n")
        code = 1
    end
    exit(code, ...)
end

return check
