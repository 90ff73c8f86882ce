//! The modules of dnsjit in cases where dnsjit itself has defects.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;

use gannet_base::Time;

use super::material::Counting;
use super::material::Folder;
use super::material::QUERY;
use super::material::ethernet;
use super::material::over;
use super::material::tcp4;
use super::material::udp4;

#[test]
fn nanoseconds_are_nanoseconds() {
    let frame = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = "local p = produce(ctx):cast_to(object.PCAP)\n\
                print(tonumber(p.ts.sec), tonumber(p.ts.nsec), input:packets())";
    assert_eq!(over("nanos", &[&frame], text), "1000\t123456789\t1\n");
}

#[test]
fn vlans_in_vlans_are_read_and_ids_have_twelve_bits() {
    let tags = [0x88, 0xa8, 0x2a, 0xbc, 0x81, 0, 0x00, 0x07, 8, 0];
    let frame = ethernet(&[&tags, &udp4(QUERY)]);
    let text = "local o = produce(ctx)\nprint(o:type())\n\
                local inner = o:cast_to(object.IEEE802)\nprint(inner.vid)\n\
                print(inner:prev():cast().vid, inner:prev():cast().pcp)";
    assert_eq!(over("qinq", &[&frame], text), "payload\n7\n2748\t1\n");
}

#[test]
fn a_weird_packet_does_not_end_the_stream() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let many_tags = ethernet(&[&[0x81, 0, 0, 1].repeat(9), &[8, 0]]);
    let short = [1, 2, 3];
    let text = "local n = 0\nwhile produce(ctx) ~= nil do n = n + 1 end print(n)";
    let mut fragments = vec![0x60, 0, 0, 0, 0, 16, 44, 64];
    fragments.extend_from_slice(&[0; 32]);
    fragments.extend_from_slice(&[44, 0, 0, 1, 0, 0, 0, 1, 17, 0, 0, 1, 0, 0, 0, 1]);
    let fragments = ethernet(&[&[0x86, 0xdd], &fragments]);
    let frames = [&good[..], &many_tags, &short, &fragments, &[], &good];
    assert_eq!(over("odd", &frames, text), "6\n");
}

#[test]
fn an_empty_payload_is_no_header_and_no_end() {
    let empty = ethernet(&[&[8, 0], &udp4(&[])]);
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = "local dns = require('dnsjit.core.object.dns').new()\nwhile true do\n\
                local o = produce(ctx) if o == nil then break end\n\
                dns:reset() dns.obj_prev = o print(dns:parse_header(), dns.have_id, dns.id) end";
    assert_eq!(over("empty", &[&empty, &good], text), "-2\t0\t0\n0\t1\t4660\n");
}

#[test]
fn escapes_are_decimal() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = "local Dns = require('dnsjit.core.object.dns')\nlocal dns = Dns.new(produce(ctx))\n\
                local label = require('dnsjit.core.object.dns.label')\n\
                local labels, q = label.new(16), require('dnsjit.core.object.dns.q').new()\n\
                assert(dns:parse_header() == 0 and dns:parse_q(q, labels, 16) == 0)\n\
                print((label.torfc1035(dns, labels, 16)), Dns.type_tostring(65))\n\
                print((label.tooffstr(dns, labels, 16)):byte(1, 4))";
    assert_eq!(over("rfc1035", &[&good], text), "a\\200\\.b.\tHTTPS\n60\t49\t50\t62\n");
}

#[test]
fn timing_accumulates_no_delay_and_multiplies_by_fractions() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let frames = vec![&good[..]; 6];
    // Five gaps of 20 ms, multiplied by 0.5: 50 ms.
    let text = "local timing = require('dnsjit.filter.timing').new()\ntiming:multiply(0.5)\n\
                timing:producer(layer)\nlocal p, c = timing:produce()\n\
                local clock = require('dnsjit.lib.clock')\nlocal s, n = clock:monotonic()\n\
                while p(c) ~= nil do end\nlocal t, m = clock:monotonic()\n\
                local took = tonumber(t - s) + tonumber(m - n) / 1e9\n\
                print(took >= 0.05 and took < 0.5, took >= 0.05 or took)";
    assert_eq!(over("timing", &frames, text), "true\ttrue\n");
}

#[test]
fn a_full_channel_is_an_error_and_loses_nothing() {
    let text = "local channel = require('dnsjit.core.channel').new(4)\n\
                local o = produce(ctx):uncast()\n\
                for i = 1, 4 do channel:put(o) end\n\
                print(channel:full(), pcall(channel.put, channel, o))\n\
                local n = 0 while channel:get() ~= nil do n = n + 1 end print(n)";
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let printed = over("channel", &[&good], text);
    assert!(printed.starts_with("true\tfalse\t") && printed.ends_with("\n4\n"), "{printed}");
}

