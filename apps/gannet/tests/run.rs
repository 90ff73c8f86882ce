//! `gannet run`: scripts, their errors, the sandbox.
#![cfg(feature = "lua")]
#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Stdio;

use crate::support;
use crate::support::Run;
use crate::support::Scratch;
use crate::support::echo::Echo;
use crate::support::gannet;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample.pcap");

fn example(name: &str, arguments: &[&str]) -> Run {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lua").join(name);
    Run::of(gannet().arg("run").arg(script).args(arguments))
}

/// Runs a script given as text, through standard input.
fn script(options: &[&str], text: &str) -> Run {
    let mut command = gannet();
    command.arg("run").args(options).args(["-", SAMPLE]);
    Run::with_input(&mut command, text.as_bytes())
}

/// The output of a script, which must succeed.
fn prints(text: &str) -> String {
    let run = script(&[], text);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{text}");
    run.stdout
}

#[test]
fn a_capture_in_the_place_of_the_script_has_a_hint() {
    let run = Run::of(gannet().args(["run", SAMPLE, "top.lua"]));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("is a capture; use gannet run SCRIPT"), "{}", run.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let many = "for i = 1, 100000 do print(i) end";
    for (options, text, code) in [
        (&[][..], "print(1)", 1),
        (&[], many, 1),
        (&["--sandbox"], many, 1),
        (&[], "print(1) os.exit()", 1),
        (&[], "print(1) os.exit(0)", 1),
        (&[], "print(1) os.exit(7)", 7),
        (&[], "io.stdout:close()", 0),
        (&[], "local x = 1", 0),
    ] {
        let s = Scratch::new("lua-full");
        let file = s.file("x.lua", text.as_bytes());
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = gannet().arg("run").args(options).arg(file).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}: {stderr}");
        let words = "error: standard output: ";
        assert_eq!(stderr.lines().filter(|line| line.starts_with(words)).count() == 1, code == 1);
    }
    // A reader that closes standard output early is no error.
    let mut command = gannet();
    command.args(["run", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(many.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &[][..]));
}

#[test]
fn every_example_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/lua");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n != "extract.lua")
        .collect();
    names.sort();
    assert!(names.len() >= 11);
    for name in names {
        let run = example(&name, &[SAMPLE]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{name}");
    }
}

#[test]
fn examples_print_correct_results() {
    let names = example("top-names.lua", &[SAMPLE, "1"]).stdout;
    assert_eq!(names.lines().count(), 1);
    assert!(example("first.lua", &[SAMPLE, "3"]).stdout.lines().count() == 3);
    let out = std::env::temp_dir().join(format!("gannet-run-{}.pcap", std::process::id()));
    let run = example("extract.lua", &[SAMPLE, "192.0.2.1 or tcp or udp", out.to_str().unwrap()]);
    std::fs::remove_file(&out).unwrap_or_default();
    assert!(run.code == 0 && run.stdout.ends_with(" packets\n"), "{}", run.stderr);
}

