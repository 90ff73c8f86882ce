//! `gannet run --sandbox`: attempts to escape, and the lines that errors name.
#![cfg(feature = "lua")]
#![allow(clippy::unwrap_used)]

use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;
use crate::support::sample;

/// A function that uses everything in the module that the sandbox allows, and returns the results as an array.
const USE_ALL: &str = r##"
local function use_all(file)
    local out = {}
    local function put(value) out[#out + 1] = value end
    local packet = { "time", "number", "len", "caplen", "link_type", "src", "dst", "sport", "dport",
        "proto", "bytes", "payload" }
    local message = { "time", "number", "len", "src", "dst", "sport", "dport", "transport", "id", "qr",
        "is_query", "is_response", "opcode", "opcode_name", "aa", "tc", "rd", "ra", "ad", "cd", "rcode",
        "rcode_name", "qdcount", "ancount", "nscount", "arcount", "has_question", "qname", "qtype",
        "qtype_name", "qclass", "qclass_name", "bytes" }
    local function view(fields, it)
        for at = 1, #fields do
            local value = it[fields[at]]
            if value == nil then put("nil") elseif value == true then put("true")
            elseif value == false then put("false") else put(value) end
        end
    end
    local far = 0
    gannet.input(file):filter("ip"):limit(50):progress(function(p) far = p.packets end):each(function(p)
        view(packet, p)
    end)
    put(far)
    gannet.input(file):dns(53, 5353):pace({ speed = 1e6 }):each(function(m)
        view(message, m)
        local answers = m.answers
        for at = 1, #answers do
            local a = answers[at]
            put(a.section) put(a.name) put(a.type_name) put(a.ttl) put(a.data)
        end
    end)
    gannet.input(file):dns():join(3):each(function(q, r, took)
        view(message, q)
        if r then view(message, r) put(took) end
    end)
    local function counts(c)
        put(c:total()) put(c:keys())
        local top = c:top(3)
        for at = 1, #top do put(top[at].key) put(top[at].count) put(c[top[at].key]) end
        c:each(function(key, count) put(key) put(count) end)
    end
    counts(gannet.input(file):count_by("src", "dport"))
    counts(gannet.input(file):parallel(2):dns():queries():count_by("qname"))
    counts(gannet.input(file):sum_by("len", "proto"))
    put(gannet.input(file):count()) put(gannet.input(file):sum("len"))
    put(gannet.input(file):dns():responses():count())
    local l = gannet.input(file):dns():join():latencies()
    put(l.queries) put(l.p50) put(l.max)
    put(gannet.types[28]) put(gannet.rcodes[3]) put(gannet.version)
    local columns = { "ts", "uid", "id.orig_h", "id.resp_p" }
    local events = gannet.analyze(file):filter("ip"):ignore_checksums():on({
        conn = function(e) view(columns, e) put(e.id.orig_h) put(e.log) put(e.service) end,
        dns = function(e) put(e.query) put(e.answers and #e.answers) put(e.rcode_name) end,
        http_request = function(e) put(e.unescaped_URI) put(e.c.uid) end,
        file_state_remove = function(e) put(e.f.source) put(e.f.seen_bytes) end,
        dns_message = function(e) put(e.msg.id) put(e.c.id.orig_h) put(e.len) end,
    }):progress(function() end):run()
    put(events.packets) put(events.events) put(events.connections)
    return out
end
"##;

/// Runs a script in the sandbox with the sample as `arg[2]`.
fn sandboxed(name: &str, text: &str) -> Run {
    let s = Scratch::new(name);
    let capture = s.file("sample.pcap", &sample());
    let script = s.file("script.lua", text.as_bytes());
    Run::of(gannet().args(["run", "--sandbox"]).arg(script).arg(capture).arg(s.path("never.pcap")))
}

/// Asserts that a script in the sandbox prints `ok` and succeeds.
fn assert_ok(name: &str, text: &str) {
    let run = sandboxed(name, text);
    assert_eq!((run.code, run.stderr.as_str(), run.stdout.as_str()), (0, "", "ok\n"));
}

/// Scripts that replace global functions and methods neither intercept internal calls nor change results.
#[test]
fn replaced_globals_and_methods_are_not_called_from_inside() {
    let hostile = r##"
    local real, _G = {}, _G
    for name, value in pairs(_G) do real[name] = value end
    local type, error, tostring, pairs, select = type, error, tostring, pairs, select
    local before = use_all(arg[2])
    local caught
    local function evil(name)
        return function(...)
            for at = 1, select("#", ...) do
                if type((select(at, ...))) == "cdata" then caught = name end
            end
            caught = caught or name
            return 2 ^ 40
        end
    end
    local print = print
    local concat, getmetatable, setmetatable = table.concat, getmetatable, setmetatable
    for _, library in pairs({ string, table, math, coroutine, bit }) do
        for name in pairs(library) do library[name] = evil(name) end
    end
    getmetatable("").__index = function(_, name) caught = "string:" .. name return evil(name) end
    for _, operator in pairs({ "__eq", "__lt", "__le", "__concat", "__len", "__add", "__call" }) do
        getmetatable("")[operator] = evil(operator)
    end
    for name in pairs(real) do
        if type(real[name]) == "function" then _G[name] = evil(name) end
    end
    setmetatable(_G, { __index = evil("_G"), __newindex = evil("_G") })
    local after = use_all(arg[2])
    if caught then error("called from inside: " .. tostring(caught)) end
    if #before ~= #after or #before < 500 then error(#before .. " and " .. #after) end
    for at = 1, #before do
        if before[at] ~= after[at] then error(at .. ": " .. tostring(after[at])) end
    end
    print("ok")
    "##;
    // `print` itself calls the global `tostring`.
    let hostile = hostile.replace(
        "print(\"ok\")",
        "getmetatable(_G).__newindex = nil\n_G.tostring = tostring\nprint(\"ok\")",
    );
    assert_ok("hostile", &format!("{USE_ALL}{hostile}"));
}

#[test]
fn submodules_are_loaded_before_the_script() {
    assert_ok(
        "lazy",
        r##"
        local function trap(name) return function() error(name .. " was called") end end
        for _, name in ipairs({ "pairs", "ipairs", "next", "setmetatable", "rawget", "select", "type", "tonumber" }) do
            _G[name] = trap(name)
        end
        gannet.input(arg[2]):limit(1):each(function(p) assert(p.len > 0) end)
        gannet.analyze(arg[2]):on("conn", function(e) assert(e.uid) end):run()
        assert(rawequal(require("gannet"), gannet) and rawequal(require("bit"), bit))
        print("ok")
        "##,
    );
}

#[test]
fn views_never_read_freed_memory() {
    assert_ok(
        "views",
        r##"
        local fields = { "len", "bytes", "payload", "src", "time" }
        local function gone(view)
            for _, name in ipairs(fields) do
                assert(not pcall(function() return view[name] end), name)
            end
        end
        -- After the end, with the numbers that a view of the first record would have.
        local last
        gannet.input(arg[2]):each(function(p) last = p end)
        for place = 0, 3 do
            for _, index in ipairs({ 0, 1, -1, 0.5, 1e9, 1 / 0, 0 / 0, "0", 0LL, 1i, {}, gannet, print }) do
                rawset(last, 1, place)
                rawset(last, 2, index)
                gone(last)
            end
        end
        -- While a progress function runs, between two blocks of records.
        local calls, held = 0, nil
        gannet.input(arg[2]):progress(function()
            if held then
                calls = calls + 1
                for place = 0, 200 do
                    rawset(held, 1, place)
                    rawset(held, 2, 0)
                    gone(held)
                end
            end
        end):each(function(p) held = p end)
        assert(calls > 0)
        -- A view whose pipeline is garbage keeps what it reads.
        local function suspended()
            local view
            local go = coroutine.wrap(function()
                gannet.input(arg[2]):each(function(p) view = p coroutine.yield() end)
            end)
            go()
            return view, view.bytes
        end
        local view, bytes = suspended()
        for round = 1, 300000 do local _ = { round, tostring(round) } end
        assert(view.bytes == bytes)
        -- As does one that an error ended.
        local broken
        pcall(function() gannet.input(arg[2]):each(function(p) broken = p error("out") end) end)
        local before = broken.bytes
        for round = 1, 300000 do local _ = { round, tostring(round) } end
        assert(broken.bytes == before)
        print("ok")
        "##,
    );
}

/// Scripts can replace the packed bytes of an event: reading them then fails or returns values, but never accesses other
/// memory.
#[test]
fn packed_values_can_be_replaced() {
    assert_ok(
        "packed",
        r##"
        local names = { "conn", "dns", "http", "new_connection", "http_header", "dns_message", "file_new",
            "dns_A_reply", "connection_state_remove", "http_message_done" }
        local function fields(e)
            for _, name in ipairs({ "c", "id", "msg", "f", "hlist", "ans", "query", "name", "service", "uid" }) do
                pcall(function() return e[name].uid, e[name].id, #e[name] end)
            end
            pcall(tostring, e)
        end
        local made = 0
        for _, name in ipairs(names) do
            local seed = 7
            gannet.analyze(arg[2]):on(name, function(e)
                local text = rawget(e, 1)
                seed = (seed * 1103515245 + 12345) % 2147483648
                local cut = seed % (#text + 1)
                local junk = string.char(255, 255, 255, 255)
                local kinds = { text:sub(1, cut), text:sub(1, cut) .. junk .. text:sub(cut + 5), junk:rep(20), "", 7 }
                rawset(e, 1, kinds[1 + seed % #kinds])
                if seed % 3 == 0 then rawset(e, 2, { connection = { junk }, fa_file = "x", records = {} }) end
                fields(e)
                made = made + 1
            end):run()
        end
        assert(made > 20)
        print("ok")
        "##,
    );
}

#[test]
fn objects_hide_their_internals() {
    assert_ok(
        "objects",
        r##"
        local view
        local p = gannet.input(arg[2])
        local c = gannet.input(arg[2]):count_by("src")
        local a = gannet.analyze(arg[2])
        local one
        a:on("conn", function(e) one = e return false end):run()
        gannet.input(arg[2]):each(function(it)
            assert(getmetatable(it) == "packet" and not pcall(setmetatable, it, {}))
            assert(not pcall(function() it.len = 1 end))
            return false
        end)
        for _, object in ipairs({ p, c, a, one, gannet.types, gannet.rcodes }) do
            assert(type(getmetatable(object)) == "string")
            assert(not pcall(setmetatable, object, {}))
            for _, name in ipairs({ "__index", "__metatable", "__gc", "__newindex", "handle" }) do
                local there, value = pcall(function() return object[name] end)
                assert(not there or value == nil, name)
            end
        end
        -- Methods of one kind of object refuse the other kinds.
        local methods = { p.each, p.count, p.count_by, p.latencies, c.top, c.each, c.total, c.keys, c.get, a.run, a.on }
        local others = { p, c, a, one, gannet, gannet.types, {}, "x", 1, 1LL, print, coroutine.create(print) }
        local fine = 0
        for _, method in ipairs(methods) do
            for _, other in ipairs(others) do
                local good = pcall(method, other, function() return false end)
                fine = fine + (good and 1 or 0)
            end
        end
        assert(fine <= 4, fine)
        -- The only FFI values are numbers, whose metatable is closed.
        local ns
        gannet.input(arg[2]):limit(1):each(function(it) ns = it.time_ns end)
        assert(getmetatable(ns) == "ffi" and not pcall(function() return ns[0] end))
        assert(not pcall(function() return ns.x end) and not pcall(function() return ns() end))
        print("ok")
        "##,
    );
}

#[test]
fn handlers_coroutines_and_finalizers_have_no_access_to_internals() {
    assert_ok(
        "handlers",
        r##"
        local function text_only(problem) assert(type(problem) == "string") return problem end
        local wrong = {
            function() gannet.input("/nonexistent") end,
            function() gannet.input(arg[2]):filter("prot 1") end,
            function() gannet.input(arg[2]):filter("host in @/etc/hostname") end,
            function() gannet.analyze(arg[2]):filter("host in @/etc/hostname") end,
            function() gannet.input(arg[2]):write(arg[3]) end,
            function() gannet.input(arg[2]):split({ arg[3] }) end,
            function() gannet.client("udp://127.0.0.1:1") end,
            function() gannet.respdiff(arg[3], { "a" }) end,
            function() gannet.input(arg[2]):each(function(p) return p.nothing end) end,
            function() gannet.analyze(arg[2]):on("conn", function(e) return e.nothing end):run() end,
            function() gannet.analyze(arg[2]):on("new_connection", function(e) return e.c.nothing end):run() end,
        }
        for at, call in ipairs(wrong) do
            local good, problem = xpcall(call, text_only)
            assert(not good and type(problem) == "string", at)
            local go = coroutine.create(call)
            good, problem = coroutine.resume(go)
            assert(not good and type(problem) == "string", at)
        end
        -- Errors in error handlers, and stacks that overflow inside.
        pcall(xpcall, wrong[1], function() error("again") end)
        local function deep() return 1 + gannet.input(arg[2]):each(deep) end
        assert(not pcall(deep))
        local function deeper() return deeper() + 1 end
        assert(not pcall(function() gannet.input(arg[2]):each(deeper) end))
        -- No finalizers, no environments, no bytecode, no debug information.
        assert(newproxy == nil and getfenv == nil and setfenv == nil and debug == nil)
        local ended = false
        do setmetatable({}, { __gc = function() ended = true end }) end
        for round = 1, 300000 do local _ = { round } end
        assert(not ended)
        assert(string.dump == nil and ("").dump == nil and not load("\27LJ\2\0"))
        assert(not load("\27LJ\2\0", "x", "b") and not loadstring("\27LJ\2\0", "x", "b"))
        local parts = { "\27", "LJ\2\0" }
        assert(not load(function() return table.remove(parts, 1) end))
        local concat = table.concat
        table.concat = function() return "\27LJ\2\0" end
        assert(load(function() return nil end))
        table.concat = concat
        for _, name in ipairs({ "ffi", "io", "os", "debug", "jit", "jit.util", "package", "gannet.events",
            "gannet.views", "gannet.client", "gannet.respdiff", "dnsjit.core.thread" }) do
            assert(not pcall(require, name), name)
        end
        print("ok")
        "##,
    );
}

/// Errors of functions name the line of the script, for any arguments.
#[test]
fn errors_name_the_line_of_the_script() {
    let s = Scratch::new("blame");
    let capture = s.file("sample.pcap", &sample());
    let script = s.file(
        "script.lua",
        br##"
        local values = { 0, -1, 0.5, 1e300, 0 / 0, "x", "", true, false, {}, { 1 }, { "" }, { speed = {} },
            function() return false end, coroutine.create(print) }
        local odd = { n = 0 }
        local function try(what, call)
            local good, problem = pcall(call)
            if not good then
                odd.n = odd.n + 1
                if type(problem) ~= "string" or not problem:find("script.lua:%d+: ") or problem:find("^gannet") then
                    print(what, problem)
                end
            end
        end
        local function all(what, make)
            for first = 0, #values do
                for second = 0, #values do
                    try(what, function()
                        local object, method = make()
                        local _ = nil
                        if second > 0 then object[method](object, values[first], values[second]) else
                            object[method](object, values[first]) end
                    end)
                end
            end
            try(what, function() local object, method = make() object[method]() end)
            try(what, function() local object, method = make() object[method](1) end)
        end
        local file = arg[2]
        for _, method in ipairs({ "filter", "dns", "queries", "responses", "join", "pace", "limit", "parallel",
            "progress", "each", "count", "sum", "count_by", "sum_by", "latencies", "split" }) do
            all(method, function() return gannet.input(file), method end)
            if method ~= "split" then
                all(method, function() return gannet.input(file):dns():join(), method end)
            end
        end
        for _, method in ipairs({ "top", "each", "total", "keys" }) do
            all(method, function() return gannet.input(file):count_by("src"), method end)
        end
        for _, method in ipairs({ "on", "filter", "ignore_checksums", "progress", "run" }) do
            all(method, function() return gannet.analyze(file), method end)
        end
        for _, method in ipairs({ "input", "analyze", "client" }) do
            for first = 0, #values do
                try(method, function()
                    local _ = gannet[method](values[first])
                end)
            end
        end
        -- A capture that is cut raises its error at the end of every verb.
        local cut = arg[3]
        local function fails(what, call)
            local good = pcall(call)
            if good then print(what, "goes well") end
            try(what, call)
        end
        for _, threads in ipairs({ 1, 2 }) do
            local function input() return gannet.input(cut):parallel(threads) end
            fails("each", function() input():each(function() end) end)
            fails("count", function() input():count() end)
            fails("sum", function() input():sum("len") end)
            fails("count_by", function() input():count_by("src") end)
            fails("sum_by", function() input():dns():sum_by("len", "qname") end)
            fails("write", function() input():write("out.pcap") end)
            fails("split", function() input():split({ "one.pcap", "two.pcap" }) end)
            fails("latencies", function() input():dns():join():latencies() end)
            fails("run", function() gannet.analyze(cut):on("conn", function() end):run() end)
        end
        try("event", function() gannet.analyze(file):on("conn", function(e) return e.x end):run() end)
        try("event", function() gannet.analyze(file):on("conn", function(e) e.x = 1 end):run() end)
        try("view", function() gannet.input(file):each(function(p) return p.x end) end)
        try("view", function() gannet.input(file):each(function(p) p.x = 1 end) end)
        try("names", function() gannet.types.x = 1 end)
        try("client", function() gannet.client("udp://127.0.0.1:9", { timeout = 0.01 }):ask(1) end)
        try("client", function() gannet.client("udp://127.0.0.1:9", { timeout = 0.01 }):ask(("x"):rep(70000)) end)
        try("client", function() gannet.client("udp://8.8.8.8") end)
        try("input", function() gannet.input("/nonexistent") end)
        print(odd.n > 1000)
        "##,
    );
    let cut = s.file("cut.pcap", &sample()[..sample().len() - 7]);
    let run =
        Run::of(gannet().arg("run").arg(script).arg(capture).arg(cut).current_dir(s.path("")));
    assert_eq!((run.code, run.stderr.as_str(), run.stdout.as_str()), (0, "", "true\n"));
}