#[test]
fn scripts_write_packets_unchanged() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let out = std::env::temp_dir().join(format!("gannet-dnsjit-out-{}.pcap", std::process::id()));
    let text = format!(
        "local out = require('dnsjit.output.pcap').new()\n\
         assert(out:open('{}', input:linktype(), input:snaplen()) == 0)\n\
         local recv, rctx = out:receive()\nrecv(rctx, produce(ctx)) out:close()\n\
         print(out:have_errors())",
        out.display()
    );
    assert_eq!(over("write", &[&good], &text), "false\n");
    let mut reader = gannet_capture::Reader::open(&out).unwrap();
    let batch = reader.next_batch().unwrap().unwrap();
    let packet = batch.get(0).unwrap();
    assert_eq!((packet.data, packet.time), (&good[..], Time::from_nanos(1_000_123_456_789)));
    fs::remove_file(Path::new(&out)).unwrap();
}

#[test]
fn lengths_are_sent_once_and_answers_are_not_sent() {
    let framed = |message: &[u8]| [&[0, message.len() as u8], message].concat();
    let mut answer = QUERY.to_vec();
    answer[2] |= 0x80;
    let frames = [
        ethernet(&[&[8, 0], &tcp4(&framed(QUERY))]),
        ethernet(&[&[8, 0], &tcp4(&framed(&answer))]),
        ethernet(&[&[8, 0], &udp4(QUERY)]),
    ];
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let echo = Counting::start(&[]);
    // Scripts do not set includes_dnslen: drool does not either.
    let text = format!(
        "local dns = require('dnsjit.core.object.dns').new()\n\
         local sent = 0\n\
         for _, what in ipairs({{ 'tcpcli', 'udpcli' }}) do\n\
         local input = require('dnsjit.input.mmpcap').new() input:open(arg[2])\n\
         local layer = require('dnsjit.filter.layer').new() layer:producer(input)\n\
         local produce, ctx = layer:produce()\n\
         local client = require('dnsjit.output.' .. what).new()\n\
         assert(client:connect('127.0.0.1', '{0}') == 0)\n\
         local send, cctx = client:receive() local receive = client:produce()\n\
         while true do\n\
         local o = produce(ctx) if o == nil then break end\n\
         dns.obj_prev = o\n\
         if dns:parse_header() == 0 and dns.qr == 0 then\n\
         send(cctx, o) sent = sent + 1\n\
         local got = receive(cctx)\n\
         assert(got ~= nil and got:cast().len == {1})\n\
         dns.obj_prev = got assert(dns:parse_header() == 0 and dns.qr == 1 and dns.id == 4660)\n\
         end end end print(sent)",
        echo.port(),
        QUERY.len()
    );
    assert_eq!(over("lengths", &frames, &text), "4\n");
    assert_eq!(echo.stop(), (4, 0));
}

#[test]
fn extension_headers_leave_the_payload() {
    let head = |next: u8, len: u8| {
        let mut head = vec![0x60, 0, 0, 0, 0, len, next, 64];
        head.extend_from_slice(&[1; 32]);
        head
    };
    let len = QUERY.len() as u8;
    let mut options = vec![17, 1];
    options.extend_from_slice(&[0; 14]);
    let udp = [&[4, 0, 0, 53, 0, 8 + len, 0, 0][..], QUERY].concat();
    let over_udp = ethernet(&[&[0x86, 0xdd], &head(60, 24 + len), &options, &udp]);
    options[0] = 6;
    let tcp = [&tcp4(&[])[20..], QUERY].concat();
    let over_tcp = ethernet(&[&[0x86, 0xdd], &head(60, 36 + len), &options, &tcp, &[0; 3]]);
    let text = "while true do local o = produce(ctx) if o == nil then break end\n\
                local p, ip = o:cast(), o:cast_to(object.IP6)\n\
                print(o.obj_prev:type(), tonumber(p.len), tonumber(p.padding), ip.hlen) end";
    assert_eq!(
        over("extensions", &[&over_udp, &over_tcp], text),
        format!("udp\t{len}\t0\t16\ntcp\t{len}\t3\t16\n")
    );
}

#[test]
fn late_packets_do_not_wait() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let frames = vec![&good[..]; 11];
    // Ten gaps of 20 ms; the script delays the first packet by 150 ms, and the later ones catch up.
    let text = "local timing = require('dnsjit.filter.timing').new()\ntiming:keep()\n\
                timing:producer(layer)\nlocal p, c = timing:produce()\n\
                local clock = require('dnsjit.lib.clock')\nlocal ffi = require('ffi')\n\
                local s, n = clock:monotonic()\np(c)\n\
                local nap = ffi.new('gannet_time_t', 0, 150000000) ffi.C.nanosleep(nap, nil)\n\
                while p(c) ~= nil do end\nlocal t, m = clock:monotonic()\n\
                local took = (t - s) + (m - n) / 1e9\n\
                print(took >= 0.2 and took < 0.34 or took)";
    assert_eq!(over("late", &frames, text), "true\n");
}

