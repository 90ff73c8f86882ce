//! Tests of calls and replies on a connection.

use proptest::prelude::*;

use gannet_base::Interval;
use gannet_event::Command;
use gannet_event::TransportState;

use super::super::Mount;
use super::super::Nfs;
use super::super::Portmapper;
use super::super::message::tests::call as behind;
use super::*;
use crate::testing::Harness;

/// A call with an empty credential.
fn call(xid: u32, prog: u32, proc: u32, args: &[u8]) -> Vec<u8> {
    let head = [xid, 0, 2, prog, 3, proc, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
    [&head, args].concat()
}

/// A successful reply.
fn reply(xid: u32, results: &[u8]) -> Vec<u8> {
    [&[xid, 1, 0, 0, 0, 0].map(u32::to_be_bytes).concat(), results].concat()
}

/// A message as a record of one fragment.
fn record(message: &[u8]) -> Vec<u8> {
    [&(1 << 31 | message.len() as u32).to_be_bytes(), message].concat()
}

/// Encodes 32-bit integers.
fn words<const N: usize>(numbers: [u32; N]) -> Vec<u8> {
    numbers.map(u32::to_be_bytes).concat()
}

fn weirds(h: &Harness) -> Vec<String> {
    h.rows("weird").iter().map(|row| row["name"].clone()).collect()
}

fn send<P: Program>(h: &mut Harness, a: &mut Analyzer<P>, from: Dir, data: &[u8]) {
    a.datagram(&mut h.cx(), from, data, data.len() as u32);
}

fn established(h: &mut Harness) {
    let states = [State::Established as u8; 2];
    h.env.logs.events.set_transport(TransportState { states, sizes: [0; 2] });
}

/// Messages with their senders.
type Messages<'a> = &'a [(Dir, Vec<u8>)];

const GETPORT: [u32; 4] = [100_003, 3, 17, 0];

#[test]
fn a_program_has_a_port() {
    let mut h = Harness::new(Proto::Udp, 111);
    h.listen("");
    let mut a = Portmapper::new(&mut h.cx());
    send(&mut h, &mut a, Dir::Orig, &call(7, 100_000, 3, &words(GETPORT)));
    assert_eq!(h.events(), [r#"rpc_call "xid":7,"prog":100000,"ver":3,"proc":3,"call_len":48"#]);
    h.now += Interval::from_millis(250);
    send(&mut h, &mut a, Dir::Resp, &reply(7, &words([2049])));
    assert_eq!(
        h.events(),
        [
            r#"rpc_reply "xid":7,"status":"RPC_SUCCESS","reply_len":4"#,
            r#"pm_request_getport "pr":{"program":100003,"version":3,"is_tcp":false},"p":{"port":2049,"proto":"udp"}"#,
            r#"rpc_dialogue "prog":100000,"ver":3,"proc":3,"status":"RPC_SUCCESS","start_time":1.000000,"call_len":48,"reply_len":0"#,
        ]
    );
    a.finish(&mut h.cx());
    assert!(h.events().is_empty() && weirds(&h).is_empty() && h.requests.is_empty());
}

#[test]
fn all_procedures_of_the_portmapper() {
    let mut h = Harness::new(Proto::Udp, 111);
    h.listen("pm_");
    let mut a = Portmapper::new(&mut h.cx());
    let mapping = words([100_005, 1, 6, 635]);
    let callit = words([100_005, 1, 5, 3, 0x6162_6300]);
    let dump = [&words([1])[..], &mapping, &words([1, 100_003, 3, 17, 70_000, 0])].concat();
    for (proc, args, results) in [
        (0, &b""[..], &b""[..]),
        (1, &mapping, &words([1])),
        (2, &mapping, &words([0])),
        (3, &words([100_005, 1, 6, 0]), &words([65_536])),
        (4, b"", &dump),
        (5, &callit, &words([635, 2, 0x6f6b_0000])),
    ] {
        send(&mut h, &mut a, Dir::Orig, &call(proc, 100_000, proc, args));
        send(&mut h, &mut a, Dir::Resp, &reply(proc, results));
    }
    let p = r#""p":{"port":635,"proto":"tcp"}"#;
    let m = format!(r#"{{"program":100005,"version":1,{p}}}"#);
    let expected = [
        "pm_request_null ".to_owned(),
        format!(r#"pm_request_set "m":{m},"success":true"#),
        format!(r#"pm_request_unset "m":{m},"success":false"#),
        r#"pm_bad_port "bad_p":65536"#.to_owned(),
        r#"pm_request_getport "pr":{"program":100005,"version":1,"is_tcp":true},"p":{"port":0,"proto":"tcp"}"#.to_owned(),
        r#"pm_bad_port "bad_p":70000"#.to_owned(),
        format!(r#"pm_request_dump "m":{{"1":{m},"2":{{"program":100003,"version":3,"p":{{"port":0,"proto":"udp"}}}}}}"#),
        r#"pm_request_callit "call":{"program":100005,"version":1,"proc":5,"arg_size":3},"p":{"port":635,"proto":"udp"}"#.to_owned(),
    ];
    assert_eq!(h.events(), expected);
    // None of them has a reply.
    for (proc, args) in
        [(0, &b""[..]), (1, &mapping), (2, &mapping), (3, &mapping), (4, b""), (5, &callit)]
    {
        send(&mut h, &mut a, Dir::Orig, &call(proc, 100_000, proc, args));
    }
    a.finish(&mut h.cx());
    let names: Vec<_> = h.events().iter().map(|e| e[..e.find(' ').unwrap()].to_owned()).collect();
    let kinds = ["null", "set", "unset", "getport", "dump", "callit"];
    assert_eq!(names, kinds.map(|kind| format!("pm_attempt_{kind}")));
    assert!(weirds(&h).is_empty());
}

#[test]
fn what_is_wrong_is_a_weird() {
    let null = |xid| (Dir::Orig, call(xid, 100_000, 0, b""));
    let unknown = || (Dir::Orig, call(1, 100_000, 9, b""));
    let (orig, resp) = (Dir::Orig, Dir::Resp);
    // The messages of a connection, and its weirds. A weird is logged once per name and host.
    let cases: [(Messages<'_>, &[&str]); 15] = [
        (&[null(1), null(1), (resp, reply(1, b""))], &[]),
        (&[null(1), (orig, call(1, 100_000, 0, b"\0\0\0\0"))], &["RPC_rexmit_inconsistency"]),
        (
            &[null(1), (orig, words([1, 0, 2]))],
            &["RPC_rexmit_inconsistency", "RPC_underflow", "bad_RPC"],
        ),
        (&[(resp, call(2, 100_000, 0, b""))], &["responder_RPC_call"]),
        (&[null(1), (orig, reply(1, b""))], &["originator_RPC_reply"]),
        (&[(resp, reply(2, b"more"))], &["unpaired_RPC_response"]),
        (&[(orig, call(3, 100_001, 0, b""))], &["bad_RPC_program"]),
        (&[(orig, call(4, 100_000, 0, b"\0\0\x01"))], &["excess_RPC"]),
        (&[(orig, call(5, 100_000, 0, b"\0\0\0\0\0"))], &[]),
        (&[unknown()], &["bad_RPC"]),
        (
            &[unknown(), (resp, reply(1, b""))],
            &["bad_RPC", "successful_RPC_reply_to_invalid_request"],
        ),
        (&[(orig, words([7, 2]))], &["bad_RPC"]),
        (&[(orig, words([7]))], &["bad_RPC"]),
        (&[(orig, call(1, 100_000, 3, &words(GETPORT))), (resp, reply(1, b""))], &["bad_RPC"]),
        (&[null(1), (resp, words([1, 1, 7]))], &["bad_RPC"]),
    ];
    for (messages, names) in cases {
        let mut h = Harness::new(Proto::Udp, 111);
        let mut a = Portmapper::new(&mut h.cx());
        for (from, data) in messages {
            send(&mut h, &mut a, *from, data);
        }
        assert_eq!(weirds(&h), *names, "{messages:?}");
        assert!(h.rows("weird").iter().all(|row| row["source"] == "PORTMAPPER"));
    }
}

#[test]
fn a_call_that_is_malformed_has_no_event_but_its_own() {
    let mut h = Harness::new(Proto::Udp, 2049);
    h.listen("");
    let mut a = Nfs::new(&mut h.cx());
    send(&mut h, &mut a, Dir::Orig, &call(1, 100_003, 1, &words([65])));
    send(&mut h, &mut a, Dir::Resp, &reply(1, &words([0])));
    let names: Vec<_> = h.events().iter().map(|e| e[..e.find(' ').unwrap()].to_owned()).collect();
    assert_eq!(
        names.iter().filter(|name| !name.ends_with("weird")).collect::<Vec<_>>(),
        ["rpc_call", "rpc_reply", "rpc_dialogue"]
    );
}

#[test]
fn calls_without_a_reply_are_limited() {
    for (limit, count) in [(None, 1_000), (Some(3), 3)] {
        let mut h = Harness::new(Proto::Udp, 111);
        h.listen("rpc_d");
        if let Some(value) = limit {
            let (now, name) = (h.now, "rpc_max_pending_calls");
            h.env.apply_command(now, Command::Setting { name, value });
        }
        let mut a = Portmapper::new(&mut h.cx());
        for xid in 0..count {
            send(&mut h, &mut a, Dir::Orig, &call(xid, 100_000, 0, b""));
        }
        assert!(h.events().is_empty() && weirds(&h).is_empty());
        send(&mut h, &mut a, Dir::Orig, &call(count, 100_000, 0, b""));
        assert_eq!(h.events(), ["rpc_discarded_pending_calls "]);
        assert_eq!(weirds(&h), ["RPC_pending_calls_discarded"]);
        send(&mut h, &mut a, Dir::Resp, &reply(count, b""));
        a.finish(&mut h.cx());
        assert_eq!(h.events().len(), 1);
    }
}

#[test]
fn datagrams_have_a_connection_for_some_time() {
    let mut h = Harness::new(Proto::Udp, 111);
    Portmapper::new(&mut h.cx());
    assert_eq!((h.conn.timeout(), h.conn.check_every), (Interval::ZERO, UDP_SECONDS));
    let mut h = Harness::new(Proto::Tcp, 111);
    let before = h.conn.timeout();
    Portmapper::new(&mut h.cx());
    assert_eq!((h.conn.timeout(), h.conn.check_every), (before, 0));
}

#[test]
fn a_directory_is_mounted() {
    let mut h = Harness::new(Proto::Udp, 635);
    h.listen("mount_");
    let mut a = Mount::new(&mut h.cx());
    let dir = b"\0\0\0\x04/usr";
    send(&mut h, &mut a, Dir::Orig, &call(1, 100_005, 1, dir));
    send(
        &mut h,
        &mut a,
        Dir::Resp,
        &reply(1, b"\0\0\0\0\0\0\0\x02fh\0\0\0\0\0\x03\0\0\0\x01\0\0\0\x63\0\0\0\0"),
    );
    let info = |status: &str, req: u64, rep: u64| {
        format!(
            r#""info":{{"rpc_stat":"RPC_SUCCESS","mnt_stat":"MOUNT3::{status}","req_start":1.000000,"req_dur":0.000000,"req_len":{req},"rep_start":1.000000,"rep_dur":0.000000,"rep_len":{rep},"rpc_uid":0,"rpc_gid":0,"rpc_stamp":0,"rpc_machine_name":"","rpc_auxgids":[]}}"#
        )
    };
    let ok = info("MNT3_OK", 40, 44);
    let req = r#""req":{"dirname":"/usr"}"#;
    assert_eq!(
        h.events(),
        [
            format!("mount_reply_status {ok}"),
            format!(
                r#"mount_proc_mnt {ok},{req},"rep":{{"dirfh":"fh","auth_flavors":["MOUNT3::AUTH_UNIX","MOUNT3::AUTH_NULL"]}}"#
            ),
        ]
    );
    assert_eq!(weirds(&h), ["unhandled_mount3_auth_flavor"]);
    // The mount fails, and then the directory is unmounted.
    send(&mut h, &mut a, Dir::Orig, &call(2, 100_005, 1, dir));
    send(&mut h, &mut a, Dir::Resp, &reply(2, &words([13])));
    send(&mut h, &mut a, Dir::Orig, &call(3, 100_005, 3, dir));
    send(&mut h, &mut a, Dir::Resp, &reply(3, b""));
    let [denied, unknown, none] =
        [info("MNT3ERR_ACCES", 40, 20), info("MOUNT3ERR_UNKNOWN", 40, 16), info("MNT3_OK", 40, 16)];
    assert_eq!(
        h.events(),
        [
            format!("mount_reply_status {denied}"),
            format!(r#"mount_proc_mnt {denied},{req},"rep":{{}}"#),
            format!("mount_reply_status {unknown}"),
            format!("mount_proc_umnt {none},{req}"),
        ]
    );
}

#[test]
fn flavors_beyond_a_limit_are_skipped() {
    let mut h = Harness::new(Proto::Udp, 635);
    h.listen("mount_proc");
    let mut a = Mount::new(&mut h.cx());
    send(&mut h, &mut a, Dir::Orig, &call(1, 100_005, 1, b"\0\0\0\x01/\0\0\0"));
    let flavors = [&words([0, 0, 40])[..], &words([1; 40])].concat();
    send(&mut h, &mut a, Dir::Resp, &reply(1, &flavors));
    let event = h.events().concat();
    assert_eq!(event.matches("AUTH_UNIX").count(), 32);
    assert_eq!(weirds(&h), ["excessive_MNT_auth_flavors"]);
}

#[test]
fn messages_of_a_stream_may_be_cut_anywhere() {
    for size in [1, 3, 50, 1000] {
        let mut h = Harness::new(Proto::Tcp, 111);
        h.listen("pm_");
        established(&mut h);
        let mut a = Portmapper::new(&mut h.cx());
        let calls = [record(&call(1, 100_000, 0, b"")), record(&call(2, 100_000, 0, b""))].concat();
        for part in calls.chunks(size) {
            a.stream(&mut h.cx(), Dir::Orig, part);
        }
        for part in [record(&reply(2, b"")), record(&reply(1, b""))].concat().chunks(size) {
            a.stream(&mut h.cx(), Dir::Resp, part);
        }
        assert_eq!(h.events(), ["pm_request_null "; 2]);
        assert!(weirds(&h).is_empty());
    }
}

#[test]
fn a_record_that_is_no_message_is_a_weird() {
    let mut h = Harness::new(Proto::Tcp, 111);
    h.listen("pm_");
    established(&mut h);
    let mut a = Portmapper::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Orig, &record(b"\0\0\0\x01\0"));
    a.stream(&mut h.cx(), Dir::Orig, b"\x80\x01\0\x01");
    assert_eq!(weirds(&h), ["partial_RPC", "RPC_message_too_long"]);
    assert_eq!(h.rows("weird")[1]["addl"], "65537");
}

#[test]
fn a_connection_without_a_begin_is_joined_later() {
    let mut h = Harness::new(Proto::Tcp, 111);
    h.listen("rpc_call");
    let mut a = Portmapper::new(&mut h.cx());
    for xid in 0..5 {
        a.stream(&mut h.cx(), Dir::Orig, &record(&call(xid, 100_000, 0, b"")));
    }
    assert_eq!(h.events().len(), 3);
    a.gap(&mut h.cx(), Dir::Orig, 10);
    for xid in 0..5 {
        a.stream(&mut h.cx(), Dir::Orig, &record(&call(xid + 5, 100_000, 0, b"")));
    }
    assert_eq!(h.events().len(), 3);
}

#[test]
fn padding_that_is_missing_ends_the_analysis() {
    let mut h = Harness::new(Proto::Udp, 635);
    h.listen("rpc_call");
    let mut a = Mount::new(&mut h.cx());
    send(&mut h, &mut a, Dir::Orig, &call(1, 100_005, 1, b"\0\0\0\x01/"));
    send(&mut h, &mut a, Dir::Orig, &call(2, 100_005, 1, b"\0\0\0\x01/\0\0\0"));
    assert_eq!((h.events().len(), weirds(&h)), (1, vec!["bad_RPC".to_owned()]));
}

#[test]
fn a_thousand_exchanges_are_a_thousand_events() {
    for proto in [Proto::Udp, Proto::Tcp] {
        let mut h = Harness::new(proto, 2049);
        h.listen("nfs_proc");
        established(&mut h);
        let mut a = Nfs::new(&mut h.cx());
        let mut count = 0;
        for xid in 0..1_000u32 {
            h.now += Interval::from_millis(10);
            let file = [&words([4]), &xid.to_be_bytes()[..]].concat();
            let (ask, answer) = (call(xid, 100_003, 5, &file), reply(xid, &words([10_001, 0])));
            match proto {
                Proto::Udp => {
                    send(&mut h, &mut a, Dir::Orig, &ask);
                    send(&mut h, &mut a, Dir::Resp, &answer);
                }
                _ => {
                    a.stream(&mut h.cx(), Dir::Orig, &record(&ask));
                    a.stream(&mut h.cx(), Dir::Resp, &record(&answer));
                }
            }
            let events = h.events();
            assert!(events.iter().all(|e| e.contains("NFS3ERR_BADHANDLE")), "{events:?}");
            count += events.len();
        }
        a.finish(&mut h.cx());
        assert_eq!((count, h.events().len()), (1_000, 0));
        assert!(weirds(&h).is_empty() && a.calls.is_empty());
    }
}

#[test]
fn callers_are_named() {
    let mut h = Harness::new(Proto::Udp, 2049);
    h.listen("nfs_proc");
    let mut a = Nfs::new(&mut h.cx());
    let ask = [&words([9, 0])[..], &behind(100_003, 3, 0, b"")].concat();
    send(&mut h, &mut a, Dir::Orig, &ask);
    send(&mut h, &mut a, Dir::Resp, &reply(9, b""));
    let event = h.events().concat();
    let caller = r#""rpc_uid":1000,"rpc_gid":100,"rpc_stamp":5,"rpc_machine_name":"box","rpc_auxgids":[4,24]"#;
    assert!(event.contains(caller), "{event}");
}

/// A call, a retransmission with other arguments, and a reply, in datagrams and in a stream; and a
/// call without a reply.
fn exchange<P: Program>(prog: u32, proc: u32, parts: [&[u8]; 4], size: usize) {
    let [args, other, results, raw] = parts;
    let calls = [call(1, prog, proc, args), call(1, prog, proc, other), call(2, prog, proc, args)];
    let mut h = Harness::new(Proto::Udp, 111);
    h.listen("");
    let mut a = Analyzer::<P>::new(&mut h.cx());
    for message in &calls {
        send(&mut h, &mut a, Dir::Orig, message);
    }
    send(&mut h, &mut a, Dir::Resp, &reply(1, results));
    send(&mut h, &mut a, Dir::Orig, raw);
    a.finish(&mut h.cx());
    h.events();
    let mut h = Harness::new(Proto::Tcp, 111);
    h.listen("");
    established(&mut h);
    let mut a = Analyzer::<P>::new(&mut h.cx());
    let stream = [calls.map(|message| record(&message)).concat(), raw.to_vec()].concat();
    for part in stream.chunks(size) {
        a.stream(&mut h.cx(), Dir::Orig, part);
    }
    a.gap(&mut h.cx(), Dir::Orig, 5);
    for part in [record(&reply(1, results)), raw.to_vec(), stream].concat().chunks(size) {
        a.stream(&mut h.cx(), Dir::Resp, part);
        a.stream(&mut h.cx(), Dir::Orig, part);
    }
    a.finish(&mut h.cx());
    h.events();
}

proptest! {
    #[test]
    fn any_arguments_and_results_are_read(
        proc in 0u32..24,
        // Small numbers are lengths, kinds and flags.
        args in proptest::collection::vec(prop_oneof![0u32..9, any::<u32>()], 0..40),
        other in proptest::collection::vec(any::<u8>(), 0..40),
        results in proptest::collection::vec(prop_oneof![0u32..9, any::<u32>()], 0..60),
        raw: Vec<u8>,
        size in 1usize..200,
    ) {
        let bytes = |numbers: &[u32]| -> Vec<u8> {
            numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
        };
        let (args, results) = (bytes(&args), bytes(&results));
        let parts = [&args[..], &other, &results, &raw];
        exchange::<crate::rpc::nfs::Nfs>(100_003, proc, parts, size);
        exchange::<crate::rpc::mount::Mount>(100_005, proc % 7, parts, size);
        exchange::<crate::rpc::portmap::Portmapper>(100_000, proc % 7, parts, size);
    }
}
