-- gannet.client: sends messages to a DNS server and receives its answers. Returns a function that
-- adds it to the module.
local _, inside = ...
local api, ffi = inside.api.clients, inside.ffi
local setmetatable, type, error, tonumber = setmetatable, type, error, tonumber
local str = ffi.string

local Client = {}
local client = { __index = Client, __metatable = "client" }

local insides = setmetatable({}, { __mode = "k" })
local ways = { udp = { 0, 53 }, tcp = { 1, 53 }, tls = { 2, 853 }, https = { 3, 443 } }

local function of(self, verb)
    local me = insides[self]
    if not me then error("call " .. verb .. " with a colon: client:" .. verb .. "(...)", 3) end
    return me
end

return function(gannet, problem, _, _, _, check_options)
    --- Connects to a DNS server to send messages: `udp://127.0.0.1:5300`, `tcp://`, `tls://`
    -- or `https://[::1]:8443/dns-query` (HTTP/2; default path `/dns-query`). The certificate must be
    -- signed by one of the system's authorities. Public addresses are refused without `yes_i_may`.
    --
    --     local server = gannet.client("https://127.0.0.1:8443", { ca = "authority.pem" })
    --     gannet.input(arg[2]):dns():queries():each(function(m) print(#(server:ask(m.bytes) or "")) end)
    -- @param url transport and address
    -- @param options `timeout` in seconds, default 5; `ca`, a file of authorities; `verify = false` to
    -- accept any certificate; `yes_i_may = true` for public addresses
    -- @return a client
    function gannet.client(url, options)
        if inside.sandbox then error("the sandbox sends nothing", 2) end
        options = options or {}
        if type(url) ~= "string" or type(options) ~= "table" then
            error("gannet.client wants a URL, and a table of options if any", 2)
        end
        check_options("gannet.client", options, { timeout = true, ca = true, verify = true, yes_i_may = true })
        local scheme, rest = url:match("^(%a+)://(.+)$")
        local way = ways[scheme]
        if not way then error("'" .. url .. "' begins with none of udp://, tcp://, tls://, https://", 2) end
        local server, path = rest:match("^([^/]*)(.*)$")
        if path ~= "" and scheme ~= "https" then error("only https:// has a path", 2) end
        local timeout = tonumber(options.timeout or 5)
        if not timeout or not (timeout > 0) then error("timeout is a number of seconds", 2) end
        local trust = options.ca or ""
        if options.verify == false then trust = nil end
        local handle = api.begin(way[1], server, way[2], path == "" and "/dns-query" or path, trust,
            options.yes_i_may == true and 1 or 0, timeout)
        if handle == nil then error(problem(), 2) end
        local self = setmetatable({}, client)
        insides[self] = {
            handle = ffi.gc(handle, api.free), is_stream = scheme ~= "udp",
            bytes = ffi.new("const uint8_t *[1]"), len = ffi.new("uint32_t[1]"),
        }
        return self
    end

    local function send(me, verb, message)
        if type(message) ~= "string" then error(verb .. " wants the bytes of a message", 3) end
        if #message > 65535 then error("a DNS message has 65,535 bytes at the most", 3) end
        if api.send(me.handle, message, #message, 1) ~= 0 then error(problem(), 3) end
    end

    local function receive(me)
        local rc = api.receive(me.handle, me.bytes, me.len)
        if rc < 0 then error(problem(), 3) end
        if rc == 0 then return nil end
        if me.is_stream then return str(me.bytes[0] + 2, me.len[0] - 2) end
        return str(me.bytes[0], me.len[0])
    end

    --- Sends a message: its bytes, such as `m.bytes`.
    function Client:send(message)
        send(of(self, "send"), "send", message)
    end

    --- Waits for the next message, for any query.
    -- @return its bytes, nil if none came in time
    function Client:receive()
        -- No tail call: the error's level counts this function.
        local bytes = receive(of(self, "receive"))
        return bytes
    end

    --- Sends a message and waits for the next one.
    -- @return its bytes, nil if none came in time
    function Client:ask(message)
        local me = of(self, "ask")
        send(me, "ask", message)
        local bytes = receive(me)
        return bytes
    end
end
