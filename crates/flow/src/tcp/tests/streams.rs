//! Bytes in order, gaps, limits, and arbitrary segments.

use std::fmt::Write;

use gannet_base::Dir;
use gannet_wire::TcpFlags;
use proptest::prelude::*;

use super::Run;
use super::TestSegment;
use super::UP;
use super::byte;
use super::time;
use crate::tcp::Delays;
use crate::tcp::Limits;

/// Row, weirds, and the delivered bytes of each side with `_` for gaps, checked byte by byte.
fn stream(script: &str, limits: Limits) -> (String, Vec<&'static str>, [String; 2]) {
    let run = Run::with(&format!("{UP} {script}"), limits);
    let text = [(0, 101), (1, 301)].map(|(side, start): (usize, u32)| {
        let (mut shown, mut got) = (String::new(), &run.sink.got[side][..]);
        let mut at = start;
        while let Some(&first) = got.first() {
            let gap = first == 0;
            let n = got.iter().take_while(|b| (**b == 0) == gap).count();
            if !gap {
                let right: Vec<u8> = (0..n as u32).map(|i| byte(at + i)).collect();
                assert_eq!(got[..n], right, "bytes of {script} at {at}");
            }
            write!(shown, "{}{n}", if gap { "_" } else { "+" }).unwrap();
            at += n as u32;
            got = &got[n..];
        }
        shown
    });
    (run.row(), run.sink.weirds, text)
}

