//! Connections written as scripts of segments.
//!
//! A script has one segment per line (or separated by semicolons): `> FLAGS SEQ [ACK [LEN]]` from
//! the first host to the second, `<` for the reverse direction. `@S` before a segment sets the time
//! in seconds, `w=N` after it the window, `ws=N` the window scale option; `cut` marks its payload
//! as not captured.

mod states;
mod steps;
mod streams;

use std::fmt::Write;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::UidSource;
use gannet_wire as wire;
use gannet_wire::TcpFlags;

use super::Consumer;
use super::Delays;
use super::Limits;
use super::State;
use super::Syn;
use super::Tcp;
use crate::Conn;

/// Records the reports, by the host that sent the segment (not by its role, which a flip changes).
#[derive(Debug, Default, PartialEq, Eq)]
struct Sink {
    got: [Vec<u8>; 2],
    gaps: [Vec<u64>; 2],
    ended: [u32; 2],
    closed: u32,
    resets: u32,
    weirds: Vec<&'static str>,
    established: Vec<State>,
    ignores_data: bool,
}

fn host(conn: &Conn, from: Dir) -> usize {
    let sender = if from.is_orig() { conn.id.orig_h } else { conn.id.resp_h };
    usize::from(sender != HOSTS[0])
}

impl Consumer for Sink {
    fn data(&mut self, conn: &mut Conn, from: Dir, data: &[u8]) {
        assert!(!data.is_empty());
        self.got[host(conn, from)].extend_from_slice(data);
    }
    fn gap(&mut self, conn: &mut Conn, from: Dir, _at: u64, len: u64) {
        let from = host(conn, from);
        self.gaps[from].push(len);
        if len < 1_000_000 {
            self.got[from].extend(std::iter::repeat_n(0, len as usize));
        }
    }
    fn end(&mut self, conn: &mut Conn, from: Dir) {
        self.ended[host(conn, from)] += 1;
    }
    fn closed(&mut self, _: &mut Conn) {
        self.closed += 1;
    }
    fn reset(&mut self, _: &mut Conn) {
        self.resets += 1;
    }
    fn flipped(&mut self, _: &mut Conn) {}
    fn weird(&mut self, conn: &mut Conn, name: &'static str, _: &str, _: &'static str) {
        conn.set_weird();
        if self.weirds.last() != Some(&name) {
            self.weirds.push(name);
        }
    }
    fn established(&mut self, _: &mut Conn, states: [State; 2]) {
        self.established.push(states[0]);
    }
    fn wants_data(&self) -> bool {
        !self.ignores_data
    }
}

const HOSTS: [Addr; 2] = [Addr::v4([10, 0, 0, 1]), Addr::v4([10, 0, 0, 2])];

/// The handshake with which many scripts begin.
const UP: &str = "> S 100; < SA 300 101; > A 101 301;";

/// The payload byte at a sequence number; never 0, which marks gaps.
fn byte(seq: u32) -> u8 {
    (seq % 251) as u8 + 1
}

/// One segment of a script.
#[derive(Clone, Debug, Default)]
struct TestSegment {
    /// Milliseconds.
    at: i64,
    back: bool,
    flags: TcpFlags,
    seq: u32,
    ack: u32,
    len: u32,
    window: u16,
    scale: Option<u8>,
    cut: bool,
}

fn parse(line: &str, at: &mut i64) -> TestSegment {
    let mut t = TestSegment { window: 1_000, ..TestSegment::default() };
    let mut numbers = [0; 3];
    let mut n = 0;
    for word in line.split_whitespace() {
        if let Some(s) = word.strip_prefix('@') {
            *at = (s.parse::<f64>().unwrap() * 1_000.0) as i64;
        } else if let Some(w) = word.strip_prefix("ws=") {
            t.scale = Some(w.parse().unwrap());
        } else if let Some(w) = word.strip_prefix("w=") {
            t.window = w.parse().unwrap();
        } else if word == "cut" {
            t.cut = true;
        } else if let "<" | ">" = word {
            t.back = word == "<";
        } else if let Ok(number) = word.parse() {
            numbers[n] = number;
            n += 1;
        } else {
            for c in word.chars() {
                t.flags = t.flags
                    | match c {
                        'S' => TcpFlags::SYN,
                        'A' => TcpFlags::ACK,
                        'F' => TcpFlags::FIN,
                        'R' => TcpFlags::RST,
                        'U' => TcpFlags::URG,
                        _ => panic!("flag {c}"),
                    };
            }
        }
    }
    [t.seq, t.ack, t.len] = numbers;
    t.at = *at;
    t
}

