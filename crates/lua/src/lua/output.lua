-- Returns a function that flushes printed output, and returns the error if that fails. A reader
-- that closed the pipe needs no more output; that is no error.
local is_pipe = ...
local EPIPE = 32
local ffi = require("ffi")
ffi.cdef([[int gannet_ferror(void *) __asm__("ferror");]])
local out, flush, err, write = io.stdout, io.stdout.flush, io.stderr, io.stderr.write
-- A statically linked program may not find the function: then only the last write is checked.
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
