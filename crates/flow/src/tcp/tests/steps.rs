//! The calls that an observing consumer receives, and their order.

use gannet_base::Dir;
use gannet_wire as wire;
use gannet_wire::TcpFlags;

use super::begin;
use super::byte;
use super::parse;
use super::time;
use crate::Conn;
use crate::tcp::Consumer;
use crate::tcp::Delays;
use crate::tcp::Limits;
use crate::tcp::State;
use crate::tcp::Step;
use crate::tcp::View;

/// Records steps and data, in order.
#[derive(Default)]
struct Steps {
    seen: Vec<String>,
    view: Option<View>,
    /// Weirds, each with the sizes of both sides that were observed before.
    weirds: Vec<(&'static str, Option<[u64; 2]>)>,
}

impl Consumer for Steps {
    fn data(&mut self, _: &mut Conn, _: Dir, data: &[u8]) {
        self.seen.push(format!("data {}", data.len()));
    }
    fn gap(&mut self, _: &mut Conn, _: Dir, _: u64, _: u64) {}
    fn end(&mut self, _: &mut Conn, _: Dir) {}
    fn reset(&mut self, _: &mut Conn) {}
    fn flipped(&mut self, _: &mut Conn) {
        self.seen.push(format!("flipped {:?}", self.view.unwrap().states));
    }
    fn weird(&mut self, _: &mut Conn, name: &'static str, _: &str, _: &'static str) {
        self.weirds.push((name, self.view.map(|view| view.sizes)));
    }
    fn established(&mut self, _: &mut Conn, _: [State; 2]) {
        self.seen.push("established".to_owned());
    }
    fn observes(&self) -> bool {
        true
    }
    fn observe(&mut self, view: &View) {
        self.view = Some(*view);
    }
    fn step(&mut self, conn: &mut Conn, step: &Step<'_>) {
        let history = String::from_utf8_lossy(conn.history.as_bytes()).into_owned();
        self.seen.push(match step {
            Step::Syn => format!("syn {history}"),
            Step::Segment { seq, ack, segment, .. } => {
                format!("{seq}+{} {ack}", segment.payload_len)
            }
            Step::Reset | Step::Rejected => format!("{step:?} {:?}", self.view.unwrap().states),
            _ => format!("{step:?}"),
        });
    }
    fn compares(&self) -> bool {
        true
    }
    fn differ(&mut self, _: &mut Conn, first: &[u8], again: &[u8], flags: u8) {
        let [first, again] = [first, again].map(String::from_utf8_lossy);
        self.seen.push(format!("{flags}: {first} {again}"));
    }
    fn wants_data(&self) -> bool {
        true
    }
}

fn steps(script: &str) -> Vec<String> {
    run(script).seen
}

fn run(script: &str) -> Steps {
    let (mut conn, mut tcp) = begin(0, &Delays::DEFAULT);
    let (mut steps, mut at) = (Steps::default(), 0);
    for line in script.split(';') {
        let t = parse(line, &mut at);
        let data: Vec<u8> = (0..t.len).map(|i| byte(t.seq.wrapping_add(i))).collect();
        let segment = wire::Tcp {
            seq: t.seq,
            ack: t.ack,
            flags: t.flags,
            window: t.window,
            payload: &data,
            payload_len: t.len,
            ..wire::Tcp::default()
        };
        let from = if t.back { Dir::Resp } else { Dir::Orig };
        // Observations of earlier segments do not count.
        steps.view = None;
        tcp.segment(&mut conn, time(t.at), from, &segment, &Limits::default(), &mut steps);
        assert_eq!(steps.view, Some(tcp.view()), "after {line}");
    }
    steps
}

#[test]
fn weirds_show_the_state_before_their_segment() {
    let begin = "> S 100; < SA 300 101; > A 101 301; > A 101 301 5; < A 301 106 7";
    let of = |rest: &str| run(&format!("{begin}; {rest}")).weirds;
    assert_eq!(of("> A 106 308"), []);
    let one_weird = |name| [(name, Some([5, 7]))];
    assert_eq!(of("> A 106 200 3"), one_weird("TCP_ack_underflow_or_misorder"));
    assert_eq!(of("> A 50 308 3"), one_weird("TCP_seq_underflow_or_misorder"));
    assert_eq!(of("> A 106 308 3 w=10"), one_weird("window_recision"));
}

#[test]
fn a_whole_connection() {
    let script = "> S 100; < SA 300 101; > A 101 301; > A 101 301 5; < A 301 106 7; > FA 106 308; < FA 308 107";
    assert_eq!(
        steps(script),
        [
            "syn S",
            "0+0 0",
            "syn Sh",
            "established",
            "0+0 1",
            "FirstAck",
            "1+0 1",
            "1+5 1",
            "data 5",
            "1+7 6",
            "data 7",
            "6+0 8",
            "End(Orig)",
            "8+0 7",
            "End(Resp)",
            "Finished { half: false }",
        ]
    );
}

#[test]
fn repeated_events_are_steps() {
    let mut script = "> S 100; < SA 300 101; > A 101 301; > A 101 301 5".to_owned();
    for _ in 0..10 {
        script.push_str("; > A 101 301 5; < A 301 106 0 w=0");
    }
    let mut all = steps(&script);
    all.retain(|step| step.starts_with("Repeated"));
    let step =
        |what, from, times| format!("Repeated {{ what: {what}, from: {from}, times: {times} }}");
    assert_eq!(
        all,
        [
            step("Retransmission", "Orig", 1),
            step("ZeroWindow", "Resp", 1),
            step("Retransmission", "Orig", 10),
            step("ZeroWindow", "Resp", 10),
        ]
    );
}

#[test]
fn resets_and_half_seen_ends() {
    let of = |script| {
        let mut all = steps(script);
        all.retain(|step| {
            !step.starts_with(|c: char| c.is_ascii_digit()) && !step.starts_with("syn")
        });
        all
    };
    assert_eq!(of("> S 100; < RA 0 101"), ["Rejected [SynSent, Reset]", "End(Resp)"]);
    assert_eq!(
        of("> S 100; < SA 300 101; > A 101 301; > R 101"),
        ["established", "FirstAck", "Reset [Reset, Established]", "End(Orig)"]
    );
    // Both sides of a connection whose handshake was not seen.
    assert_eq!(of("> A 101 301 5; < A 301 106 5"), ["data 5", "Partial", "data 5"]);
    // Only one side finishes.
    assert_eq!(of("> S 100; > FA 101 301"), ["FirstAck", "End(Orig)", "Finished { half: true }"]);
}

#[test]
fn exchanged_roles_show_exchanged_states() {
    let all = steps("> SA 300 101; < A 101 301");
    assert!(all.contains(&"flipped [Inactive, SynAckSent]".to_owned()), "{all:?}");
}

/// The segments whose bytes differ from those first sent.
fn differences(segments: &[(Dir, u32, u32, &[u8])]) -> Vec<String> {
    let (mut conn, mut tcp) = begin(0, &Delays::DEFAULT);
    let mut steps = Steps::default();
    for &(from, seq, ack, payload) in segments {
        let (flags, window, payload_len) = (TcpFlags::ACK, 1_000, payload.len() as u32);
        let segment =
            wire::Tcp { seq, ack, flags, window, payload, payload_len, ..wire::Tcp::default() };
        tcp.segment(&mut conn, time(0), from, &segment, &Limits::default(), &mut steps);
    }
    steps.seen.retain(|step| step.starts_with("16:"));
    steps.seen
}

#[test]
fn bytes_are_compared_until_they_are_acknowledged() {
    let (orig, resp) = (Dir::Orig, Dir::Resp);
    let got = differences(&[
        (orig, 101, 301, b"hello world"),
        (resp, 301, 101, b"x"),
        // Above a hole as well.
        (orig, 118, 302, b"end"),
        (orig, 107, 302, b"WORLD again End"),
        (resp, 302, 112, b""),
        (orig, 101, 302, b"HELLO world AGAIN"),
        (resp, 302, 121, b""),
        (orig, 107, 302, b"-----------end"),
    ]);
    assert_eq!(got, ["16: world WORLD", "16: end  En", "16:  again  AGAIN"]);
}

#[test]
fn keep_alives_without_anything_else_do_not_differ() {
    let (orig, resp) = (Dir::Orig, Dir::Resp);
    let (one, other) = (&b"\0"[..], &b"x"[..]);
    assert_eq!(differences(&[(orig, 101, 301, one), (orig, 101, 301, other)]), [""; 0]);
    let answered = [(orig, 101, 301, one), (resp, 301, 101, b""), (orig, 101, 301, other)];
    assert_eq!(differences(&answered), ["16: \0 x"]);
    assert_eq!(differences(&[(orig, 101, 301, b"ab"), (orig, 101, 301, b"ac")]), ["16: ab ac"]);
}
