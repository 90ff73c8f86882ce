//! Comparison of the answers of a run with those in the capture, or with those of a second server.
//!
//! Every query of a run has a number. An [`Observer`] sends each answer with that number to the
//! [`Comparer`], which waits for the other side's answer and compares both field by field. A second
//! server receives the same queries at the same time in a second run, so that changes over time do
//! not show as differences.

mod message;
mod pairs;
mod servers;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::SyncSender;

use foldhash::fast::RandomState;

use crate::Error;
use crate::Live;
use crate::Options;
use crate::Report;
use crate::Target;
use crate::TargetError;
use crate::block::Origin;
use crate::json;
use crate::message::rcode_name;
use crate::run::observed;
use crate::target;

use message::Parsed;
use message::Record;
pub(crate) use pairs::Pairs;

/// Capacity of the queue of answers to compare; observers wait while it is full.
const QUEUE_CAPACITY: usize = 1 << 14;
/// Maximum number of answers that wait for the other side's; beyond it, all waiting answers count
/// as answered by one side only.
const MAX_WAITING: usize = 1 << 18;
/// Nanoseconds per second.
const SECOND: i64 = 1_000_000_000;
/// Names of the flags (RFC 1035 §4.1.1, RFC 4035 §3.2), the highest bit first.
const FLAGS: [(u16, &str); 8] = [
    (0x8000, "QR"),
    (0x0400, "AA"),
    (0x0200, "TC"),
    (0x0100, "RD"),
    (0x0080, "RA"),
    (0x0040, "Z"),
    (0x0020, "AD"),
    (0x0010, "CD"),
];

/// Fields in which answers can differ, in the order of a report.
pub const FIELDS: [&str; 9] = [
    "opcode",
    "flags",
    "rcode",
    "edns",
    "question",
    "answer",
    "authority",
    "additional",
    "malformed",
];

/// The answers to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceAnswers {
    /// The answers in the capture.
    Capture,
    /// The answers of a second server.
    Server {
        /// Its address.
        address: SocketAddr,
        /// Its name in the certificate.
        name: String,
    },
}

impl ReferenceAnswers {
    /// Parses `capture`, or a server as in [`Target::parse`]; the port is `port` unless given.
    ///
    /// # Errors
    /// As for [`Target::parse`].
    pub fn parse(text: &str, port: u16, may_be_public: bool) -> Result<Self, TargetError> {
        if text == "capture" {
            return Ok(Self::Capture);
        }
        let address = Target::with_port(text, port, may_be_public)?.address();
        Ok(Self::Server { address, name: target::host(text).to_owned() })
    }
}

/// The fields that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Whether times to live are compared.
    ttl: bool,
    /// Bit set of ignored fields, in the order of [`FIELDS`].
    ignored: u16,
}

impl Fields {
    /// All fields; times to live only if `ttl` is set.
    pub fn new(ttl: bool) -> Self {
        Self { ttl, ignored: 0 }
    }

    /// Ignores a field.
    ///
    /// # Errors
    /// If no field has that name.
    pub fn ignore(&mut self, name: &str) -> Result<(), FieldError> {
        let index = FIELDS.iter().position(|f| *f == name);
        self.ignored |= 1 << index.ok_or_else(|| FieldError(name.to_owned()))?;
        Ok(())
    }

    fn counts(self, index: usize) -> bool {
        self.ignored & 1 << index == 0
    }
}

/// The error for a text that is not the name of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a field; the fields are {fields}", fields = FIELDS.join(", "))]
pub struct FieldError(String);

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Queries that both sides answered.
    pub pairs: u64,
    /// Those of them whose answers are equal.
    pub same: u64,
    /// Queries that only the target answered.
    pub only_target: u64,
    /// Queries that only the other side answered.
    pub only_other: u64,
    /// Answers that no longer waited for the other side because of the limit on waiting answers;
    /// included in the two counts above.
    pub given_up: u64,
    /// Number of pairs that differ in each of the [`FIELDS`].
    pub fields: [u64; FIELDS.len()],
    /// The report of the second server's run.
    pub other: Option<Box<Report>>,
}