#[test]
fn streams() {
    let cases: &[(&str, &str, [&str; 2])] = &[
        (
            "> A 101 301 5; > A 106 301 5; < A 301 111 7",
            "ShADd Established/Established 10/7",
            ["+10", "+7"],
        ),
        // Retransmitted, entirely or in part.
        ("> A 101 301 5; > A 101 301 5", "ShADT Established/Established 5/0", ["+5", ""]),
        ("> A 101 301 5; > A 103 301 5", "ShAD Established/Established 7/0", ["+7", ""]),
        (
            "> A 101 301 5; < A 301 106; > A 101 301 2; > A 99 301 9",
            "ShADaT Established/Established 7/0",
            ["+5", ""],
        ),
        // Out of order, with overlaps: each byte once.
        ("> A 106 301 5; > A 101 301 5", "ShADT Established/Established 10/0", ["+10", ""]),
        (
            "> A 106 301 5; > A 104 301 4; > A 101 301 20",
            "ShADT Established/Established 20/0",
            ["+20", ""],
        ),
        (
            "> A 106 301 5; > A 121 301 5; > A 101 301 6; > A 110 301 20",
            "ShADT Established/Established 29/0",
            ["+29", ""],
        ),
        // Bytes that were acknowledged but not captured are a gap, which later data does not fill.
        (
            "> A 106 301 5; < A 301 111",
            "ShADaG Established/Established 10/0 missed 5",
            ["_5+5", ""],
        ),
        (
            "> A 101 301 2; > A 106 301 5; < A 301 111; > A 101 301 9",
            "ShADaGT Established/Established 10/0 missed 3",
            ["+2_3+5", ""],
        ),
        ("< A 301 151", "ShAaG Established/Established 50/0 missed 50", ["_50", ""]),
        (
            "> A 121 301 5; < A 301 111; > A 101 301 20",
            "ShADaGT Established/Established 25/0 missed 10",
            ["_10+15", ""],
        ),
        // The tenth gap appends another letter.
        (
            "> A 103 301 1; > A 105 301 1; > A 107 301 1; > A 109 301 1; > A 111 301 1; > A 113 301 1; > A 115 301 1; > A 117 301 1; > A 119 301 1; > A 121 301 1; < A 301 122",
            "ShADaGG Established/Established 21/0 missed 11",
            ["_2+1_1+1_1+1_1+1_1+1_1+1_1+1_1+1_1+1_1+1", ""],
        ),
        // A FIN ends the stream at its sequence number, with or without data.
        ("> FA 101 301 5; < FA 301 107 2; > A 107 304", "ShAFf Closed/Closed 5/2", ["+5", "+2"]),
        (
            "> FA 106 301; < A 301 107; > A 101 301 5",
            "ShAFaGDT Closed/Established 5/0 missed 5",
            ["_5", ""],
        ),
        ("> FA 106 301; > A 101 301 5; < A 301 107", "ShAFDTa Closed/Established 5/0", ["+5", ""]),
        // Data in a RST segment does not count.
        ("> RA 101 301 5", "ShART Reset/Established 0/0", ["", ""]),
        // Windows.
        ("> A 101 301 w=0; > A 101 301 w=0", "ShAW Established/Established 0/0", ["", ""]),
        (
            "< A 301 101 w=0; > A 101 301 1; < A 301 101 w=0",
            "ShAawD Established/Established 1/0",
            ["+1", ""],
        ),
        // A payload that was not captured counts but is not delivered.
        ("> A 101 301 5 cut", "ShAD Established/Established 5/0", ["", ""]),
    ];
    let mut wrong = String::new();
    for (script, row, bytes) in cases {
        let (is, weirds, got) = stream(script, Limits::default());
        if is != *row || got != *bytes {
            writeln!(wrong, "{script}\n  is  {is:?} {got:?}\n  not {row:?} {bytes:?} {weirds:?}")
                .unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn unused_bytes_only_need_extents() {
    let mut run = Run::new(Limits::default());
    run.sink.ignores_data = true;
    run.go(&format!("{UP} > A 106 301 5; > A 121 301 5; > A 101 301 5; < A 301 126"));
    assert_eq!(run.row(), "ShADTaG Established/Established 25/0 missed 10");
}

#[test]
fn limits_of_reassembly() {
    let limits = Limits {
        above_hole_without_acks: 20,
        without_further_acks: 30,
        initial_window: 10,
        ..Limits::default()
    };
    // Nothing was acknowledged, and too much data is above a hole.
    let (row, weirds, got) = stream("> A 106 301 21; > A 101 301 5; > A 127 301 9", limits);
    assert_eq!(row, "ShADT Established/Established 35/0");
    assert_eq!(weirds, ["above_hole_data_without_any_acks"]);
    assert_eq!(got[0], "");
    // Bytes are acknowledged once, and none afterwards.
    let script = "> A 101 301 5; < A 301 106; > A 106 301 30; > A 136 301 1; > A 137 301 9";
    let (row, weirds, got) = stream(script, limits);
    assert_eq!(row, "ShADa Established/Established 45/0");
    assert_eq!(weirds, ["excessive_data_without_further_acks"]);
    assert_eq!(got[0], "+36");
    // Without any acknowledgement, delivered bytes do not count.
    let (_, weirds, got) = stream("> A 101 301 11; > A 112 301 25; > A 137 301 9", limits);
    assert_eq!((weirds, &got[0][..]), (vec![], "+45"));
}

#[test]
fn sequence_space_wraps() {
    // The last bytes before the wrap, a FIN beyond it.
    let run = Run::of(
        "> S 4294967290; < SA 4294967295 4294967291; > A 4294967291 0
         > A 4294967291 0 5; > A 0 0 5; < A 0 5 3; < FA 3 5; > FA 5 4; < A 4 6",
    );
    assert_eq!(run.row(), "ShADdfFa Closed/Closed 10/3");
    assert_eq!(run.sink.got.each_ref().map(Vec::len), [10, 3]);
    assert_eq!(run.sink.ended, [1, 1]);
    // Three rounds of the sequence space.
    let round = |start: u32| {
        let mut run = Run::of(&format!("> S {start}; < SA 300 {}", start.wrapping_add(1)));
        let mut ack = start.wrapping_add(1);
        for _ in 0..12 {
            ack = ack.wrapping_add(1 << 30);
            run.go(&format!("< A 301 {ack}"));
        }
        (run.tcp.size(Dir::Orig), run.tcp.missed_bytes(), run.sink.weirds)
    };
    assert_eq!(round(u32::MAX - 10), (12 << 30, 12 << 30, vec![]));
    // 2 GB after a start that is far from the wrap, numbers seem to be before the start.
    let (size, _, weirds) = round(100);
    assert_eq!((size, &weirds[..]), (1 << 30, &["TCP_ack_underflow_or_misorder"][..]));
}

#[test]
fn a_stream_ends_once_and_after_its_bytes() {
    // The FIN arrives before the data that precedes it.
    let mut run = Run::of(&format!("{UP} > FA 106 301"));
    assert_eq!((run.sink.ended, run.sink.closed), ([0, 0], 1));
    run.go("> A 101 301 5; > FA 106 301; < A 301 107; < FA 301 107; > A 107 302");
    // Closed above a hole, again when the hole is filled, and by the other side.
    assert_eq!((run.sink.ended, run.sink.closed), ([1, 1], 3));
    assert_eq!(run.sink.resets, 0);
    let run = Run::of(&format!("{UP} > A 101 301 5; < R 301"));
    assert_eq!((run.sink.ended, run.sink.resets), ([0, 1], 1));
    // Every reset is reported, even from a side that closed before.
    let run = Run::of(&format!("{UP} > FA 101 301; > R 102; < A 301 102 5; > R 102"));
    assert_eq!(run.sink.resets, 2);
}

fn any_segment() -> impl Strategy<Value = TestSegment> {
    let near = prop_oneof![0_u32..40, 90_u32..400, (u32::MAX - 40)..=u32::MAX, any::<u32>()];
    (
        0_i64..3_000,
        any::<bool>(),
        any::<u8>(),
        near.clone(),
        near,
        0_u32..40,
        any::<u16>(),
        any::<bool>(),
    )
        .prop_map(|(at, back, flags, seq, ack, len, window, cut)| TestSegment {
            at,
            back,
            flags: TcpFlags(flags),
            seq,
            ack,
            len,
            window,
            cut,
            scale: (window < 300).then_some(window as u8),
        })
}

/// Segments of a connection with few weirds.
fn likely_segment() -> impl Strategy<Value = TestSegment> {
    let flags = prop_oneof![20 => Just(TcpFlags::ACK), 1 => any::<u8>().prop_map(TcpFlags)];
    let numbers = prop_oneof![20 => 0_u32..60, 1 => any::<u32>()];
    let window = prop_oneof![20 => 900_u16..1_100, 1 => Just(0)];
    (any::<bool>(), flags, numbers.clone(), numbers, 0_u32..20, window, 0_u8..30).prop_map(
        |(back, flags, seq, ack, len, window, cut)| {
            let (mine, other) = if back { (301, 101) } else { (101, 301) };
            TestSegment {
                at: 0,
                back,
                flags,
                seq: seq.wrapping_add(mine),
                ack: ack.wrapping_add(other),
                len,
                window,
                scale: None,
                cut: cut == 0,
            }
        },
    )
}

proptest! {
    /// The fast path of plain segments has the same results as the general path.
    #[test]
    fn plain_segments_equal_the_general_path(
        begun in prop::sample::select(vec![UP, "> A 101 301 1", "< A 301 101 5; > A 101 306 0", "> S 100"]),
        segments in proptest::collection::vec(likely_segment(), 1..80),
    ) {
        let limits = Limits { above_hole_without_acks: 30, without_further_acks: 60, initial_window: 20, ..Limits::default() };
        let mut runs = [Run::with(begun, limits), Run::with(begun, limits)];
        runs[1].general_path = true;
        let [plain, any] = &mut runs;
        for s in &segments {
            plain.step(s);
            any.step(s);
            prop_assert_eq!(&plain.tcp, &any.tcp);
            prop_assert_eq!(format!("{:?}", plain.conn), format!("{:?}", any.conn));
        }
        prop_assert_eq!(&plain.sink, &any.sink);
    }

    /// Checks that find nothing can be skipped.
    #[test]
    fn quiet_checks_can_be_skipped(
        partial in any::<bool>(),
        segments in proptest::collection::vec((likely_segment(), 0_i64..20_000), 1..60),
    ) {
        let script = if partial { "> A 101 301 1" } else { UP };
        let (mut made, mut passed) = (Run::of(script), Run::of(script));
        let mut at = 0;
        for (mut s, later) in segments {
            at += later;
            s.at = at;
            let now = time(at);
            // All checks up to this time, one after the other.
            let mut over = None;
            while over.is_none() && made.tcp.due() <= now {
                let due = made.tcp.due();
                over = made.tcp.is_over(&made.conn, due, due, &Delays::DEFAULT).then_some(due);
            }
            // Only the checks that may find something.
            let mut found = None;
            while found.is_none() && !passed.quiet && passed.tcp.due() <= now {
                let due = passed.tcp.due();
                found = passed.tcp.is_over(&passed.conn, due, due, &Delays::DEFAULT).then_some(due);
                passed.quiet = passed.tcp.is_quiet(&passed.conn, due);
            }
            prop_assert_eq!(over, found);
            if over.is_some() {
                return Ok(());
            }
            passed.tcp.pass_checks(&passed.conn, now, &Delays::DEFAULT);
            prop_assert_eq!(&made.tcp, &passed.tcp);
            made.step(&s);
            passed.step(&s);
            passed.quiet = passed.tcp.is_quiet(&passed.conn, now);
        }
    }

    /// For arbitrary segments and clocks that go back: no panic, a stream ends at most once, and
    /// the connection ends at some time.
    #[test]
    fn any_segments(segments in proptest::collection::vec(any_segment(), 1..80)) {
        let mut run = Run::new(Limits { above_hole_without_acks: 30, without_further_acks: 60, initial_window: 20, ..Limits::default() });
        for s in &segments {
            run.step(s);
        }
        let connections = run.reused.len() as u32 + 1;
        prop_assert!(run.sink.ended.iter().all(|n| *n <= connections));
        prop_assert!(run.over() < 10_000.0);
    }

    /// Pieces of one stream in any order, some retransmitted, overlapping and acknowledged before
    /// they arrive: every byte is delivered at most once, in order and with the right value, and
    /// missing bytes are gaps.
    #[test]
    fn each_byte_once_and_in_order(
        start in prop_oneof![Just(100_u32), Just(u32::MAX - 30)],
        pieces in proptest::collection::vec((0_u32..90, 0_u32..20, any::<bool>()), 1..60),
    ) {
        let first = start.wrapping_add(1);
        let mut run = Run::of(&format!("> S {start}; < SA 300 {first}; > A {first} 301"));
        for (at, len, is_ack) in pieces {
            let seq = first.wrapping_add(at);
            run.step(&if is_ack {
                TestSegment { back: true, flags: TcpFlags::ACK, seq: 301, ack: seq, window: 9, ..TestSegment::default() }
            } else {
                TestSegment { flags: TcpFlags::ACK, seq, ack: 301, len, window: 9, ..TestSegment::default() }
            });
        }
        let missing = run.sink.gaps[0].iter().sum::<u64>();
        prop_assert_eq!(run.tcp.missed_bytes(), missing);
        let got = &run.sink.got[0];
        prop_assert!(got.len() as u64 <= run.tcp.size(Dir::Orig));
        let zeros = got.iter().filter(|b| **b == 0).count() as u64;
        prop_assert_eq!(zeros, missing);
        for (i, b) in (0..).zip(got) {
            prop_assert!(*b == 0 || *b == byte(first.wrapping_add(i)), "byte {}", i);
        }
    }
}
