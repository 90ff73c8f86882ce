//! The results of an analysis in one sequence: log rows and typed events, packed.
//!
//! The analysis writes into [`NewResults`] during a batch of packets, the script reads it between
//! two batches. Rows of a packet precede its events, which are queued until its end.

use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use gannet_base::Time;
use gannet_event::Arg;
use gannet_event::Decl;
use gannet_event::Listener;
use gannet_event::Packer;
use gannet_event::Param;
use gannet_event::Raised;
use gannet_event::ThreadAffinity;
use gannet_event::Type;
use gannet_log::Field;
use gannet_log::Format;
use gannet_log::Output;
use gannet_log::PackedRows;
use gannet_log::PackedStream;
use gannet_log::PackedWriter;

/// A row or an event.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Item {
    /// Network time of an event, in nanoseconds since 1970.
    time: i64,
    /// Number of the packet of an event.
    packet: u64,
    /// Its packed values.
    values: Span,
    /// Index of its [`Kind`].
    kind: u32,
    /// Index of its first connection in [`NewResults::mentioned`]; its files follow its
    /// connections.
    conns: u32,
    /// Number of its connections.
    conn_count: u32,
    /// Number of its files.
    file_count: u32,
}

/// A range of [`NewResults::bytes`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Span {
    start: u64,
    len: u64,
}

