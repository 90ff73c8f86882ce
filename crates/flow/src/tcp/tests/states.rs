//! States, histories, weirds, and ends of connections.

use std::fmt::Write;

use gannet_base::Dir;
use gannet_base::Interval;

use super::Run;
use super::UP;
use super::time;
use crate::tcp::Delayed;
use crate::tcp::Delays;
use crate::tcp::Limits;

/// Script, row, weirds in order, and seconds until it is removed.
type Case = (&'static str, &'static str, &'static [&'static str], f64);

fn check(cases: &[Case]) {
    let mut wrong = String::new();
    for (script, row, weirds, over) in cases {
        let mut run = Run::of(script);
        let got = (run.row(), run.sink.weirds.clone(), run.over());
        if got.0 != *row || got.1 != *weirds || got.2 != *over {
            writeln!(wrong, "{script}\n  is  {got:?}\n  not {row:?} {weirds:?} {over}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn beginnings() {
    check(&[
        // No reply.
        ("> S 100", "S SynSent/Inactive 0/0", &[], 5.0),
        ("> S 100; @3 > S 100", "S SynSent/Inactive 0/0", &[], 5.0),
        // Rejected; the reply acknowledges the SYN.
        ("> S 100; @1 < RA 0 101", "Sr SynSent/Reset 0/0", &[], 6.0),
        // The handshake, with and without its last segment.
        ("> S 100; < SA 300 101", "Sh Established/Established 0/0", &[], 300.0),
        ("> S 100; < SA 300 101; > A 101 301", "ShA Established/Established 0/0", &[], 300.0),
        // The reply does not acknowledge the SYN.
        (
            "> S 100; < SA 300 7",
            "Sh Established/Established 0/0",
            &["TCP_ack_underflow_or_misorder", "bad_SYN_ack"],
            300.0,
        ),
        // Both sides open at the same time.
        ("> S 100; < S 100", "Ss Established/Established 0/0", &["simultaneous_open"], 300.0),
        // SYN-ACK before SYN: the sender of the SYN is the originator.
        (
            "< SA 300 101; > S 100; > A 101 301",
            "Hs^A Established/Established 0/0",
            &["connection_originator_SYN_ack"],
            300.0,
        ),
        // SYN-ACK first, then traffic: its sender is the responder.
        (
            "< SA 300 101; > A 101 301; > A 101 301 4",
            "^hAD Partial/SynAckSent 4/0",
            &["connection_originator_SYN_ack"],
            300.0,
        ),
        ("< SA 300 101", "H SynAckSent/Inactive 0/0", &["connection_originator_SYN_ack"], 5.0),
        // A bare ACK is no reply.
        ("> S 100; < A 300 101", "Sa SynSent/Inactive 0/0", &[], 5.0),
        // The handshake was missed.
        ("> A 101 301 4", "D Partial/Inactive 4/0", &[], 300.0),
        ("> A 101 301 4; < A 301 105 2", "Dd Partial/Partial 4/2", &[], 300.0),
        ("> A 101 301; < A 301 101", "Aa Partial/Partial 0/0", &[], 300.0),
        // Unusual SYNs.
        ("> SF 100", "Q Closed/Inactive 0/0", &[], 5.0),
        ("> SR 100", "Q Reset/Inactive 0/0", &["TCP_christmas", "spontaneous_RST"], 5.0),
        ("> SU 100", "S SynSent/Inactive 0/0", &["baroque_SYN"], 5.0),
        ("> S 100 0 9", "ST SynSent/Inactive 9/0", &["SYN_with_data"], 5.0),
        ("> S 100 ws=15", "S SynSent/Inactive 0/0", &["TCP_scale_range"], 5.0),
    ]);
}

/// Like [`check`], for established connections.
fn check_up(cases: &[Case]) {
    let scripts: Vec<_> = cases.iter().map(|c| format!("{UP} {}", c.0).leak() as &str).collect();
    let cases: Vec<_> = cases.iter().zip(scripts).map(|(c, s)| (s, c.1, c.2, c.3)).collect();
    check(&cases);
}

#[test]
fn ends() {
    check_up(&[
        // Both close, and late packets do not count.
        (
            "> A 101 301 5; < A 301 106 3; @2 > FA 106 304; @3 < FA 304 107; @4 > A 107 305",
            "ShADdFf Closed/Closed 5/3",
            &[],
            8.0,
        ),
        // One side closes: the connection may stay half-closed until it is idle.
        ("@1 > FA 101 301", "ShAF Closed/Established 0/0", &[], 301.0),
        ("@1 < FA 301 101", "ShAf Established/Closed 0/0", &[], 301.0),
        // Resets.
        ("@1 > R 101", "ShAR Reset/Established 0/0", &[], 6.0),
        ("@1 < R 301", "ShAr Established/Reset 0/0", &[], 6.0),
        ("@1 > R 101; @2 < R 301", "ShARr Reset/Reset 0/0", &[], 7.0),
        ("> FA 101 301; @1 < R 301", "ShAFr Closed/Reset 0/0", &[], 6.0),
        // A reset by the side that closed first is a normal end.
        ("> FA 101 301; < FA 301 102; @1 > R 102", "ShAFfR Closed/Closed 0/0", &[], 5.0),
        ("> FA 101 301; > R 102 ; @1 < FA 301 102", "ShAFRf Closed/Closed 0/0", &[], 6.0),
        // FIN and RST at once.
        ("> FR 101", "ShAI Reset/Established 0/0", &[], 5.0),
        // After the end.
        (
            "> R 101; > A 101 301 4; > FA 105 301",
            "ShARDF Reset/Established 4/0",
            &["data_after_reset", "FIN_after_reset"],
            5.0,
        ),
        (
            "> FA 101 301; > FA 150 301",
            "ShAFF Closed/Established 49/0",
            &["FIN_advanced_last_seq"],
            300.0,
        ),
    ]);
    check(&[
        // Ends of partially seen connections.
        ("> S 100; @1 > FA 101 1", "SF Closed/Inactive 0/0", &["inappropriate_FIN"], 6.0),
        ("> S 100; @1 > R 101", "SR Reset/Inactive 0/0", &[], 6.0),
        ("> FA 101 301", "F Closed/Inactive 0/0", &["spontaneous_FIN"], 5.0),
        ("> R 101", "R Reset/Inactive 0/0", &["spontaneous_RST"], 5.0),
        ("> S 100; < FA 301 101", "Sf SynSent/Closed 0/0", &["spontaneous_FIN"], 300.0),
    ]);
}

#[test]
fn weirds_of_segments() {
    let cases: &[(&str, &str)] = &[
        ("> S 100", ""),
        ("> S 200", "active_connection_reuse"),
        ("> A 101 301 5; > S 100", "SYN_inside_connection"),
        ("> A 50 301 5", "TCP_seq_underflow_or_misorder"),
        ("> A 101 200", "TCP_ack_underflow_or_misorder"),
        ("> FA 101 301; > FA 102 301", "FIN_advanced_last_seq"),
        ("< A 301 101 w=900; < A 301 101 w=500", "window_recision"),
        ("> SR 100", "TCP_christmas"),
        ("> A 101 301 5 cut", "truncated_tcp_payload"),
    ];
    for (script, weird) in cases {
        let run = Run::of(&format!("{UP} {script}"));
        let all = run.sink.weirds.join(" ");
        assert!(
            if weird.is_empty() { all.is_empty() } else { all.contains(weird) },
            "{script}: {all}"
        );
    }
    let cases = [
        ("> S 100; < SA 300 101; > A 101 301; > SA 100 301", "SYN_seq_jump", false),
        ("> S 100; > A 101 301 4", "data_before_established", true),
        ("> S 100; > A 101 301", "possible_split_routing", true),
        ("> A 101 301; > S 100", "SYN_after_partial", true),
        ("> A 101 301; < S 300", "unsolicited_SYN_response", false),
        ("> S 100; > SA 100 301", "repeated_SYN_with_ack", true),
    ];
    for (script, weird, told) in cases {
        let run = Run::of(script);
        assert_eq!(run.sink.weirds.contains(&weird), told, "{script}: {:?}", run.sink.weirds);
    }
}

#[test]
fn ports_are_reused() {
    // Script, rows of replaced connections, the final row, weirds.
    let cases: &[(&str, &[&str], &str, &[&str])] = &[
        // A retransmitted SYN starts no other connection.
        ("> S 100; > S 100", &[], "S SynSent/Inactive 0/0", &[]),
        (
            "> S 100; > S 200",
            &["S SynSent/Inactive 0/0"],
            "S SynSent/Inactive 0/0",
            &["SYN_seq_jump"],
        ),
        (
            "> S 100; < S 300",
            &["S SynSent/Inactive 0/0"],
            "S SynSent/Inactive 0/0",
            &["SYN_seq_jump"],
        ),
        // While the old connection is established.
        (
            "> S 100; < SA 300 101; > S 900",
            &["Sh Established/Established 0/0"],
            "S SynSent/Inactive 0/0",
            &["active_connection_reuse"],
        ),
        // After one side closed, both closed, both closed long ago, after a reset.
        (
            "> S 100; < SA 300 101; > FA 101 301; > S 900",
            &["ShF Closed/Established 0/0"],
            "S SynSent/Inactive 0/0",
            &["active_connection_reuse"],
        ),
        (
            "> S 100; < SA 300 101; > FA 101 301; < FA 301 102; > S 900",
            &["ShFf Closed/Closed 0/0"],
            "S SynSent/Inactive 0/0",
            &["premature_connection_reuse"],
        ),
        (
            "> S 100; < SA 300 101; > FA 101 301; < FA 301 102; @9 > S 900",
            &["ShFf Closed/Closed 0/0"],
            "S SynSent/Inactive 0/0",
            &[],
        ),
        (
            "> S 100; < SA 300 101; > R 101; > S 900",
            &["ShR Reset/Established 0/0"],
            "S SynSent/Inactive 0/0",
            &[],
        ),
        // A SYN-ACK starts another connection only if no originator was seen.
        (
            "> S 100; < SA 300 101; < SA 700 101",
            &[],
            "Sh Established/Established 0/0",
            &["SYN_seq_jump"],
        ),
    ];
    let mut wrong = String::new();
    for (script, rows, left, weirds) in cases {
        let run = Run::of(script);
        if run.reused != *rows || run.row() != *left || run.sink.weirds != *weirds {
            writeln!(wrong, "{script}\n  {:?} {:?} {:?}", run.reused, run.row(), run.sink.weirds)
                .unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn storms() {
    for (flags, name) in [("FA", "FIN_storm"), ("R", "RST_storm")] {
        let mut run = Run::of(UP);
        for i in 0..1_000 {
            assert!(!run.sink.weirds.contains(&name), "after {i}");
            run.go(&format!("@{} > {flags} {} 301", f64::from(i) / 1_000.0, 101 + i));
        }
        assert!(run.sink.weirds.contains(&name));
        // The same number with pauses in between is no storm.
        let mut run = Run::of(UP);
        for i in 0..1_100 {
            run.go(&format!("@{i} > {flags} {} 301", 101 + i));
        }
        assert!(!run.sink.weirds.contains(&name));
        // A clock that goes back does not count as a pause.
        let mut run = Run::of(UP);
        for i in 0..1_000 {
            run.go(&format!("@{} > {flags} {} 301", 9_000 - 2 * i, 101 + i));
        }
        assert!(run.sink.weirds.contains(&name));
    }
}

#[test]
fn analyzers_exchange_roles() {
    let mut run = Run::of(&format!("{UP} > A 101 301 5; < A 301 106 3"));
    run.tcp.flip_roles(&mut run.conn, &mut run.sink);
    assert_eq!(run.row(), "ShADd^ Established/Established 3/5");
    run.go("> A 106 304 2; < FA 304 108");
    assert_eq!(run.row(), "ShADd^F Closed/Established 3/7");
}

#[test]
fn a_connection_without_segments_is_removed() {
    // Its first packet was invalid.
    assert_eq!(Run::of("").over(), 5.0);
}

#[test]
fn bad_checksums_are_noted_at_powers_of_ten() {
    let mut run = Run::of(UP);
    for _ in 0..100 {
        run.tcp.bad_checksum(&mut run.conn, Dir::Resp, &mut run.sink);
    }
    assert_eq!(run.row(), "ShAccc Established/Established 0/0");
}

#[test]
fn only_a_single_syn_is_packed() {
    for (script, packed) in [
        ("> S 100", 1),
        ("> S 100 ws=7; @1 > S 100 ws=7; @3 > S 100 ws=7", 3),
        ("> S 7 w=0 ws=3", 1),
        ("> S 100 0 5", 0),
        ("> SA 100 5", 0),
        ("> S 100; < SA 300 101", 1),
        ("> A 100 300", 0),
    ] {
        assert_eq!(Run::of(script).packed, packed, "{script}");
    }
}

#[test]
fn checks_are_triggered_by_packets() {
    // A FIN and a RST from one side: an idle period ends the connection; the check at five seconds
    // finds this when a packet arrives.
    let script = format!("{UP} @1 > FA 101 301; @1.1 > R 102");
    for (packet, over) in [(5_500, false), (6_100, false), (6_101, true), (6_500, true)] {
        let mut run = Run::of(&script);
        assert_eq!(
            run.tcp.is_over(&run.conn, time(5_000), time(packet), &Delays::DEFAULT),
            over,
            "{packet}"
        );
        // The next check counts from the packet; the check that the FIN scheduled has not happened
        // yet.
        assert_eq!(run.tcp.due(), time(if over { 5_000 } else { 7_000 }));
        if !over {
            assert!(run.tcp.is_over(&run.conn, time(7_000), time(7_000), &Delays::DEFAULT));
        }
    }
}

#[test]
fn connections_without_close_or_reset_are_pending() {
    let is_pending = |end: &str| Run::of(&format!("{UP} {end}")).tcp.is_pending();
    assert!(is_pending(""));
    assert!(is_pending("> FA 101 301"));
    assert!(!is_pending("> FA 101 301; < FA 301 102"));
    assert!(!is_pending("> R 101"));
    // The data is not complete yet.
    assert!(is_pending("< A 310 101 5; > FA 101 301; < FA 315 102"));
    assert!(!Run::of("> S 100; > FA 101 301").tcp.is_pending());
    let is_half_reset = |end: &str| Run::of(&format!("{UP} {end}")).tcp.is_half_reset();
    assert!(is_half_reset("> FA 101 301; > R 102"));
    assert!(!is_half_reset("> FA 101 301") && !is_half_reset("> R 101"));
}

#[test]
fn delays_can_be_set() {
    let over = |script: &str, delays: Delays| {
        let limits = Limits { delays, ..Limits::default() };
        // A check is triggered by a packet a nanosecond after it is due.
        (Run::with(script, limits).over() * 1_000.0).round() / 1_000.0
    };
    let secs = Interval::from_secs;
    let usual = Delays::DEFAULT;
    // An attempt without a reply.
    assert_eq!(over("> S 100", usual), 5.0);
    assert_eq!(over("> S 100", Delays { attempt: secs(2), ..usual }), 2.0);
    // Attempts do not fail: the idle timeout applies, which is shorter before a handshake.
    assert_eq!(over("> S 100", Delays { attempt: Interval::ZERO, ..usual }), 60.0);
    // Both sides closed.
    let closed = format!("{UP} @1 > FA 101 301; @2 < FA 301 102");
    assert_eq!(over(&closed, usual), 7.0);
    assert_eq!(over(&closed, Delays { close: secs(9), ..usual }), 11.0);
    assert_eq!(over(&closed, Delays { close: Interval::ZERO, ..usual }), 2.0);
    // A FIN and a RST from one side: the first check after an idle period ends the connection.
    let half = format!("{UP} @1 > FA 101 301; @1.1 > R 102");
    assert_eq!(over(&half, usual), 7.0);
    assert_eq!(over(&half, Delays { linger: secs(8), ..usual }), 11.0);
    assert_eq!(over(&half, Delays { linger: secs(2), check: secs(3), ..usual }), 4.0);
    assert_eq!(over(&half, Delays { linger: secs(2), first_check: secs(4), ..usual }), 4.0);
    // If the reset is reported, a delay after the RST ends the connection, unless the other side
    // closes before.
    let reported = Delays { reset: Some(Delays::RESET), ..usual };
    assert_eq!(over(&half, reported), 6.1);
    assert_eq!(over(&half, Delays { reset: Some(secs(1)), ..usual }), 2.1);
    assert_eq!(over(&format!("{half}; @2 < FA 301 102"), reported), 7.0);
    // The first segment of a side closes it.
    let partly = "> A 101 301 5; @1 < FA 301 106";
    assert_eq!(over(partly, usual), 301.0);
    let reported = Delays { partial_close: Some(Delays::PARTIAL_CLOSE), ..usual };
    assert_eq!(over(partly, reported), 4.0);
    assert_eq!(over(partly, Delays { partial_close: Some(secs(9)), ..usual }), 10.0);
    assert_eq!(over(&format!("{partly}; @2 > FA 106 302"), reported), 7.0);
    // The close was caused by a RST.
    let reset = "> A 101 301 5; @1 < FA 301 106; @2 > R 106";
    assert_eq!(over(reset, reported), over(reset, usual));
}

#[test]
fn the_cause_of_a_delayed_end_is_known() {
    let delays = Delays {
        reset: Some(Delays::RESET),
        partial_close: Some(Delays::PARTIAL_CLOSE),
        ..Delays::DEFAULT
    };
    let ends = |script: &str| {
        let mut run = Run::with(script, Limits { delays, ..Limits::default() });
        let at = run.tcp.due().max(time(6_500));
        assert!(run.tcp.is_over(&run.conn, at, at, &delays), "{script}");
        run.tcp.ended_after()
    };
    let half = format!("{UP} @1 > FA 101 301; @1.1 > R 102");
    assert_eq!(ends(&half), Some(Delayed::Reset));
    assert_eq!(ends("> A 101 301 5; @1 < FA 301 106"), Some(Delayed::PartialClose));
    assert_eq!(ends(&format!("{UP} @1 > FA 101 301; @1.2 < FA 301 102")), None);
}