impl Compared {
    /// The result as text, to follow the table of the target's report.
    pub fn table(&self, target: &Report) -> String {
        let mut out = String::new();
        let share = 100.0 * self.same as f64 / self.pairs.max(1) as f64;
        let different = self.pairs - self.same;
        let mut line = |name: &str, count: u64, what: &str| {
            // Writing to a string cannot fail.
            writeln!(out, "  {name:<11} {count:>12}      {what}").unwrap_or_default();
        };
        line("compared", self.pairs, "queries that both sides answered");
        line("same", self.same, &format!("{share:.2} %"));
        line("different", different, "");
        for (field, count) in FIELDS.iter().zip(self.fields).filter(|(_, n)| *n > 0) {
            line(&format!("  {field}"), count, "differ in it");
        }
        line("only target", self.only_target, "answered by it alone");
        line("only other", self.only_other, "answered by the other side alone");
        if self.given_up > 0 {
            let what = format!("of these, not compared: more than {MAX_WAITING} waited");
            line("given up", self.given_up, &what);
        }
        let mut out: String = out.lines().map(|l| format!("{}\n", l.trim_end())).collect();
        if let Some(other) = self.other.as_deref() {
            out.push_str(&servers::table([target, other]));
        }
        out
    }

    /// The result as a JSON object on one line; `target` is the report of the target.
    pub fn json(&self, target: &Report) -> String {
        let mut out = format!(
            "{{\"type\":\"comparison\",\"compared\":{},\"same\":{},\"only_target\":{},\
             \"only_other\":{},\"given_up\":{},\"fields\":{{",
            self.pairs, self.same, self.only_target, self.only_other, self.given_up
        );
        let mut comma = "";
        for (field, count) in FIELDS.iter().zip(self.fields).filter(|(_, n)| *n > 0) {
            write!(out, "{comma}\"{field}\":{count}").unwrap_or_default();
            comma = ",";
        }
        out.push('}');
        if let Some(other) = self.other.as_deref() {
            out.push_str(",\"servers\":");
            servers::json([target, other], &mut out).unwrap_or_default();
        }
        out.push_str("}\n");
        out
    }
}

/// The side that answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Target,
    Other,
}

/// An answer to the query with this origin.
struct Answer {
    side: Side,
    origin: Origin,
    bytes: Box<[u8]>,
}

/// Passes the answers of one side to the [`Comparer`].
#[derive(Clone)]
pub(crate) struct Observer {
    side: Side,
    to: SyncSender<Answer>,
}

impl Observer {
    /// Passes on the answer to the query with this origin.
    pub(crate) fn answered(&self, origin: Origin, answer: &[u8]) {
        // Sending fails only if the comparer has ended.
        self.to.send(Answer { side: self.side, origin, bytes: answer.into() }).unwrap_or_default();
    }
}

/// Sends all queries as [`run`](crate::run()) does, and compares the answers. Each difference is
/// written to `lines` as a JSON object on one line.
///
/// # Errors
/// Those of [`run`](crate::run()), and failures to write `lines`.
pub fn compare(
    options: &Options,
    against: &ReferenceAnswers,
    fields: Fields,
    (stop, live): (&AtomicBool, &Live),
    lines: &mut (dyn Write + Send),
) -> Result<(Report, Compared), Error> {
    let (to, answers) = mpsc::sync_channel(QUEUE_CAPACITY);
    let observer = Observer { side: Side::Target, to: to.clone() };
    let other = Observer { side: Side::Other, to };
    let unit = if options.input.is_capture() { Unit::Packet } else { Unit::Line };
    let mut comparer = Comparer::new(fields, unit, lines);
    let second = match against {
        ReferenceAnswers::Capture => None,
        ReferenceAnswers::Server { address, name } => {
            let tls = options.tls.as_ref().map(|tls| tls.for_server(name)).transpose()?;
            Some(Options { target: *address, tls, ..options.clone() })
        }
    };
    std::thread::scope(|scope| {
        let comparing = scope.spawn(move || comparer.run(&answers));
        let second = second.as_ref().map(|options| {
            let other = other.clone();
            scope.spawn(move || observed(options, stop, &Live::default(), Some(&other), None))
        });
        let capture = (*against == ReferenceAnswers::Capture).then_some(&other);
        let report = observed(options, stop, live, Some(&observer), capture);
        let second = second.map(join).transpose();
        drop((observer, other));
        let mut compared =
            join(comparing).map_err(|error| Error::System { what: "differences", error })?;
        compared.other = second?.map(Box::new);
        Ok((report?, compared))
    })
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The unit of the input of a run, which [`Origin::packet`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Packet,
    Line,
}

/// Matches the answers of both sides by query, and compares them.
struct Comparer<'a> {
    fields: Fields,
    unit: Unit,
    waiting: HashMap<u64, Answer, RandomState>,
    /// Maximum number of waiting answers.
    max_waiting: usize,
    compared: Compared,
    lines: &'a mut (dyn Write + Send),
}

impl<'a> Comparer<'a> {
    fn new(fields: Fields, unit: Unit, lines: &'a mut (dyn Write + Send)) -> Self {
        Self {
            fields,
            unit,
            waiting: HashMap::default(),
            max_waiting: MAX_WAITING,
            compared: Compared::default(),
            lines,
        }
    }