struct Run {
    conn: Conn,
    tcp: Tcp,
    sink: Sink,
    limits: Limits,
    begun: bool,
    /// Rows of connections that were replaced by others.
    reused: Vec<String>,
    /// Number of times that the connection was packed.
    packed: u32,
    /// Whether to use the general path for plain segments.
    general_path: bool,
    /// Whether checks for inactivity are currently skipped.
    quiet: bool,
}

fn time(ms: i64) -> Time {
    Time::from_secs(1_000) + Interval::from_millis(ms)
}

fn begin(ms: i64, delays: &Delays) -> (Conn, Tcp) {
    let id = ConnId { orig_h: HOSTS[0], orig_p: 1_024, resp_h: HOSTS[1], resp_p: 80 };
    let uid = UidSource::new(0).connection(1, 0);
    (Conn::new(uid, id, Proto::Tcp, 6, time(ms)), Tcp::new(time(ms), delays))
}

impl Run {
    fn new(limits: Limits) -> Self {
        let (conn, tcp) = begin(0, &limits.delays);
        Self {
            conn,
            tcp,
            sink: Sink::default(),
            limits,
            begun: false,
            reused: Vec::new(),
            packed: 0,
            general_path: false,
            quiet: false,
        }
    }

    fn of(script: &str) -> Self {
        Self::with(script, Limits::default())
    }

    fn with(script: &str, limits: Limits) -> Self {
        let mut run = Self::new(limits);
        run.go(script);
        run
    }

    fn go(&mut self, script: &str) {
        let mut at = (self.conn.last - time(0)).as_nanos() / 1_000_000;
        for line in script.split([';', '\n']).filter(|l| !l.trim().is_empty()) {
            self.step(&parse(line, &mut at));
        }
    }

    fn step(&mut self, t: &TestSegment) {
        let data: Vec<u8> = (0..t.len).map(|i| byte(t.seq.wrapping_add(i))).collect();
        let options = t.scale.map(|s| [3, 3, s]);
        let segment = wire::Tcp {
            seq: t.seq,
            ack: t.ack,
            flags: t.flags,
            window: t.window,
            options: options.as_ref().map_or(&[], |o| &o[..]),
            payload: if t.cut { &[] } else { &data },
            payload_len: t.len,
            ..wire::Tcp::default()
        };
        let now = time(t.at);
        let Self { conn, tcp, sink, limits, .. } = self;
        let again = self.begun && tcp.is_reuse(conn, now, &segment, &limits.delays, sink);
        if again || !self.begun {
            if again {
                self.reused.push(self.row());
            }
            (self.conn, self.tcp) = begin(t.at, &self.limits.delays);
            if t.back {
                self.conn.id = self.conn.id.flipped();
            }
            self.begun = true;
        }
        let sender = HOSTS[usize::from(t.back)];
        let from = if self.conn.id.orig_h == sender { Dir::Orig } else { Dir::Resp };
        let (conn, sink, limits) = (&mut self.conn, &mut self.sink, &self.limits);
        let from = if self.general_path {
            self.tcp.any_segment(conn, now, from, &segment, limits, sink)
        } else {
            self.tcp.segment(conn, now, from, &segment, limits, sink)
        };
        self.conn.count_packet(from, 40);
        // Packing a connection between packets has no visible effect.
        if let Some(syn) = Syn::from_connection(&self.tcp, &self.conn) {
            self.packed += 1;
            self.tcp = syn.unpacked(&self.conn);
        }
    }

    /// History, states and sizes.
    fn row(&self) -> String {
        let mut row = String::from_utf8(self.conn.history.as_bytes().to_vec()).unwrap();
        let (o, r) = (self.tcp.endpoint(Dir::Orig).state, self.tcp.endpoint(Dir::Resp).state);
        let (os, rs) = (self.tcp.size(Dir::Orig), self.tcp.size(Dir::Resp));
        write!(row, " {o:?}/{r:?} {os}/{rs}").unwrap();
        if self.tcp.missed_bytes() > 0 {
            write!(row, " missed {}", self.tcp.missed_bytes()).unwrap();
        }
        row
    }

    /// Seconds after which the connection is removed if no segment follows.
    fn over(&mut self) -> f64 {
        for _ in 0..1_000 {
            let idle = self.conn.last + self.conn.timeout();
            let due = idle.min(self.tcp.due());
            // Packets of other connections arrive all the time.
            let packet = due + Interval::from_nanos(1);
            if self.tcp.is_over(&self.conn, due, packet, &self.limits.delays) || idle <= due {
                return (due - time(0)).as_nanos() as f64 / 1e9;
            }
        }
        panic!("it stays for ever");
    }
}