/// The kind of an item.
#[derive(Debug)]
enum Kind {
    /// Rows of a log with these columns.
    Rows(&'static str, Vec<Field>),
    /// An event.
    Event(&'static Decl),
}

/// Results since the script last read.
#[derive(Debug, Default)]
pub(crate) struct NewResults {
    /// Rows and events in order.
    pub(crate) items: Vec<Item>,
    /// All packed values.
    pub(crate) bytes: Vec<u8>,
    /// Connections and files of events, as packed records.
    pub(crate) mentioned: Vec<Span>,
    kinds: Vec<Kind>,
    /// Index of the kind of each event, by the event's number; [`NO_KIND`] if it has none yet.
    event_kinds: Vec<u32>,
    /// The connections and files of the events that are delivered together.
    together: Option<Mentioned>,
}

const NO_KIND: u32 = u32::MAX;

impl NewResults {
    /// Removes all items; keeps the kinds and the memory.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.bytes.clear();
        self.mentioned.clear();
    }

    /// Exchanges the items with those of `other`, whose kinds are not used.
    pub(crate) fn swap(&mut self, other: &mut Self) {
        // Later events refer to objects of the new list.
        self.together = None;
        std::mem::swap(&mut self.items, &mut other.items);
        std::mem::swap(&mut self.bytes, &mut other.bytes);
        std::mem::swap(&mut self.mentioned, &mut other.mentioned);
    }

    /// Describes a kind for the script: `row` or `event` and its name, then a line for each value
    /// with name, type and whether it may be unset, separated by tabs.
    pub(crate) fn describe(&self, kind: u32, out: &mut String) {
        match self.kinds.get(kind as usize) {
            Some(Kind::Rows(path, fields)) => {
                // Writing to a string does not fail.
                let _ = write!(out, "row\t{path}");
                for field in fields {
                    let _ = write!(out, "\n{}\t{}\t?", field.name, field.ty);
                }
            }
            Some(Kind::Event(decl)) => {
                let _ = write!(out, "event\t{}", decl.name);
                describe_params(decl.params, out);
            }
            None => {}
        }
    }

    /// A row as a line of its log, without the line end; `None` for a kind of events.
    pub(crate) fn line(&self, kind: u32, row: &[u8]) -> Option<String> {
        let Some(Kind::Rows(path, fields)) = self.kinds.get(kind as usize) else { return None };
        let text = gannet_log::packed_text(Format::Tsv, fields, row);
        Some(format!("{path}\t{}", String::from_utf8_lossy(&text).trim_end_matches('\n')))
    }

    fn kind_of_rows(&mut self, stream: &PackedStream<'_>) -> u32 {
        let is = |kind: &Kind| matches!(kind, Kind::Rows(path, _) if *path == stream.path);
        let known = self.kinds.iter().position(is);
        known.unwrap_or_else(|| {
            self.kinds.push(Kind::Rows(stream.path, stream.fields.to_vec()));
            self.kinds.len() - 1
        }) as u32
    }

    fn kind_of_event(&mut self, decl: &'static Decl) -> u32 {
        let number = usize::from(decl.id.get());
        if self.event_kinds.len() <= number {
            self.event_kinds.resize(number + 1, NO_KIND);
        }
        let kind = &mut self.event_kinds[number];
        if *kind == NO_KIND {
            *kind = self.kinds.len() as u32;
            self.kinds.push(Kind::Event(decl));
        }
        *kind
    }

    fn span(&mut self, from: usize) -> Span {
        Span { start: from as u64, len: (self.bytes.len() - from) as u64 }
    }

    fn mention(&mut self, value: &impl Arg) {
        let from = self.bytes.len();
        value.pack(&mut Packer::new(&mut self.bytes));
        let span = self.span(from);
        self.mentioned.push(span);
    }
}

/// Appends a line for each parameter.
pub(crate) fn describe_params(params: &[Param], out: &mut String) {
    for param in params {
        let optional = if param.optional { "?" } else { "" };
        let _ = write!(out, "\n{}\t", param.name);
        describe_type(&param.ty, out);
        let _ = write!(out, "\t{optional}");
    }
}

/// Appends a type: its name, or a letter and the element types in parentheses. Fields of records
/// are separated by semicolons, an optional one ends with a question mark.
fn describe_type(ty: &Type, out: &mut String) {
    match ty {
        Type::Enum(_) => out.push_str("enum"),
        Type::Opaque(name) => {
            let _ = write!(out, "opaque({name})");
        }
        Type::Vector(of) | Type::VectorFromOne(of) | Type::Set(of) => {
            out.push_str("list(");
            describe_type(of, out);
            out.push(')');
        }
        Type::Table(key, of) => {
            out.push_str("table(");
            describe_type(key, out);
            out.push(',');
            describe_type(of, out);
            out.push(')');
        }
        Type::Record(record) => {
            out.push_str("record(");
            for field in record.fields {
                let _ = write!(out, "{}:", field.name);
                describe_type(&field.ty, out);
                out.push_str(if field.optional { "?;" } else { ";" });
            }
            out.push(')');
        }
        Type::ConnId => out.push_str("conn_id"),
        Type::Connection => out.push_str("connection"),
        Type::File => out.push_str("fa_file"),
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

/// Collects rows and events. Clones collect into the same [`NewResults`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Collector {
    found: Arc<Mutex<NewResults>>,
    affinity: ThreadAffinity,
}

#[derive(Clone, Debug)]
struct Mentioned {
    first: u32,
    conns: u32,
    files: u32,
    /// Services of the connections, which change from one event to the next.
    services: Vec<Vec<&'static str>>,
}

impl Collector {
    /// A collector of events only, which an analysis with several threads may call.
    pub(crate) fn for_events(&self) -> Self {
        Self { affinity: ThreadAffinity::Anywhere, ..self.clone() }
    }

    /// The results, once the analysis has processed its batch.
    pub(crate) fn found(&self) -> MutexGuard<'_, NewResults> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mention_all(found: &mut NewResults, event: &Raised<'_>) -> Mentioned {
    let first = found.mentioned.len() as u32;
    let mut services = Vec::new();
    while let Some(state) = event.connection(services.len()) {
        services.push(state.services.clone());
        found.mention(state);
    }
    let mut files = 0;
    while let Some(state) = event.file(files) {
        files += 1;
        found.mention(state);
    }
    Mentioned { first, conns: services.len() as u32, files: files as u32, services }
}

impl Listener for Collector {
    fn affinity(&self) -> ThreadAffinity {
        self.affinity
    }

    fn wants_packets(&self) -> bool {
        false
    }

    fn event(&mut self, event: &Raised<'_>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_stale = |m: &Mentioned| {
            let now = |i: usize| event.connection(i).map(|c| c.services.as_slice());
            m.services.iter().enumerate().any(|(i, s)| now(i) != Some(s.as_slice()))
        };
        let mentioned = match found.together.take().filter(|m| !is_stale(m)) {
            Some(mentioned) => mentioned,
            None => mention_all(&mut found, event),
        };
        let kind = found.kind_of_event(event.decl);
        let from = found.bytes.len();
        found.bytes.extend_from_slice(event.packed());
        let values = found.span(from);
        found.items.push(Item {
            time: event.time.as_nanos(),
            packet: event.packet,
            values,
            kind,
            conns: mentioned.first,
            conn_count: mentioned.conns,
            file_count: mentioned.files,
        });
        found.together = Some(mentioned);
    }

    fn drained(&mut self) {
        self.found().together = None;
    }
}

impl Output for Collector {
    fn open(&self, _options: &gannet_log::Options) -> Box<dyn PackedWriter> {
        Box::new(self.clone())
    }
}

impl PackedWriter for Collector {
    fn write(&mut self, stream: &PackedStream<'_>, rows: PackedRows<'_>) -> io::Result<()> {
        let mut found = self.found();
        let kind = found.kind_of_rows(stream);
        for row in rows {
            let from = found.bytes.len();
            found.bytes.extend_from_slice(row);
            let values = found.span(from);
            found.items.push(Item { values, kind, ..Item::default() });
        }
        Ok(())
    }

    fn close(&mut self, _now: Time) -> io::Result<()> {
        Ok(())
    }
}
