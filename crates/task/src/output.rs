//! Rows of the analysis as record batches, through a channel.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use gannet_base::Time;
use gannet_columns::Batch;
use gannet_columns::TimeUnit;
use gannet_log::Cell;
use gannet_log::Cells;
use gannet_log::Field;
use gannet_log::Kind;
use gannet_log::Options;
use gannet_log::Output;
use gannet_log::PackedRows;
use gannet_log::PackedStream;
use gannet_log::PackedWriter;
use gannet_log::Type;

use crate::births::Owned;
use crate::scan::Item;
use crate::scan::LogBatch;

/// Packed bytes of the rows of a batch, about: it ends there, even where it has few rows.
const BATCH_BYTES: usize = 4 << 20;
/// Rows that a batch has room for at first.
const FIRST_ROWS: usize = 128;
/// The log whose rows end connections.
const CONN: &str = "conn";

/// Sends the rows of each log as batches.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    pub(crate) to: SyncSender<Item>,
    /// Rows of a batch at the most.
    pub(crate) rows: usize,
    pub(crate) times: TimeUnit,
    /// The rows that are sent; without it all.
    pub(crate) owner: Option<Owner>,
}

/// What a task owns.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) connections: Arc<Owned>,
    /// Nanoseconds from which and up to which rows without a connection are the task's.
    pub(crate) span: (i64, i64),
    /// conn.log was not asked for: its rows only tell which connections have ended.
    pub(crate) hides_conn: bool,
}

impl Output for Batches {
    fn open(&self, _: &Options) -> Box<dyn PackedWriter> {
        Box::new(Writer { batches: self.clone(), logs: Vec::new() })
    }
}

struct Writer {
    batches: Batches,
    logs: Vec<Log>,
}

/// Rows of a log on their way into a batch.
struct Log {
    path: &'static str,
    fields: Vec<Field>,
    batch: Option<Batch>,
    bytes: usize,
    /// Rows of the batch before.
    before: usize,
    /// Column of the uid.
    uid: Option<usize>,
}

impl PackedWriter for Writer {
    fn write(&mut self, stream: &PackedStream<'_>, rows: PackedRows<'_>) -> io::Result<()> {
        let known = self.logs.iter().position(|log| log.path == stream.path);
        let at = known.unwrap_or_else(|| {
            self.logs.push(Log {
                path: stream.path,
                fields: stream.fields.to_vec(),
                batch: None,
                bytes: 0,
                before: FIRST_ROWS,
                uid: stream.fields.iter().position(|f| f.name == "uid"),
            });
            self.logs.len() - 1
        });
        let Some(log) = self.logs.get_mut(at) else { return Ok(()) };
        rows.into_iter().try_for_each(|row| log.push(row, &self.batches))
    }

    fn close(&mut self, _: Time) -> io::Result<()> {
        self.logs.iter_mut().try_for_each(|log| log.send(&self.batches))
    }
}

impl Log {
    fn push(&mut self, row: &[u8], batches: &Batches) -> io::Result<()> {
        if let Some(owner) = &batches.owner {
            if !owner.owns(row, &self.fields, self.uid) {
                return Ok(());
            }
            if self.path == CONN {
                owner.connections.end();
                if owner.hides_conn {
                    return Ok(());
                }
            }
        }
        let new = || Batch::new(&self.fields, batches.times, self.before);
        let batch = self.batch.get_or_insert_with(new);
        batch.push(row);
        self.bytes += row.len();
        if batch.rows() >= batches.rows || self.bytes >= BATCH_BYTES {
            return self.send(batches);
        }
        Ok(())
    }

    fn send(&mut self, batches: &Batches) -> io::Result<()> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        self.before = batch.rows().max(FIRST_ROWS);
        self.bytes = 0;
        let rows = batch.finish().map_err(io::Error::other)?;
        let batch = LogBatch { log: self.path, rows };
        batches.to.send(Item::Batch(batch)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Owner {
    /// Whether a row is the task's.
    fn owns(&self, row: &[u8], fields: &[Field], uid: Option<usize>) -> bool {
        let mut cells = Cells::new(row);
        let mut time = None;
        for (i, field) in fields.iter().enumerate() {
            let kind = Kind::of(field.ty);
            let cell = match field.ty {
                Type::Scalar(_) => cells.scalar(kind),
                Type::Set(_) | Type::Vector(_) => {
                    cells.list(kind);
                    continue;
                }
            };
            match cell {
                Cell::Time(at) if i == 0 => time = Some(at.as_nanos()),
                Cell::String(text) | Cell::Plain(text) if uid == Some(i) => {
                    return self.connections.has(text);
                }
                _ => {}
            }
            if uid.is_none_or(|uid| uid <= i) {
                break;
            }
        }
        // Rows of no connection, or of several.
        let (from, to) = self.span;
        time.is_some_and(|time| (from..to).contains(&time))
    }
}