#[test]
fn blocking_can_be_enabled_again() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let text = format!(
        "local client = require('dnsjit.output.udpcli').new()\n\
         client:timeout(0, 200000000) assert(client:connect('127.0.0.1', {}) == 0)\n\
         local receive, ctx = client:produce()\n\
         local clock = require('dnsjit.lib.clock')\n\
         local function took() local s, n = clock:monotonic() receive(ctx)\n\
         local t, m = clock:monotonic() return (t - s) + (m - n) / 1e9 end\n\
         client:nonblocking(true) print(client:nonblocking(), took() < 0.15)\n\
         client:nonblocking(false) print(client:nonblocking(), took() >= 0.19, client:timeouts())",
        silent.local_addr().unwrap().port()
    );
    assert_eq!(over("blocking", &[&good], &text), "true\ttrue\nfalse\ttrue\t1\n");
}

#[test]
fn threads_receive_every_object() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = "local channel = require('dnsjit.core.channel').new(4)\n\
                local back = require('dnsjit.core.channel').new(4)\n\
                local thread = require('dnsjit.core.thread').new()\n\
                assert(thread:start(function(own)\n\
                local channel, back, word, number = own:pop(4)\n\
                assert(word == 'word' and number == 7)\n\
                local ffi, count = require('ffi'), 0\n\
                require('dnsjit.core.objects')\n\
                while true do local o = channel:get() if o == nil then break end\n\
                o = ffi.cast('core_object_t *', o) assert(o:cast().len == 22)\n\
                o:free() count = count + 1 end\n\
                assert(own:pop() == nil)\n\
                back:put(ffi.cast('void *', count)) end) == 0)\n\
                thread:push(channel, back, 'word', 7)\n\
                local o = produce(ctx)\n\
                for i = 1, 20000 do channel:put(o:copy()) end channel:put(nil)\n\
                assert(thread:stop() == 0)\n\
                print(tonumber(require('ffi').cast('intptr_t', back:get())), back:get())\n\
                local broken = require('dnsjit.core.thread').new()\n\
                broken:start(function(own) own:pop() end)\n\
                local other = require('dnsjit.core.channel').new(4) broken:push(other)\n\
                assert(broken:stop() == 0)\n\
                print(pcall(function() for i = 1, 5 do other:put(o) end end))";
    let printed = over("threads", &[&good], text);
    assert!(printed.starts_with("20000\tnil\nfalse\t"), "{printed}");
    assert!(printed.ends_with("no other thread empties it\n"), "{printed}");
}

#[test]
fn respdiff_has_times() {
    let folder = Folder::new("respdiff");
    let lmdb = folder.path("lmdb");
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = format!(
        "local ffi = require('ffi')\n\
         local out = require('dnsjit.output.respdiff').new('{lmdb}', 'a', 'b')\n\
         local receive, rctx = out:receive()\n\
         local function payload(text, prev) local p = ffi.new('core_object_payload_t')\n\
         p.obj_type, p.payload, p.len = 40, ffi.cast('const uint8_t *', text), #text\n\
         if prev then p.obj_prev = ffi.cast('core_object_t *', prev) end return p end\n\
         local got = payload('GOT') local had = payload('HAD', got)\n\
         local asked = payload('ASKED', had)\n\
         receive(rctx, ffi.cast('core_object_t *', asked))\n\
         ffi.C.nanosleep(ffi.new('gannet_time_t', 0, 30000000), nil)\n\
         receive(rctx, ffi.cast('core_object_t *', asked))\n\
         local alone = payload('HAD') local lost = payload('ASKED', alone)\n\
         receive(rctx, ffi.cast('core_object_t *', lost))\n\
         out:commit(1, 2) print('done')"
    );
    assert_eq!(over("respdiff", &[&good], &text), "done\n");
    let data = fs::read(Path::new(&lmdb).join("data.mdb")).unwrap();
    let holds = |bytes: &[u8]| data.windows(bytes.len()).any(|w| w == bytes);
    assert!(holds(b"2018-05-21") && holds(b"ASKED"));
    assert!(holds(b"\0\0\0\0\x03\0HAD\0\0\0\0\x03\0GOT"), "the first took no time");
    let answers = data.windows(9).filter(|w| w[4..] == *b"\x03\0GOT");
    let times = answers.map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    let took = times.max().unwrap();
    assert!((30_000..2_000_000).contains(&took), "the second took 30 ms, and {took} us");
    assert!(holds(b"\x03\0HAD\xff\xff\xff\xff\0\0"), "the third got none");
}