    fn run(&mut self, answers: &Receiver<Answer>) -> io::Result<Compared> {
        let mut written = Ok(());
        // Drains the queue even after an error, so that observers do not wait for a comparer that
        // has ended.
        for answer in answers {
            let Answer { origin, .. } = answer;
            match self.waiting.remove(&origin.number) {
                Some(first) if first.side != answer.side => {
                    let (target, other) = match answer.side {
                        Side::Target => (&answer, &first),
                        Side::Other => (&first, &answer),
                    };
                    let line = self.pair(origin, &target.bytes, &other.bytes);
                    if let Some(line) = line.filter(|_| written.is_ok()) {
                        written = self.lines.write_all(line.as_bytes());
                    }
                }
                _ => {
                    if self.waiting.len() >= self.max_waiting {
                        self.compared.given_up += self.waiting.len() as u64;
                        self.give_up();
                    }
                    self.waiting.insert(origin.number, answer);
                }
            }
        }
        self.give_up();
        written.and_then(|()| self.lines.flush()).map(|()| std::mem::take(&mut self.compared))
    }

    /// Counts all waiting answers as answered by one side only.
    fn give_up(&mut self) {
        for (_, answer) in self.waiting.drain() {
            match answer.side {
                Side::Target => self.compared.only_target += 1,
                Side::Other => self.compared.only_other += 1,
            }
        }
    }

    /// Compares two answers; returns the differences as a line.
    fn pair(&mut self, origin: Origin, target: &[u8], other: &[u8]) -> Option<String> {
        self.compared.pairs += 1;
        let (a, b) = (Parsed::of(target, self.fields.ttl), Parsed::of(other, self.fields.ttl));
        let different = self.differences(&a, &b);
        if !different.contains(&true) {
            self.compared.same += 1;
            return None;
        }
        for (count, _) in self.compared.fields.iter_mut().zip(different).filter(|(_, d)| *d) {
            *count += 1;
        }
        Some(describe(origin, self.unit, &a, &b, different))
    }

    fn differences(&self, a: &Parsed, b: &Parsed) -> [bool; FIELDS.len()] {
        let mut different = [
            (a.flags ^ b.flags) & 0x7800 != 0,
            (a.flags ^ b.flags) & !0x7800 != 0,
            a.rcode != b.rcode,
            a.edns != b.edns,
            a.questions != b.questions,
            a.sections[0] != b.sections[0],
            a.sections[1] != b.sections[1],
            a.sections[2] != b.sections[2],
            a.is_complete != b.is_complete,
        ];
        for (index, different) in different.iter_mut().enumerate() {
            *different &= self.fields.counts(index);
        }
        different
    }
}

/// Describes the differences of two answers as a line; each difference is a pair of the target's
/// and the other side's value.
fn describe(
    origin: Origin,
    unit: Unit,
    a: &Parsed,
    b: &Parsed,
    different: [bool; FIELDS.len()],
) -> String {
    let Origin { number, packet, time } = origin;
    let mut out = format!("{{\"query\":{number},");
    // Writing to a string cannot fail.
    match unit {
        Unit::Packet => {
            let (seconds, rest) = (time.div_euclid(SECOND), time.rem_euclid(SECOND));
            write!(out, "\"packet\":{packet},\"time\":{seconds}.{rest:09}").unwrap_or_default();
        }
        Unit::Line => write!(out, "\"line\":{packet}").unwrap_or_default(),
    }
    out.push_str(",\"question\":");
    let question = a.questions.first().or(b.questions.first());
    json::text(&question.map(Record::text).unwrap_or_default(), &mut out).unwrap_or_default();
    for (index, name) in FIELDS.iter().enumerate().filter(|(index, _)| different[*index]) {
        let name = if *name == "question" { "questions" } else { name };
        write!(out, ",\"{name}\":[").unwrap_or_default();
        for (side, parsed, unlike) in [("", a, b), (",", b, a)] {
            out.push_str(side);
            value(index, parsed, unlike, &mut out).unwrap_or_default();
        }
        out.push(']');
    }
    out.push_str("}\n");
    out
}

