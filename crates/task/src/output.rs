//! The log output that sends rows as record batches through a channel.

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

use crate::births::OwnedConnections;
use crate::scan::Item;
use crate::scan::LogBatch;

/// Approximate maximum size of a batch, in bytes of packed rows.
const BATCH_BYTES: usize = 4 << 20;
/// Initial row capacity of the first batch of a log.
const INITIAL_ROWS: usize = 128;
/// The log with a row for each connection that has ended.
const CONN: &str = "conn";

/// Output that sends the rows of each log as batches.
#[derive(Clone, Debug)]
pub(crate) struct BatchOutput {
    pub(crate) sender: SyncSender<Item>,
    /// Maximum number of rows in a batch.
    pub(crate) max_rows: usize,
    pub(crate) times: TimeUnit,
    /// Which rows are sent; `None` sends all rows.
    pub(crate) ownership: Option<Ownership>,
}

/// Which rows a task owns.
#[derive(Clone, Debug)]
pub(crate) struct Ownership {
    pub(crate) connections: Arc<OwnedConnections>,
    /// Start (inclusive) and end (exclusive) of the time in which the task owns rows without a connection, in
    /// nanoseconds.
    pub(crate) span: (i64, i64),
    /// Whether conn.log is not requested: its rows are used only to detect the end of connections.
    pub(crate) hides_conn: bool,
}

impl Output for BatchOutput {
    fn open(&self, _: &Options) -> Box<dyn PackedWriter> {
        Box::new(Writer { batches: self.clone(), logs: Vec::new() })
    }
}

struct Writer {
    batches: BatchOutput,
    logs: Vec<Log>,
}

/// State of a log.
struct Log {
    path: &'static str,
    fields: Vec<Field>,
    batch: Option<Batch>,
    /// Size of the packed rows in `batch`, in bytes.
    bytes: usize,
    /// Number of rows in the previous batch.
    previous_rows: usize,
    /// Index of the uid column.
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
                previous_rows: INITIAL_ROWS,
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
    fn push(&mut self, row: &[u8], batches: &BatchOutput) -> io::Result<()> {
        if let Some(ownership) = &batches.ownership {
            if !ownership.owns(row, &self.fields, self.uid) {
                return Ok(());
            }
            if self.path == CONN {
                ownership.connections.end();
                if ownership.hides_conn {
                    return Ok(());
                }
            }
        }
        let new = || Batch::new(&self.fields, batches.times, self.previous_rows);
        let batch = self.batch.get_or_insert_with(new);
        batch.push(row);
        self.bytes += row.len();
        if batch.rows() >= batches.max_rows || self.bytes >= BATCH_BYTES {
            return self.send(batches);
        }
        Ok(())
    }

    fn send(&mut self, batches: &BatchOutput) -> io::Result<()> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        self.previous_rows = batch.rows().max(INITIAL_ROWS);
        self.bytes = 0;
        let rows = batch.finish().map_err(io::Error::other)?;
        let batch = LogBatch { log: self.path, rows };
        batches.sender.send(Item::Batch(batch)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Ownership {
    /// Whether the task owns a row.
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
        // A row without a connection, or of several.
        let (start, end) = self.span;
        time.is_some_and(|time| (start..end).contains(&time))
    }
}