#[test]
fn all_methods_of_counting_agree() {
    let text = prints(
        r#"
        local by_hand, all = {}, 0
        gannet.input(arg[2]):dns():queries():each(function(m)
            by_hand[m.qname] = (by_hand[m.qname] or 0) + 1
            all = all + 1
        end)
        local counts = gannet.input(arg[2]):dns():queries():count_by("qname")
        assert(counts:total() == all and all > 0)
        local keys = 0
        for name, count in pairs(by_hand) do
            keys = keys + 1
            assert(counts[name] == count, name)
        end
        assert(#counts:top() == keys and counts:keys() == keys)
        assert(counts:top(1)[1].count == counts:top()[1].count and #counts:top(1) == 1)
        assert(gannet.input(arg[2]):dns():queries():count() == all)
        assert(gannet.input(arg[2]):dns():queries():limit(1):count() == 1)
        local packets = gannet.input(arg[2]):count()
        local udp = gannet.input(arg[2]):filter("udp"):count()
        assert(udp < packets and udp + gannet.input(arg[2]):filter("not udp"):count() == packets)
        print("agreed")
        "#,
    );
    assert_eq!(text, "agreed\n");
}

#[test]
fn keys_do_not_hide_methods_of_counts() {
    let folder = std::env::temp_dir().join(format!("gannet-run-keys-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let list = folder.join("keys.pcap");
    // A query for the name of each method; addresses and checksums are arbitrary.
    let mut bytes = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x65\0\0\0".to_vec();
    for name in ["top", "each", "keys", "total", "get", "other"] {
        let mut dns = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0".to_vec();
        dns.push(name.len() as u8);
        dns.extend_from_slice(name.as_bytes());
        dns.extend_from_slice(b"\0\0\x01\0\x01");
        let udp = (dns.len() + 8) as u16;
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&(udp + 20).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend_from_slice(&[0x30, 0x39, 0, 53]);
        packet.extend_from_slice(&udp.to_be_bytes());
        packet.extend_from_slice(&[0, 0]);
        packet.extend_from_slice(&dns);
        let len = (packet.len() as u32).to_le_bytes();
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&len);
        bytes.extend_from_slice(&len);
        bytes.extend_from_slice(&packet);
    }
    std::fs::write(&list, bytes).unwrap();
    let text = format!(
        r#"
        local c = gannet.input({list:?}):dns():count_by("qname")
        assert(c.other == 1 and c["missing"] == nil)
        assert(#c:top() == 6 and c:keys() == 6 and c:total() == 6)
        c:each(function(name) assert(c:get(name) == 1, name) end)
        assert(c:get("missing") == 0 and not pcall(c.get, c, {{}}))
        local codes = gannet.input({list:?}):dns():count_by("rcode")
        assert(codes["0"] == 6 and codes[0] == 6 and codes:get(0) == 6 and codes[3] == nil)
        print("agreed")
        "#
    );
    let run = script(&[], &text);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((run.stdout.as_str(), run.code), ("agreed\n", 0), "{}", run.stderr);
}

#[test]
fn queries_find_their_responses() {
    let text = prints(
        r#"
        local n = gannet.input(arg[2]):dns():join():each(function(q, r, took)
            assert(q.is_query and (not r or r.is_response))
            if r then
                assert(q.id == r.id and q.qname == r.qname and q.src == r.dst and took >= 0)
            end
        end)
        assert(n == gannet.input(arg[2]):dns():queries():count())
        local answered, sum = 0, 0
        gannet.input(arg[2]):dns():join():each(function(q, r, took)
            if r then answered, sum = answered + 1, sum + took end
        end)
        local took = gannet.input(arg[2]):dns():join():latencies()
        assert(took.queries == n and took.answered == answered and answered > 0)
        assert(math.abs(took.mean - sum / answered) < 1e-6)
        assert(took.min <= took.p50 and took.p50 <= took.p99 and took.p99 <= took.max)
        print(n > 0)
        "#,
    );
    assert_eq!(text, "true\n");
}

/// A capture of several batches in a folder, which is removed when dropped.
struct Flood(PathBuf);

impl Flood {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("gannet-run-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let flood = Self(folder);
        let run = Run::of(gannet().args(["synth", "dns-flood", "-n", "150"]).arg(flood.path()));
        assert_eq!(run.code, 0, "{}", run.stderr);
        flood
    }

    fn path(&self) -> PathBuf {
        self.0.join("flood.pcap")
    }

    /// The output of a script over the capture.
    fn prints(&self, text: &str) -> String {
        let mut command = gannet();
        command.args(["run", "-"]).arg(self.path()).arg(&self.0);
        let run = Run::with_input(&mut command, text.as_bytes());
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{text}");
        run.stdout
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

#[test]
fn results_are_the_same_for_any_number_of_threads() {
    let flood = Flood::new("threads");
    let of = |threads: u8| {
        let text = r#"
            local function all() return gannet.input(arg[2]):parallel(THREADS) end
            print(all():count(), all():sum("len"), all():dns():count())
            for _, row in ipairs(all():dns():count_by("qname"):top(20)) do
                print(row.key, row.count)
            end
            all():filter("udp"):sum_by("len", "src", "dport"):each(print)
            all():dns():count_by("src", "qtype", "rcode", "id"):each(print)
            local took = all():dns():join():latencies()
            print(took.queries, took.answered, took.p50)
            print(all():dns():join():count(), all():dns():limit(77):count_by("src"):total())
            local last, n = 0, 0
            all():dns():each(function(m)
                assert(m.number > last)
                last, n = m.number, n + 1
                if n % 500 == 0 then print(m.number, m.time, m.src, m.qname, m.id) end
            end)
            print(all():filter("src portrange 0-29999"):limit(3000):write(arg[3] .. "/THREADS.pcap"))
            print(gannet.input(arg[3] .. "/THREADS.pcap"):count_by("src"):keys())
        "#;
        flood.prints(&text.replace("THREADS", &threads.to_string()))
    };
    let one = of(1);
    assert!(one.lines().count() > 100, "{one}");
    for threads in [2, 3, 7] {
        assert_eq!(of(threads), one, "{threads} threads");
    }
    let run = script(&[], "gannet.input(arg[2]):parallel(0)");
    assert!(run.code == 1 && run.stderr.contains("1 to 256"), "{}", run.stderr);
}

#[test]
fn sums_agree_with_those_of_a_function() {
    let text = prints(
        r#"
        local by_hand, all = {}, 0
        gannet.input(arg[2]):each(function(p)
            local key = (p.src or "") .. "\t" .. (p.proto or "")
            by_hand[key], all = (by_hand[key] or 0) + p.len, all + p.len
        end)
        assert(gannet.input(arg[2]):sum("len") == all)
        local sums = gannet.input(arg[2]):sum_by("len", "src", "proto")
        assert(sums:total() == all)
        for key, sum in pairs(by_hand) do assert(sums[key] == sum, key) end
        assert(not pcall(function() return gannet.input(arg[2]):sum("src") end))
        print(sums:keys() > 1)
        "#,
    );
    assert_eq!(text, "true\n");
}

#[test]
fn events_have_their_arguments_and_rows_their_columns() {
    let text = prints(
        r#"
        local seen, requests, last, order = {}, 0, nil, {}
        local done = gannet.analyze(arg[2])
            :on("dns", function(e) seen[#seen + 1] = e end)
            :on({
                dns_request = function(e)
                    assert(e.event == "dns_request" and e.ts > 1.6e9 and e.packet >= 1)
                    assert(e.query and e.qtype and e.msg.id and e.c.id.resp_p == 53)
                    requests = requests + 1
                end,
                conn = function(e)
                    assert(e.log == "conn" and e.id.orig_p == e["id.orig_p"])
                    assert(type(e.orig_bytes or 0) == "number")
                    last = e
                end,
                http_request = function(e)
                    print(e.method, e.original_URI, e.version, e.c.uid, e.c.id.resp_p, e.c.orig.num_pkts)
                end,
                http_header = function(e)
                    if e.is_orig and e.name == "HOST" then print(e.value, e) end
                end,
                connection_state_remove = function(e)
                    order[#order + 1] = e.packet
                    assert(type(e.c.service) == "table" and type(e.c.history) == "string")
                    assert(e.c.vlan == nil and tostring(e.c) == e.c.uid)
                end,
                file_state_remove = function(e) print(e.f.source, e.f.seen_bytes, #e.f.conns) end,
            }):run()
        assert(requests > 0 and #seen > 0 and done.connections >= 1 and #order == done.connections)
        for at = 2, #order do assert(order[at] >= order[at - 1]) end
        -- They are values.
        for _, e in ipairs(seen) do
            assert(type(e.AA) == "boolean" and (e.answers == nil or #e.answers > 0))
        end
        print(pcall(function() return last.nothing end))
        print(pcall(gannet.analyze(arg[2]).on, gannet.analyze(arg[2]), "dns_reqest", print))
        "#,
    );
    assert!(text.starts_with("GET\t/"), "{text}");
    assert!(text.contains("\nwww.example.com\thttp_header\tC"), "{text}");
    assert!(text.contains("\nHTTP\t"), "{text}");
    assert!(text.contains("a row of conn has no 'nothing' (it has ts, uid, id.orig_h"), "{text}");
    let hint = "there is no event or log 'dns_reqest'; is it 'dns_request'?";
    assert!(text.contains(hint), "{text}");
}

#[test]
fn events_agree_with_those_that_are_printed() {
    let printed = Run::of(gannet().args(["events", "--only", "dns_*,http_*,file_*"]).arg(SAMPLE));
    let mut counts = std::collections::BTreeMap::<&str, u32>::new();
    for line in printed.stdout.lines() {
        let (_, rest) = line.split_once("\"event\":\"").unwrap();
        *counts.entry(rest.split('"').next().unwrap()).or_default() += 1;
    }
    assert!(counts.len() > 10, "{counts:?}");
    for (name, count) in counts {
        let text = format!(
            "local n = 0\n\
             gannet.analyze(arg[2]):ignore_checksums():on('{name}', function(e)\n\
               assert(#tostring(e) > 0 and e.event == '{name}')\n  n = n + 1\nend):run()\nprint(n)"
        );
        assert_eq!(prints(&text), format!("{count}\n"), "{name}");
    }
}

#[test]
fn events_are_the_same_for_any_number_of_threads() {
    let of = |threads: u8| {
        prints(&format!(
            "local function show(e) print(e.packet, e.ts, e.event, e.c.uid, e.c.history, #e.c.service) end\n\
             gannet.analyze(arg[2]):parallel({threads})\n\
               :on({{ new_connection = show, http_request = show, dns_request = show, connection_state_remove = show }}):run()"
        ))
    };
    let alone = of(1);
    assert!(alone.lines().count() > 20, "{alone}");
    for threads in [2, 7] {
        assert_eq!(of(threads), alone, "{threads} threads");
    }
    let wrong = prints("print(pcall(function() gannet.analyze(arg[2]):parallel(0) end))");
    assert!(wrong.contains("parallel wants a number of threads, 1 to 255"), "{wrong}");
}

#[test]
fn events_agree_with_the_logs() {
    let folder = std::env::temp_dir().join(format!("gannet-run-logs-{}", std::process::id()));
    let run = Run::of(gannet().args(["analyze", "-q", "-o"]).arg(&folder).arg(SAMPLE));
    assert_eq!(run.code, 0, "{}", run.stderr);
    for log in ["conn", "dns", "http", "files"] {
        let file = std::fs::read_to_string(folder.join(format!("{log}.log"))).unwrap();
        let rows: String = file
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| format!("{log}\t{line}\n"))
            .collect();
        let text = format!("gannet.analyze(arg[2]):on('{log}', function(e) print(e) end):run()");
        assert_eq!(prints(&text), rows, "{log}");
        // The same in the sandbox.
        assert_eq!(script(&["--sandbox"], &text).stdout, rows);
    }
    std::fs::remove_dir_all(folder).unwrap();
    let one = prints(
        "local r = gannet.analyze(arg[2]):filter('udp'):on('conn', function(e) return false end):run()\n\
         print(r.events, r.packets)",
    );
    assert_eq!(one, "1\tnil\n");
}

#[test]
fn progress_is_reported_on_request() {
    let run = script(&["--progress"], "print(gannet.input(arg[2]):count())");
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains(" packets, ") && run.stderr.contains("100 %"), "{}", run.stderr);
    let text = prints(
        "gannet.input(arg[2]):progress(function(p)\n  print(p.packets, p.fraction, p.done)\n  \
         assert(p.rate >= 0 and p.bytes == p.total)\nend):dns():count_by('qname')",
    );
    assert!(text.ends_with("\t1\ttrue\n"), "{text}");
}

#[test]
fn packets_are_split_over_captures() {
    let flood = Flood::new("split");
    let text = flood.prints(
        r#"
        local function to(name) return { arg[3] .. "/1" .. name, arg[3] .. "/2" .. name } end
        local all = gannet.input(arg[2]):limit(1001):count()
        local turn = gannet.input(arg[2]):limit(1001):split(to(".pcap"))
        assert(turn[1] == 501 and turn[2] == 500 and all == 1001)
        local copies = gannet.input(arg[2]):limit(1001):split(to("c.pcap"), "copy")
        assert(copies[1] == 1001 and copies[2] == 1001)
        local clients = gannet.input(arg[2]):split(to("k.pcap"), "client", { weights = { 3, 1 } })
        local one = gannet.input(arg[3] .. "/1k.pcap"):count_by("src")
        local two = gannet.input(arg[3] .. "/2k.pcap"):count_by("src")
        assert(one:total() == clients[1] and two:total() == clients[2])
        one:each(function(client) assert(not two[client]) end)
        print(one:keys() + two:keys() == gannet.input(arg[2]):filter("ip or ip6"):count_by("src"):keys())
        print(pcall(function() gannet.input(arg[2]):split(to("x"), "size") end))
        "#,
    );
    assert!(text.starts_with("true\nfalse\t"), "{text}");
    assert!(text.contains("split goes by 'turn', 'client' or 'copy'"), "{text}");
}

#[test]
fn paced_packets_are_on_time() {
    let begun = std::time::Instant::now();
    let text = prints(
        "local n = gannet.input(arg[2]):pace({ gap = 0.005 }):limit(11):each(function() end)\n\
         print(n, pcall(function() gannet.input(arg[2]):pace({ speed = 0 }) end))",
    );
    assert!(begun.elapsed() >= std::time::Duration::from_millis(50));
    assert!(text.starts_with("11\tfalse\t"), "{text}");
}

#[test]
fn a_packet_is_valid_only_during_its_call() {
    let run = script(
        &[],
        "local kept\ngannet.input(arg[2]):each(function(p)\n  if kept then print(kept.len) end\n  \
         kept = p\nend)",
    );
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains(":3: this packet is gone"), "{}", run.stderr);
    assert!(run.stderr.contains("stack traceback"), "{}", run.stderr);
    let run = script(&[], "local k gannet.input(arg[2]):each(function(p) k = p end) print(k.len)");
    assert!(run.stderr.contains("this packet is gone"), "{}", run.stderr);
}

#[test]
fn errors_name_their_line() {
    let wrong = [
        ("\n\nlocal x = nil\nx.y = 1", ":4: "),
        ("gannet.input('/nonexistent'):count()", "/nonexistent"),
        ("gannet.input(arg[2]):filter('port nowhere')", "nowhere"),
        (
            "gannet.input(arg[2]):each(function(p) print(p.size) end)",
            "a packet has no field 'size'",
        ),
        ("gannet.input(arg[2]):count_by('qname')", "count_by cannot group packets by 'qname'"),
        ("gannet.input(arg[2]):queries()", "dns() comes first"),
        ("local p = gannet.input(arg[2]) p:count() p:count()", "was read already"),
        ("gannet.input(arg[2]).count()", "with a colon"),
        ("gannet.input()", "wants the path"),
        ("error({ code = 3, why = 'x' })", "error object { code = 3, why = \"x\" }"),
        ("error(setmetatable({}, { __tostring = function() return 'own text' end }))", "own text"),
        ("error()", "nil"),
        ("gannet.client('tcp://127.0.0.1:1')", "127.0.0.1:1: "),
        ("local c = gannet.client('udp://127.0.0.1:1') c:ask('x') c:ask('x')", "127.0.0.1:1: "),
        ("gannet.input(arg[2]):pace({ speed = 1, rate = 2 })", "pace wants one of"),
        ("gannet.client('udp://127.0.0.1', { verfiy = false })", "has no option 'verfiy'"),
        (
            "gannet.input(arg[2]):split({ 'a' }, 'turn', { wieghts = {} })",
            "has no option 'wieghts'",
        ),
        ("gannet.input(arg[2]):each(function(p) p.len = 1 end)", "cannot be changed"),
    ];
    for (text, words) in wrong {
        let run = script(&[], text);
        assert_eq!(run.code, 1, "{text}");
        assert!(run.stderr.contains(words), "{text}: {}", run.stderr);
    }
    // Tracebacks have only frames of the script.
    let run = script(&[], "local function f() error({}) end f() return 1");
    assert_eq!(run.stderr.lines().count(), 5, "{}", run.stderr);
    let run = script(&[], "local function f() return nil + 1 end\nlocal x = f()");
    let frames = "stack traceback:\n\t-:1: in function 'f'\n\t-:2: in main chunk\n";
    assert!(run.stderr.ends_with(frames), "{}", run.stderr);
    let run = script(&[], "print(");
    assert_eq!(run.code, 2);
    let run = Run::with_input(gannet().args(["run", "-"]), b"\x1bLJ\x02");
    assert_eq!((run.code, run.stderr.lines().count()), (2, 1), "{}", run.stderr);
    assert!(run.stderr.starts_with("error: -: LuaJIT bytecode"), "{}", run.stderr);
    let run = Run::of(gannet().args(["run", "/nonexistent.lua"]));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("/nonexistent.lua"), "{}", run.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn a_script_without_memory_gets_an_error() {
    let text = "print(pcall(string.rep, 'x', 2 ^ 30))\nio.stdout:flush()\n\
                local function much()\nlocal text = ('y'):rep(2 ^ 30)\nreturn #text\nend\nprint(much() + 1)";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -v 2500000; exec \"$0\" run -"]).arg(gannet().get_program());
    let run = Run::with_input(&mut command, text.as_bytes());
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (1, "false\tnot enough memory\n"),
        "{}",
        run.stderr
    );
    let expected = "error: -:4: not enough memory\n\
                    stack traceback:\n\t[C]: in function 'rep'\n\t-:4: in function 'much'\n\t-:7: in main chunk\n";
    assert_eq!(run.stderr, expected);
    // Memory is exhausted outside of built-in functions: in code that the JIT compiled, and in interpreted code.
    let cases = [
        ("local all = {}\nwhile true do\nall[#all + 1] = { #all }\nend", 3),
        ("local s = 'x'\nwhile true do\ns = s .. s\nend", 3),
        ("jit.off()\nlocal s = 'x'\nlocal function f()\ns = s .. s\nend\nwhile true do f() end", 4),
    ];
    for (text, expected) in cases {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -v 1500000; exec \"$0\" run -"]).arg(gannet().get_program());
        let run = Run::with_input(&mut command, text.as_bytes());
        assert_eq!(run.code, 1, "{}", run.stderr);
        let (place, rest) = run.stderr.split_once(": not enough memory\n").unwrap();
        let line = place.strip_prefix("error: -:").and_then(|line| line.parse::<u32>().ok());
        assert_eq!(line, Some(expected), "{text}: {}", run.stderr);
        assert!(rest.starts_with("stack traceback:\n"), "{}", run.stderr);
    }
}

#[test]
fn scripts_do_not_run_in_a_coroutine() {
    let text = prints("print(coroutine.running(), coroutine.wrap(coroutine.running)() ~= nil)");
    assert_eq!(text, "nil\ttrue\n");
    let run = Run::with_input(gannet().args(["run", "-"]), b"print(1)\ncoroutine.yield(2)");
    assert_eq!((run.code, run.stdout.as_str()), (1, "1\n"));
    assert!(
        run.stderr.starts_with("error: -:2: attempt to yield outside a coroutine\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn scripts_see_the_version_of_dnsjit() {
    let text = prints(
        "print(DNSJIT_VERSION, DNSJIT_MAJOR_VERSION, DNSJIT_MINOR_VERSION, DNSJIT_PATCH_VERSION)",
    );
    assert_eq!(text, "1.5.0\t1\t5\t0\n");
}

#[test]
fn a_truncated_capture_has_the_packets_before_the_damage() {
    let bytes = std::fs::read(SAMPLE).unwrap();
    let cut: PathBuf =
        std::env::temp_dir().join(format!("gannet-run-cut-{}.pcap", std::process::id()));
    std::fs::write(&cut, &bytes[..bytes.len() - 3]).unwrap();
    let text = format!(
        "local n = 0 print(pcall(function() gannet.input({cut:?}):each(function() n = n + 1 end) \
         end)) print(n)"
    );
    let run = script(&[], &text);
    std::fs::remove_file(&cut).unwrap();
    assert!(run.stdout.starts_with("false\t"), "{}", run.stdout);
    let count: u32 = run.stdout.lines().last().unwrap().parse().unwrap();
    let whole: u32 = prints("print(gannet.input(arg[2]):count())").trim().parse().unwrap();
    assert_eq!(count, whole - 1);
}

#[test]
fn the_sandbox_lacks_unsafe_modules() {
    let inside = script(
        &["--sandbox"],
        r#"
        for _, name in ipairs({ "io", "os", "ffi", "debug", "package", "dofile", "loadfile", "jit",
            "getfenv", "setfenv" }) do
            assert(_G[name] == nil, name)
        end
        for _, name in ipairs({ "ffi", "io", "os", "debug", "jit.util", "dnsjit.core.log" }) do
            assert(not pcall(require, name), name)
        end
        assert(string.dump == nil)
        assert(not loadstring("\27LJ\2\0"))
        assert(load("return 7")() == 7)
        assert(require("gannet") == gannet)
        print(gannet.input(arg[2]):dns():count() > 0)
        assert(not pcall(function() gannet.input(arg[2]):write("/tmp/never") end))
        local view
        gannet.input(arg[2]):limit(1):each(function(p)
            view = p
            rawset(p, 2, 1e9)
            assert(not pcall(function() return p.len end))
            rawset(p, 2, -1)
            assert(not pcall(function() return p.len end))
        end)
        assert(not pcall(function() return view.len end))
        "#,
    );
    assert_eq!((inside.code, inside.stderr.as_str(), inside.stdout.as_str()), (0, "", "true\n"));
    let run = script(&["--sandbox"], "print(io.open('/etc/passwd'))");
    assert_eq!(run.code, 1);
}

#[test]
fn the_reference_in_docs_is_that_of_the_command() {
    let manual = Run::of(gannet().args(["run", "--manual"])).stdout;
    assert!(manual.contains("### `pipeline:count_by(...)`"), "{manual}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lua.md");
    let docs = std::fs::read_to_string(path).unwrap();
    assert!(docs.ends_with(&manual), "append the output of gannet run --manual to docs/lua.md");
}

#[test]
fn a_filter_that_does_not_apply_is_an_error() {
    for verb in ["count()", "each(function() end)", "parallel(2):dns():count_by('qname')"] {
        let run = script(&[], &format!("gannet.input(arg[2]):filter('inbound'):{verb}"));
        assert_eq!(run.code, 1, "{verb}");
        assert!(
            run.stderr.contains("-:1: Ethernet: not a live capture, 'inbound'"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn scripts_cannot_overwrite_their_input() {
    let folder = std::env::temp_dir().join(format!("gannet-run-input-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (capture, link) = (folder.join("a.pcap"), folder.join("b.pcap"));
    std::fs::write(&capture, support::sample()).unwrap();
    std::fs::hard_link(&capture, &link).unwrap();
    let path = folder.join("a.lua");
    std::fs::write(&path, "gannet.input(arg[2]):write(arg[3])\n").unwrap();
    for output in [&capture, &link] {
        let run = Run::of(gannet().arg("run").arg(&path).arg(&capture).arg(output));
        assert!(run.code == 1 && run.stderr.contains("is an input"), "{}", run.stderr);
        assert!(std::fs::read(&capture).unwrap() == support::sample());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_capture_is_one_output_of_a_split() {
    let s = Scratch::new("run-split");
    let (a, b) = (s.path("a.pcap"), s.path("b.pcap"));
    let split = |paths: [&Path; 3]| {
        let [a, b, c] = paths.map(|path| path.display().to_string());
        script(&[], &format!("gannet.input(arg[2]):split({{ '{a}', '{b}', '{c}' }})"))
    };
    let twice = split([&a, &b, &a]);
    assert!(
        twice.code == 1 && twice.stderr.contains("a.pcap is already an output"),
        "{}",
        twice.stderr
    );
    let null = Path::new("/dev/null");
    assert_eq!(split([&a, null, null]).code, 0);
    for wrong in ["-1", "1.5", "'2'", "0/0"] {
        let run = script(&[], &format!("print(gannet.input(arg[2]):limit({wrong}):count())"));
        assert!(run.code == 1 && run.stderr.contains("a whole number"), "{wrong}: {}", run.stderr);
    }
}

#[test]
fn packets_are_written_with_changes() {
    let s = Scratch::new("run-with");
    let out = s.path("out.pcap");
    let text = format!(
        r#"
        local out = '{}'
        local all = gannet.input(arg[2]):count()
        local kept
        local count = gannet.input(arg[2]):write(out, function(p)
            if p.number == 1 then return false end
            if p.number == 2 then kept = p:with({{ src = '10.0.0.1', dport = 7 }}) return nil end
            if p.number == 3 then return kept end
            if p.number == 4 then return p:with({{ bytes = p.bytes:sub(1, 20) }}) end
            if p.proto == 'udp' then return p:with({{ payload = 'changed', sport = 9 }}) end
            if p.src:find(':') then return p:with({{ src = 'fd00::2' }}) end
            return p:with({{ src = '10.0.0.2', dst = '10.0.0.3' }})
        end)
        assert(count == all - 1, count)
        local lines = {{}}
        gannet.input(out):each(function(p)
            lines[#lines + 1] = p.src and p.src .. ' ' .. (p.dport or '') .. ' ' .. #p.payload .. ' ' .. p.payload:gsub('[^a-z]', '') or p.len
        end)
        print(#lines == count, lines[2], lines[3], lines[4], kept.len == #kept.bytes)
        print(gannet.input(out):filter('src 10.0.0.2 and dst 10.0.0.3'):count() > 10)
        print(gannet.input(out):filter('ip or ip6'):limit(0):write(out .. '2', function() end))
        for _, wrong in ipairs({{
            function(p) return p:with({{ sport = 65536 }}) end, function(p) return p:with({{ ttl = 1 }}) end,
            function(p) return p.with({{}}) end, function(p) return p:with({{ bytes = '', sport = 1 }}) end,
            function(p) return p:with({{ src = 'fd00::1' }}) end, function() return 7 end,
        }}) do
            print(select(2, pcall(function() gannet.input(arg[2]):write(out .. '3', wrong) end)))
        end
        "#,
        out.display()
    );
    let printed = prints(&text);
    let lines: Vec<_> = printed.lines().collect();
    let first: Vec<_> = lines[0].split('\t').collect();
    assert_eq!((first[0], first[2], first[4]), ("true", "20", "true"), "{printed}");
    assert!(first[1].starts_with("10.0.0.1 7 "), "{printed}");
    assert!(first[3].ends_with(" 7 changed"), "{printed}");
    assert_eq!(lines[1..3], ["true", "0"]);
    let words = [
        "sport is a number from 0 to 65535",
        "with has no change 'ttl'",
        "call with with a colon",
        "bytes is a string, and the only change",
        "the packet is IPv4, fd00::1 is not",
        "returns a packet of with, nil or false, not a number",
    ];
    for (line, words) in lines[3..].iter().zip(words) {
        assert!(line.contains(words) && line.starts_with("-:"), "{line}");
    }
    assert_eq!(lines.len(), 9, "{printed}");
    assert_eq!(s.list(""), ["out.pcap", "out.pcap2"], "no capture of a function with an error");
    let run = script(&["--sandbox"], "gannet.input(arg[2]):write('/dev/null', function() end)");
    assert!(run.stderr.contains("the sandbox writes no files"), "{}", run.stderr);
}

#[test]
fn addresses_are_replaced_in_the_example() {
    let s = Scratch::new("run-anonymise");
    let out = s.path("out.pcap");
    let run = example("anonymise.lua", &[SAMPLE, out.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "68 packets of 7 hosts\n"), "{}", run.stderr);
    let packets = Run::of(gannet().arg("packets").arg(&out)).stdout;
    assert_eq!(packets.lines().count(), 68);
    assert!(
        packets.lines().all(|line| line.contains(" IP 10.0.0.") || line.contains(" IP6 fd00::"))
    );
    // No warning about wrong checksums.
    let run = s.analyze("logs", &[], &out);
    assert_eq!(run.stderr, "");
}

#[test]
fn messages_have_the_fields_of_edns() {
    let s = Scratch::new("run-edns");
    let mut trace = gannet_synth::Trace::new(gannet_base::Time::from_nanos(1_000), 1);
    let (client, server) = ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:53".parse().unwrap());
    let plain = gannet_synth::dns::query(1, "a.test", 1);
    let mut with = plain.clone();
    with[11] = 1;
    with.extend_from_slice(b"\0\0\x29\x04\xd0\x01\0\x80\0\0\x09\0\x0a\0\x02ab\0\x63\0");
    trace.udp(client, server, &plain);
    trace.udp(client, server, &with);
    let capture = s.file("edns.pcap", &support::pcap(trace.frames()));
    let text = "gannet.input(arg[2]):dns():each(function(m)\n\
                print(m.has_edns, m.edns_size, m.edns_version, m.edns_do, m.edns_rcode)\n\
                for _, o in ipairs(m.edns_options or {}) do print(o.code, o.name, o.data) end\n\
                end)";
    let mut command = gannet();
    command.args(["run", "-"]).arg(&capture);
    let run = Run::with_input(&mut command, text.as_bytes());
    let expected = "false\tnil\tnil\tnil\tnil\ntrue\t1232\t0\ttrue\t16\n10\tCOOKIE\tab\n";
    assert_eq!((run.stderr.as_str(), run.stdout.as_str()), ("", expected));
}

#[test]
fn scripts_get_their_arguments() {
    let folder = std::env::temp_dir().join(format!("gannet-run-arg-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.lua");
    std::fs::write(&path, "#!/usr/bin/env gannet\nprint(arg[2], arg[3], #arg)\nerror('here')\n")
        .unwrap();
    let run = Run::of(gannet().arg("run").arg(&path).args(["-x", "two words"]));
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(run.stdout, "-x\ttwo words\t3\n");
    assert!(run.stderr.contains("a.lua:3: here"), "{}", run.stderr);
}

#[test]
fn scripts_send_what_they_choose() {
    let authority = std::env::temp_dir().join(format!("gannet-run-{}.pem", std::process::id()));
    let pem = authority.to_str().unwrap();
    let plain = Echo::start(&[]);
    let secure = Echo::start(&["--tls", "--save-cert", pem]);
    let script = "local query = '\\18\\52\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\1a\\0\\0\\1\\0\\1'\n\
                  local urls = { 'udp://' .. arg[2], 'tcp://' .. arg[2], 'tls://' .. arg[3] }\n\
                  for _, url in ipairs(urls) do\n\
                  local client = gannet.client(url, { ca = arg[4] })\n\
                  for _ = 1, 3 do\n\
                  local answer = client:ask(query)\n\
                  print(#answer == #query, answer:sub(1, 2) == query:sub(1, 2), answer:byte(3))\n\
                  end\n\
                  end\n\
                  print(gannet.client('udp://' .. arg[2], { timeout = 0.05 }):receive())\n\
                  print(select(2, pcall(gannet.client, 'tls://' .. arg[3])))\n\
                  print(select(2, pcall(gannet.client, 'udp://9.9.9.9')))\n\
                  print(select(2, pcall(gannet.client, 'https://' .. arg[3], { verify = false })))\n\
                  print(select(2, pcall(gannet.client, 'ftp://' .. arg[2])))\n";
    let mut command = gannet();
    command.args(["run", "-", &plain.address, &secure.address, pem]);
    let run = Run::with_input(&mut command, script.as_bytes());
    std::fs::remove_file(&authority).unwrap();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines[..9], ["true\ttrue\t129"; 9]);
    assert_eq!(lines[9], "nil");
    assert!(lines[10].contains(&secure.address), "nobody vouches for it: {}", lines[10]);
    assert!(lines[11].contains("9.9.9.9:53 is neither a loopback nor"), "{}", lines[11]);
    assert!(lines[12].contains("does not speak HTTP/2"), "{}", lines[12]);
    assert!(lines[13].contains("begins with none of udp://"), "{}", lines[13]);
    let mut command = gannet();
    command.args(["run", "--sandbox", "-"]);
    let run = Run::with_input(&mut command, b"gannet.client('udp://127.0.0.1')");
    assert!(run.stderr.contains("the sandbox sends nothing"), "{}", run.stderr);
}

#[test]
fn queries_and_answers_are_kept_for_respdiff() {
    let folder = std::env::temp_dir().join(format!("gannet-kept-{}", std::process::id()));
    let script = "local out = gannet.respdiff(arg[2], { 'captured', 'new' })\n\
                  out:put('QUERY', { { 'FIRST', 0.5 }, { 'SECOND', 0 } })\n\
                  out:put('OTHER', { false, { 'THIRD', 1e9 } })\n\
                  print(pcall(out.put, out, 'x', { { 'y' } }))\n\
                  print(out:finish(), pcall(out.finish, out))\n\
                  print(select(2, pcall(gannet.respdiff, arg[2], { 'again' })))\n";
    let mut command = gannet();
    command.args(["run", "-"]).arg(&folder);
    let run = Run::with_input(&mut command, script.as_bytes());
    let data = std::fs::read(folder.join("data.mdb")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let lines: Vec<_> = run.stdout.lines().collect();
    assert!(
        lines[0].starts_with("false\t") && lines[0].ends_with("an answer is { bytes, seconds }")
    );
    assert!(lines[1].starts_with("2\tfalse\t"), "{}", lines[1]);
    assert!(
        lines[2].contains("it is open") || lines[2].contains("already contains queries"),
        "{}",
        lines[2]
    );
    let holds = |bytes: &[u8]| data.windows(bytes.len()).any(|w| w == bytes);
    assert!(holds(b"\x20\xa1\x07\0\x05\0FIRST\0\0\0\0\x06\0SECOND"));
    assert!(holds(b"\xff\xff\xff\xff\0\0\xfe\xff\xff\xff\x05\0THIRD"));
    let mut command = gannet();
    command.args(["run", "--sandbox", "-"]);
    let run = Run::with_input(&mut command, b"gannet.respdiff('x', { 'a' })");
    assert!(run.stderr.contains("the sandbox writes no files"), "{}", run.stderr);
}