/// One side's value of a field; for sets, only the records that the other side lacks.
fn value(index: usize, p: &Parsed, other: &Parsed, out: &mut String) -> std::fmt::Result {
    match index {
        0 => write!(out, "{}", p.flags >> 11 & 15),
        1 => {
            let names = FLAGS.iter().filter(|(bit, _)| p.flags & bit != 0).map(|(_, name)| *name);
            write!(out, "\"{}\"", names.collect::<Vec<_>>().join(" "))
        }
        2 if p.rcode < 16 => write!(out, "\"{}\"", rcode_name(usize::from(p.rcode))),
        2 => write!(out, "\"RCODE{}\"", p.rcode),
        3 => match p.edns {
            Some((version, flags)) => write!(out, "\"version {version}, flags {flags:#06x}\""),
            None => out.write_str("null"),
        },
        4 => set(&p.questions, &other.questions, out),
        5..=7 => set(&p.sections[index - 5], &other.sections[index - 5], out),
        _ => write!(out, "{}", !p.is_complete),
    }
}

fn set(
    records: &std::collections::BTreeSet<Record>,
    other: &std::collections::BTreeSet<Record>,
    out: &mut String,
) -> std::fmt::Result {
    out.push('[');
    for (index, record) in records.difference(other).enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        json::text(&record.text(), out)?;
    }
    out.push(']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with a response code and an address that ends in `host`.
    fn answer(rcode: u8, ttl: u8, host: u8) -> Vec<u8> {
        let mut m = b"\0\x01\x81\0\0\x01\0\x01\0\0\0\0\x01a\0\0\x01\0\x01".to_vec();
        m[3] = rcode;
        m.extend_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0");
        m.extend_from_slice(&[ttl, 0, 4, 192, 0, 2, host]);
        m
    }

    fn compared(fields: Fields, pairs: &[(Vec<u8>, Vec<u8>)]) -> (Compared, String) {
        let (to, answers) = mpsc::sync_channel(64);
        let mut lines = Vec::new();
        for (number, (target, other)) in pairs.iter().enumerate() {
            let number = number as u64;
            let time = 1_700_000_000_000_000_005 + number as i64 * SECOND;
            let origin = Origin { number, packet: 10 + number, time };
            for (side, bytes) in [(Side::Other, other), (Side::Target, target)] {
                let observer = Observer { side, to: to.clone() };
                if !bytes.is_empty() {
                    observer.answered(origin, bytes);
                }
            }
        }
        drop(to);
        let compared = Comparer::new(fields, Unit::Packet, &mut lines).run(&answers).unwrap();
        (compared, String::from_utf8(lines).unwrap())
    }

    #[test]
    fn answers_are_compared_field_by_field() {
        let pairs = [
            (answer(0, 1, 1), answer(0, 2, 1)),
            (answer(0, 1, 1), answer(3, 1, 2)),
            (answer(0, 1, 1), vec![]),
            (vec![], answer(0, 1, 1)),
        ];
        let (c, lines) = compared(Fields::default(), &pairs);
        assert_eq!((c.pairs, c.same, c.only_target, c.only_other), (2, 1, 1, 1));
        assert_eq!(c.fields, [0, 0, 1, 0, 0, 1, 0, 0, 0]);
        assert_eq!(
            lines,
            "{\"query\":1,\"packet\":11,\"time\":1700000001.000000005,\"question\":\"a. A\",\"rcode\":[\"NOERROR\",\"NXDOMAIN\"],\
             \"answer\":[[\"a. A 192.0.2.1\"],[\"a. A 192.0.2.2\"]]}\n"
        );
    }

    #[test]
    fn answers_that_wait_beyond_the_limit_are_counted() {
        let (to, answers) = mpsc::sync_channel(64);
        let send = |side, number: u64| {
            Observer { side, to: to.clone() }.answered(number.into(), &answer(0, 1, 1));
        };
        // The third answer exceeds the limit, so the first two no longer wait; the other side's
        // answer to the first comes too late.
        (0..3).for_each(|number| send(Side::Target, number));
        send(Side::Other, 2);
        send(Side::Other, 0);
        drop(to);
        let mut lines = Vec::new();
        let mut comparer = Comparer::new(Fields::default(), Unit::Line, &mut lines);
        comparer.max_waiting = 2;
        let c = comparer.run(&answers).unwrap();
        assert_eq!((c.pairs, c.only_target, c.only_other, c.given_up), (1, 2, 1, 2));
    }

    #[test]
    fn times_to_live_count_on_demand_and_fields_may_be_left_out() {
        let pairs = [(answer(0, 1, 1), answer(3, 2, 1))];
        let mut fields = Fields::new(true);
        assert_eq!(compared(fields, &pairs).0.fields, [0, 0, 1, 0, 0, 1, 0, 0, 0]);
        fields.ignore("answer").unwrap();
        fields.ignore("rcode").unwrap();
        assert_eq!(compared(fields, &pairs).0.same, 1);
        assert!(fields.ignore("smell").unwrap_err().to_string().contains("'smell' is not a field"));
    }
}
