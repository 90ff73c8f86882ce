//! Reader that generates random rows, for measurements.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Message, MessageSink, Mode, PeriodicAction, Read, Source};
use crate::support::field::{Column, Field, Kind, Protocol};
use crate::support::order::Random;

/// Options: the constants of the module `InputBenchmark`. Rows are not spread over time.
#[derive(Clone, Copy, Debug)]
pub struct BenchmarkOptions {
    /// Factor by which the number of rows per second changes at each heartbeat.
    pub factor: f64,
    /// Increment of the number of rows per second at each heartbeat.
    pub add: u64,
    /// `Threading::heartbeat_interval`, in seconds.
    pub heartbeat_interval: f64,
    /// The seed of random values.
    pub seed: u32,
}

impl Default for BenchmarkOptions {
    fn default() -> Self {
        BenchmarkOptions { factor: 1.0, add: 0, heartbeat_interval: 1.0, seed: 1 }
    }
}

/// Maximum number of rows per heartbeat.
const MAX_ROWS: f64 = 10_000_000.0;

pub(super) struct Benchmark {
    source: Source,
    columns: Vec<Column>,
    options: BenchmarkOptions,
    rows: f64,
    random: Random,
}

impl Benchmark {
    pub(super) fn new(source: Source, columns: Vec<Column>, options: BenchmarkOptions) -> Self {
        let digits: String =
            source.source.trim_start().chars().take_while(char::is_ascii_digit).collect();
        let rows = digits.parse().unwrap_or(0.0);
        let random = Random::of_system(options.seed);
        Benchmark { source, columns, options, rows, random }
    }

    fn field(&mut self, kind: &Kind, out: &mut MessageSink) -> Option<Field<'static>> {
        let number = self.random.next();
        // 192.168.17.1
        let address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, 17, 1];
        Some(match kind {
            Kind::Bool => Field::Bool(true),
            Kind::Int => Field::Int(number),
            Kind::Count => Field::Count(number as u64),
            Kind::Double => Field::Double(number as f64),
            Kind::Interval => Field::Interval(number as f64),
            Kind::Time => Field::Time(now()),
            Kind::Port => Field::Port(self.random.below(60_000) as u32, Protocol::Unknown),
            Kind::Subnet => Field::Subnet(address, 16),
            Kind::Addr => Field::Addr(address),
            Kind::String => {
                let letters: Vec<u8> = (b'!'..=b'~').collect();
                let letter =
                    |random: &mut Random| letters[random.below(letters.len() as u64) as usize];
                let text: Vec<u8> = (0..10).map(|_| letter(&mut self.random)).collect();
                Field::String(text.into())
            }
            Kind::Set(of) | Kind::Vector(of) => {
                let len = self.random.below(15);
                let elements: Option<Vec<_>> = (0..len).map(|_| self.field(of, out)).collect();
                if matches!(kind, Kind::Set(_)) {
                    Field::Set(elements?)
                } else {
                    Field::Vector(elements?)
                }
            }
            Kind::Enum | Kind::File | Kind::Func | Kind::Pattern => {
                out.error(format!("unsupported field format {kind}"));
                return None;
            }
        })
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl Read for Benchmark {
    fn open(&mut self, out: &mut MessageSink) -> bool {
        self.update(out);
        true
    }

    fn update(&mut self, out: &mut MessageSink) -> bool {
        let columns = self.columns.clone();
        let rows = (self.rows * self.options.heartbeat_interval).min(MAX_ROWS) as u64;
        for _ in 0..rows {
            let fields: Option<Vec<_>> =
                columns.iter().map(|column| self.field(&column.kind, out)).collect();
            let Some(fields) = fields else { return false };
            out.row(self.source.mode, fields, None);
        }
        if self.source.mode != Mode::Stream {
            out.end_of_send();
        }
        true
    }

    fn heartbeat(&mut self, out: &mut MessageSink) -> PeriodicAction {
        self.rows = (self.rows * self.options.factor).trunc() + self.options.add as f64;
        if self.source.mode == Mode::Manual {
            return PeriodicAction::Nothing;
        }
        if self.options.factor != 1.0 || self.options.add != 0 {
            let arguments = vec![Field::Count(self.rows as u64), Field::Time(now())];
            out.messages.push(Message::Event("lines_changed", arguments));
        }
        if !self.update(out) {
            out.disable();
        }
        out.messages.push(Message::Event("HeartbeatDone", Vec::new()));
        PeriodicAction::Nothing
    }
}
