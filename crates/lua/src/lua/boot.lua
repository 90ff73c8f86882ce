-- Registers gannet's modules, and removes what a sandbox must not have.
local pointer, declarations, source_of, sandbox, progress = ...
local ffi = require("ffi")
ffi.cdef(declarations)
local api = ffi.cast("const gannet_api *", pointer)
local loadstring, setmetatable, setfenv, error, type = loadstring, setmetatable, setfenv, error, type
local tostring, load, concat = tostring, load, table.concat

-- The arguments (`...`) of the modules: the functions of the program, and the FFI.
local inside = { api = api, ffi = ffi, sandbox = sandbox, progress = progress }

-- Raises an error at the line of the innermost function of a script, for tail calls, where the
-- calling function has left the stack.
local getinfo, sub = debug.getinfo, string.sub
function inside.blame(text)
    local level = 2
    while true do
        local info = getinfo(level, "Sl")
        if not info then error(text, 0) end
        if sub(info.source, 1, 1) == "@" and info.currentline > 0 then
            error(info.short_src .. ":" .. info.currentline .. ": " .. text, 0)
        end
        level = level + 1
    end
end

local loaded = package.loaded

-- The globals of the modules in the sandbox: copies that a script cannot reach.
local own_globals
if sandbox then
    own_globals = {}
    for _, name in ipairs({
        "error", "ipairs", "next", "pairs", "rawget", "rawset", "select", "setmetatable", "tonumber", "tostring", "type",
    }) do
        own_globals[name] = _G[name]
    end
    for _, name in ipairs({ "math", "string", "table" }) do
        own_globals[name] = {}
        for key, value in pairs(_G[name]) do own_globals[name][key] = value end
    end
end

local function load_own(name)
    local source = source_of(name)
    if not source then return nil end
    local chunk, problem = loadstring(source, "=" .. name)
    if not chunk then error(problem, 0) end
    if own_globals then setfenv(chunk, own_globals) end
    return function() return chunk(name, inside) end
end
inside.load = load_own

if not sandbox then
    table.insert(package.loaders, 2, function(name)
        local own = load_own(name)
        if own then return own end
        -- Declares a module's types to the FFI when the module is loaded.
        if name:find("^dnsjit%..*_h$") then
            return function() return require("dnsjit.core.objects") end
        end
        return "\n\tno module '" .. name .. "' in gannet"
    end)
    _G.gannet = require("gannet")
    -- The supported version of dnsjit's API.
    _G.DNSJIT_VERSION = "1.5.0"
    _G.DNSJIT_MAJOR_VERSION, _G.DNSJIT_MINOR_VERSION, _G.DNSJIT_PATCH_VERSION = 1, 5, 0
    return
end

local made = { gannet = load_own("gannet")(), bit = loaded.bit, string = string, table = table, math = math }
function _G.require(name)
    if type(name) ~= "string" or not made[name] then
        error("module '" .. tostring(name) .. "' is not there in the sandbox", 2)
    end
    return made[name]
end
local text_only = function(loader)
    return function(chunk, name, mode, environment)
        if type(chunk) == "function" then
            local parts = {}
            while true do
                local part = chunk()
                if part == nil or part == "" then break end
                parts[#parts + 1] = part
            end
            chunk = concat(parts)
        end
        return loader(chunk, name, "t", environment)
    end
end
_G.load = text_only(load)
_G.loadstring = text_only(load)
_G.gannet = made.gannet
for _, name in ipairs({
    "io", "os", "ffi", "debug", "jit", "package", "dofile", "loadfile", "module", "newproxy",
    "getfenv", "setfenv", "collectgarbage",
}) do
    _G[name] = nil
end
string.dump = nil
