//! Rows of Zeek's TSV and JSON logs.

use std::collections::BTreeMap;
use std::io;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_columns::Batch;
use gannet_columns::TimeUnit;
use gannet_log::Cell;
use gannet_log::Field;
use gannet_log::Kind;
use gannet_log::PackedRows;
use gannet_log::RowPacker;
use gannet_log::Type;
use serde_json::Map;
use serde_json::Value;

use crate::Error;
use crate::convert::fit;
use crate::listing::Format;
use crate::listing::is_packed;
use crate::listing::open;
use crate::session::Shared;

/// Rows of a batch.
const ROWS: usize = 8 << 10;
/// Lines of a JSON log that its columns are found in.
const LOOKED_AT: usize = 10_000;
/// Columns of a JSON log that no log of Zeek has: more are not read, and reported.
const COLUMNS: usize = 1_000;
/// Logs of a file at the most.
const LOGS: usize = 1_000;
/// Names of columns that are reported.
const REPORTED: usize = 100;
/// Bytes of a line at the most: a row has at most some hundred strings of 4 KiB.
const LINE: u64 = 16 << 20;

/// The rows of a text log.
#[derive(Debug)]
pub(crate) struct TextRows {
    /// The columns that are wanted.
    pub(crate) schema: SchemaRef,
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) log: String,
    /// What the rows have in the column of the capture.
    pub(crate) capture: Option<String>,
    /// All columns of a JSON log.
    pub(crate) fields: Vec<Field>,
    pub(crate) shared: Arc<Shared>,
}

impl PartitionStream for TextRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 2);
        let to = builder.tx();
        let schema = Arc::clone(&self.schema);
        let (path, format, log) = (self.path.clone(), self.format, self.log.clone());
        let (fields, shared) = (self.fields.clone(), Arc::clone(&self.shared));
        let capture = self.capture.clone();
        builder.spawn_blocking(move || {
            let send = |batch: RecordBatch| {
                let fits = fit(&batch, &schema, capture.as_deref()).map_err(DataFusionError::from);
                to.blocking_send(fits).is_ok()
            };
            let mut problems = Problems::default();
            let read = open(&path).and_then(|input| match format {
                Format::Json => json(input, None, &fields, &schema, &mut problems, send),
                Format::MixedJson => json(input, Some(&log), &fields, &schema, &mut problems, send),
                _ => tsv(input, &schema, &mut problems, send),
            });
            problems.report(&path, &shared);
            match read {
                Ok(()) => Ok(()),
                // Packed data that is cut or damaged: the rows before it are right.
                Err(error) if is_packed(&path) => {
                    let path = path.display();
                    let text = "the packed data ends early or is damaged; rows before it are read";
                    shared.damaged(format!("{path}: {text} ({error})"));
                    Ok(())
                }
                Err(error) => Err(Error::input(format!("{}: {error}", path.display())).into()),
            }
        });
        builder.build()
    }
}

/// What could not be read, by what it is.
#[derive(Debug, Default)]
struct Problems {
    lines: u64,
    values: BTreeMap<&'static str, u64>,
    /// Of columns that are not read: rows that have them.
    columns: BTreeMap<String, u64>,
    /// The same of columns beyond those that are reported by name.
    others: u64,
}

impl Problems {
    fn value(&mut self, column: &'static str) {
        *self.values.entry(column).or_default() += 1;
    }

    fn column(&mut self, name: &str) {
        if let Some(count) = self.columns.get_mut(name) {
            *count += 1;
        } else if self.columns.len() < REPORTED {
            self.columns.insert(name.to_owned(), 1);
        } else {
            self.others += 1;
        }
    }

    fn report(&self, path: &std::path::Path, shared: &Shared) {
        let path = path.display();
        match self.lines {
            0 => {}
            1 => shared.damaged(format!("{path}: 1 line is no row and was skipped")),
            lines => shared.damaged(format!("{path}: {lines} lines are no rows and were skipped")),
        }
        for (column, count) in &self.values {
            shared.damaged(match count {
                1 => format!("{path}: 1 value of '{column}' is not of its type and reads as null"),
                _ => format!(
                    "{path}: {count} values of '{column}' are not of its type and read as null"
                ),
            });
        }
        for (column, count) in &self.columns {
            let what = format!(
                "{path}: {count} rows have a column '{column}' that the first {LOOKED_AT} rows have not: it is not read"
            );
            shared.damaged(what);
        }
        if self.others > 0 {
            shared.damaged(format!(
                "{path}: {} values of other columns are not read either",
                self.others
            ));
        }
    }
}

/// The next line without its end; `false` at the end of the file.
fn next_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut limited = io::Read::take(&mut *input, LINE);
    if limited.read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() != Some(&b'\n') && line.len() as u64 == LINE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than 16 MiB"));
    }
    while let Some(b'\n' | b'\r') = line.last() {
        line.pop();
    }
    Ok(true)
}

/// The next line, as `next_line`; an error is the end, and is kept.
fn read_line(input: &mut dyn BufRead, line: &mut Vec<u8>, damage: &mut Option<io::Error>) -> bool {
    next_line(input, line).unwrap_or_else(|error| {
        *damage = Some(error);
        false
    })
}

/// Packed rows on their way into batches.
struct Rows<'a> {
    fields: Vec<Field>,
    packer: RowPacker,
    packed: usize,
    send: &'a mut dyn FnMut(RecordBatch) -> bool,
}

impl Rows<'_> {
    /// Hands on the rows where they are many, or `at_end`; `false` where no more are wanted.
    fn send(&mut self, at_end: bool) -> io::Result<bool> {
        if self.packed < ROWS && !(at_end && self.packed > 0) {
            return Ok(true);
        }
        let mut batch = Batch::new(&self.fields, TimeUnit::Microseconds, self.packed);
        PackedRows::new(self.packer.rows()).for_each(|row| batch.push(row));
        self.packer.clear();
        self.packed = 0;
        Ok((self.send)(batch.finish()?))
    }
}

/// What the header of a TSV log says.
#[derive(Clone, Debug)]
struct Header {
    separator: u8,
    set_separator: Vec<u8>,
    empty: Vec<u8>,
    unset: Vec<u8>,
    path: Option<String>,
    names: Vec<String>,
    types: Vec<String>,
}

impl Default for Header {
    fn default() -> Self {
        Self {
            separator: b'\t',
            set_separator: b",".to_vec(),
            empty: b"(empty)".to_vec(),
            unset: b"-".to_vec(),
            path: None,
            names: Vec::new(),
            types: Vec::new(),
        }
    }
}

impl Header {
    /// A line that begins with `#`. Whether columns are declared with it.
    fn line(&mut self, line: &[u8]) -> bool {
        if let Some(text) = line.strip_prefix(b"#separator ") {
            self.separator = unescape(text).first().copied().unwrap_or(b'\t');
            return false;
        }
        let mut words = line.split(|b| *b == self.separator);
        let name = words.next().unwrap_or_default();
        let mut text = || String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned();
        match name {
            b"#set_separator" => self.set_separator = unescape(text().as_bytes()),
            b"#empty_field" => self.empty = text().into_bytes(),
            b"#unset_field" => self.unset = text().into_bytes(),
            b"#path" => self.path = Some(text()),
            b"#fields" => {
                self.names = words.map(|w| String::from_utf8_lossy(w).into_owned()).collect();
            }
            b"#types" => {
                self.types = words.map(|w| String::from_utf8_lossy(w).into_owned()).collect();
            }
            _ => return false,
        }
        matches!(name, b"#fields" | b"#types")
    }

    fn fields(&self) -> Vec<Field> {
        // Logs without types have text.
        let types = self.types.iter().map(String::as_str).chain(std::iter::repeat("string"));
        let pairs = self.names.iter().zip(types);
        // Every column keeps its place, whatever its type is called.
        let field = |name, ty| {
            gannet_columns::field(name, ty).or_else(|| gannet_columns::field(name, "string"))
        };
        pairs.filter_map(|(name, ty)| field(name, ty)).collect()
    }
}

/// The name of a TSV log, and its columns.
pub(crate) fn tsv_schema(
    mut input: Box<dyn BufRead + Send>,
) -> io::Result<(Option<String>, Schema)> {
    let (mut header, mut line) = (Header::default(), Vec::new());
    while next_line(&mut input, &mut line)? {
        if !line.starts_with(b"#") {
            break;
        }
        header.line(&line);
        if !header.types.is_empty() {
            break;
        }
    }
    let schema = gannet_columns::schema(&header.fields(), TimeUnit::Microseconds);
    Ok((header.path, schema))
}

fn tsv(
    mut input: Box<dyn BufRead + Send>,
    schema: &SchemaRef,
    problems: &mut Problems,
    mut send: impl FnMut(RecordBatch) -> bool,
) -> io::Result<()> {
    let (mut header, mut line) = (Header::default(), Vec::new());
    let mut rows =
        Rows { fields: Vec::new(), packer: RowPacker::default(), packed: 0, send: &mut send };
    // Of each column of the file, which of the wanted ones it is.
    let mut wanted: Vec<Option<usize>> = Vec::new();
    let mut is_new = true;
    let mut damage = None;
    while read_line(&mut input, &mut line, &mut damage) {
        if line.starts_with(b"#") {
            is_new |= header.line(&line);
            continue;
        }
        if line.is_empty() {
            continue;
        }
        if is_new {
            // Logs that were joined declare their columns again.
            if !rows.send(true)? {
                return Ok(());
            }
            let all = header.fields();
            wanted = vec![None; all.len()];
            rows.fields.clear();
            for (at, field) in all.into_iter().enumerate() {
                if schema.index_of(field.name).is_ok() {
                    wanted[at] = Some(rows.fields.len());
                    rows.fields.push(field);
                }
            }
            is_new = false;
        }
        let cells = line.split(|b| *b == header.separator);
        if cells.clone().count() != wanted.len() {
            problems.lines += 1;
            continue;
        }
        rows.packer.begin();
        for (cell, at) in cells.zip(&wanted) {
            let Some(field) = at.and_then(|at| rows.fields.get(at)) else { continue };
            tsv_cell(cell, field, &header, &mut rows.packer, problems);
        }
        rows.packer.end();
        rows.packed += 1;
        if !rows.send(false)? {
            return Ok(());
        }
    }
    rows.send(true)?;
    damage.map_or(Ok(()), Err)
}

fn tsv_cell(
    text: &[u8],
    field: &Field,
    header: &Header,
    rows: &mut RowPacker,
    problems: &mut Problems,
) {
    let kind = Kind::of(field.ty);
    if text == header.unset {
        return rows.push(&Cell::Unset);
    }
    let mut scalar = |text: &[u8], rows: &mut RowPacker| {
        if kind == Kind::Text {
            let bytes = if text == header.empty { Vec::new() } else { unescape(text) };
            return rows.push(&Cell::String(&bytes));
        }
        let parsed = std::str::from_utf8(text).ok().and_then(|text| typed(text, kind));
        if parsed.is_none() && text != header.unset {
            problems.value(field.name);
        }
        rows.push(&parsed.unwrap_or(Cell::Unset));
    };
    match field.ty {
        Type::Scalar(_) => scalar(text, rows),
        Type::Set(_) | Type::Vector(_) if text == header.empty => rows.push_list(0),
        Type::Set(_) | Type::Vector(_) => {
            let elements = split(text, &header.set_separator);
            rows.push_list(elements.len());
            for element in elements {
                if element == header.unset {
                    rows.push(&Cell::Unset);
                } else {
                    scalar(element, rows);
                }
            }
        }
    }
}

fn split<'a>(text: &'a [u8], separator: &[u8]) -> Vec<&'a [u8]> {
    match separator {
        [one] => text.split(|b| b == one).collect(),
        _ => vec![text],
    }
}

/// A value that is not text.
fn typed(text: &str, kind: Kind) -> Option<Cell<'static>> {
    Some(match kind {
        Kind::Bool => match text {
            "T" | "true" | "1" => Cell::Bool(true),
            "F" | "false" | "0" => Cell::Bool(false),
            _ => return None,
        },
        Kind::Count => Cell::Count(text.parse().ok()?),
        // Logs of some packages have tcp/80.
        Kind::Port => Cell::Count(text.split('/').next()?.parse::<u16>().ok()?.into()),
        Kind::Int => Cell::Int(text.parse().ok()?),
        Kind::Double => Cell::Double(text.parse().ok()?),
        Kind::Time => match nanos(text) {
            Some(nanos) => Cell::Time(Time::from_nanos(nanos)),
            None => Cell::FarTime(text.parse().ok()?),
        },
        Kind::Interval => match nanos(text) {
            Some(nanos) => Cell::Interval(Interval::from_nanos(nanos)),
            None => Cell::Seconds(text.parse().ok()?),
        },
        Kind::Addr => Cell::Addr(text.parse::<Addr>().ok()?),
        Kind::Text => return None,
    })
}

/// Seconds with a fraction, exactly.
fn nanos(text: &str) -> Option<i64> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let fraction = format!("{fraction:0<9}").parse::<i64>().ok()?;
    let nanos = whole.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)?;
    Some(sign * nanos)
}

/// Bytes of a TSV string: `\xNN` and `\\`.
fn unescape(text: &[u8]) -> Vec<u8> {
    let hex = |b: u8| char::from(b).to_digit(16).map(|digit| digit as u8);
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, others)) = rest.split_first() {
        rest = match (first, others) {
            (b'\\', [b'\\', rest @ ..]) => {
                out.push(b'\\');
                rest
            }
            (b'\\', [b'x', high, low, rest @ ..])
                if let Some(high) = hex(*high)
                    && let Some(low) = hex(*low) =>
            {
                out.push(high << 4 | low);
                rest
            }
            _ => {
                out.push(*first);
                others
            }
        };
    }
    out
}

/// The columns of a JSON log: those of Zeek's log of that name that its first rows have, in its order, and all others.
pub(crate) fn json_schema(mut input: Box<dyn BufRead + Send>, log: &str) -> io::Result<Schema> {
    let mut columns = Columns::of(log);
    let (mut line, mut damage) = (Vec::new(), None);
    for _ in 0..LOOKED_AT {
        // Damage is reported where rows are read.
        if !read_line(&mut input, &mut line, &mut damage) {
            break;
        }
        let Ok(Value::Object(object)) = serde_json::from_slice(&line) else { continue };
        columns.add(&object);
    }
    Ok(columns.schema())
}

/// The member of a JSON row that names its log, where rows of several logs are in a file.
pub(crate) const PATH: &str = "_path";

/// Whether a JSON log begins with a row that names its log.
pub(crate) fn names_logs(input: &mut dyn BufRead) -> bool {
    let (mut line, mut damage) = (Vec::new(), None);
    while read_line(input, &mut line, &mut damage) {
        if !line.trim_ascii().is_empty() {
            return log_of(&line).is_some();
        }
    }
    false
}

/// The log that a row names.
fn log_of(line: &[u8]) -> Option<String> {
    // As `analyze --out -` writes it.
    let rest = line.strip_prefix(b"{\"_path\":\"");
    let end = rest.and_then(|rest| rest.iter().position(|b| matches!(b, b'"' | b'\\')));
    if let (Some(rest), Some(end)) = (rest, end)
        && rest.get(end) == Some(&b'"')
    {
        return String::from_utf8(rest.get(..end)?.to_vec()).ok();
    }
    match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => object.get(PATH)?.as_str().map(str::to_owned),
        _ => None,
    }
}

/// The logs of a JSON file whose rows name them, and their columns as `json_schema` finds them. All of the file is read.
pub(crate) fn mixed_schemas(
    mut input: Box<dyn BufRead + Send>,
) -> io::Result<Vec<(String, Schema)>> {
    let mut logs: BTreeMap<String, (usize, Columns)> = BTreeMap::new();
    let (mut line, mut damage) = (Vec::new(), None);
    while read_line(&mut input, &mut line, &mut damage) {
        let Some(log) = log_of(&line) else { continue };
        if !logs.contains_key(&log) {
            if logs.len() == LOGS {
                let text = format!("rows of more than {LOGS} logs");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            logs.insert(log.clone(), (0, Columns::of(&log)));
        }
        let Some((rows, columns)) = logs.get_mut(&log).filter(|(rows, _)| *rows < LOOKED_AT) else {
            continue;
        };
        let Ok(Value::Object(mut object)) = serde_json::from_slice(&line) else { continue };
        object.remove(PATH);
        columns.add(&object);
        *rows += 1;
    }
    Ok(logs.into_iter().map(|(log, (_, columns))| (log, columns.schema())).collect())
}

/// Columns that rows of a JSON log have.
struct Columns {
    /// Those of Zeek's log, and whether a row has them.
    known: Vec<(Field, bool)>,
    others: Vec<(String, ColumnValues)>,
    row: Vec<(String, Value)>,
}

impl Columns {
    fn of(log: &str) -> Self {
        let known = gannet_engine::schemas().into_iter().find(|schema| schema.path == log);
        let known = known.map_or_else(Vec::new, |schema| schema.fields);
        let known = known.into_iter().map(|field| (field, false)).collect();
        Self { known, others: Vec::new(), row: Vec::new() }
    }

    fn add(&mut self, object: &Map<String, Value>) {
        let Self { known, others, row } = self;
        row.clear();
        flatten("", object, row);
        for (name, value) in row {
            if let Some((_, seen)) = known.iter_mut().find(|(field, _)| field.name == name) {
                *seen = true;
            } else if let Some((_, found)) = others.iter_mut().find(|(known, _)| known == name) {
                found.add(value);
            } else if others.len() < COLUMNS {
                let mut found = ColumnValues::default();
                found.add(value);
                others.push((name.clone(), found));
            }
        }
    }

    fn schema(self) -> Schema {
        let is_read = |(field, seen): &(Field, bool)| *seen || !field.optional;
        let known = self.known.into_iter().filter(is_read).map(|(field, _)| field);
        let mut fields: Vec<Field> = known.collect();
        let others = self.others.iter();
        fields
            .extend(others.filter_map(|(name, found)| gannet_columns::field(name, found.ty(name))));
        gannet_columns::schema(&fields, TimeUnit::Microseconds)
    }
}

/// What values of a column are.
#[derive(Clone, Copy, Debug, Default)]
struct ColumnValues {
    bools: bool,
    integers: bool,
    doubles: bool,
    texts: bool,
    lists: bool,
}

impl ColumnValues {
    fn add(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::Bool(_) => self.bools = true,
            Value::Number(number) if number.is_f64() => self.doubles = true,
            Value::Number(_) => self.integers = true,
            Value::String(_) | Value::Object(_) => self.texts = true,
            Value::Array(elements) => {
                self.lists = true;
                elements.iter().for_each(|element| self.add(element));
            }
        }
    }

    fn ty(self, name: &str) -> &'static str {
        let Self { bools, integers, doubles, texts, lists } = self;
        let scalar = match (bools, integers, doubles, texts) {
            (true, false, false, false) => 0,
            // Seconds, milliseconds or text: how JSON logs have times is an option of Zeek.
            _ if name == "ts" && !bools && !lists => 3,
            (false, true, false, false) => 1,
            (false, _, true, false) => 2,
            _ => 4,
        };
        const SCALARS: [&str; 5] = ["bool", "int", "double", "time", "string"];
        const LISTS: [&str; 5] =
            ["vector[bool]", "vector[int]", "vector[double]", "vector[time]", "vector[string]"];
        if lists { LISTS[scalar] } else { SCALARS[scalar] }
    }
}

/// Columns by their full names: nested objects with dots between.
fn flatten(prefix: &str, object: &Map<String, Value>, to: &mut Vec<(String, Value)>) {
    for (name, value) in object {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Object(inner) => flatten(&name, inner, to),
            other => to.push((name, other.clone())),
        }
    }
}

/// The rows of a JSON log, or of one log of several in a file.
fn json(
    mut input: Box<dyn BufRead + Send>,
    log: Option<&str>,
    all: &[Field],
    schema: &SchemaRef,
    problems: &mut Problems,
    mut send: impl FnMut(RecordBatch) -> bool,
) -> io::Result<()> {
    let is_wanted = |field: &&Field| schema.index_of(field.name).is_ok();
    let fields: Vec<Field> = all.iter().filter(is_wanted).copied().collect();
    let mut rows = Rows { fields, packer: RowPacker::default(), packed: 0, send: &mut send };
    let (mut line, mut row) = (Vec::new(), Vec::new());
    let mut damage = None;
    while read_line(&mut input, &mut line, &mut damage) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(log) = log
            && log_of(&line).is_some_and(|other| other != log)
        {
            continue;
        }
        let Ok(Value::Object(mut object)) = serde_json::from_slice(&line) else {
            problems.lines += 1;
            continue;
        };
        // Without a name it is a row of no log.
        if log.is_some() && object.remove(PATH).is_none() {
            problems.lines += 1;
            continue;
        }
        row.clear();
        flatten("", &object, &mut row);
        for (name, _) in &row {
            if !all.iter().any(|field| field.name == name) {
                problems.column(name);
            }
        }
        rows.packer.begin();
        for field in &rows.fields {
            let value = row.iter().find(|(name, _)| name == field.name).map(|(_, value)| value);
            json_cell(value, field, &mut rows.packer, problems);
        }
        rows.packer.end();
        rows.packed += 1;
        if !rows.send(false)? {
            return Ok(());
        }
    }
    rows.send(true)?;
    damage.map_or(Ok(()), Err)
}

fn json_cell(value: Option<&Value>, field: &Field, rows: &mut RowPacker, problems: &mut Problems) {
    let kind = Kind::of(field.ty);
    let mut scalar = |value: &Value, rows: &mut RowPacker| {
        if value.is_null() {
            return rows.push(&Cell::Unset);
        }
        if kind == Kind::Text {
            return match value {
                Value::String(text) => {
                    rows.push(&Cell::String(&gannet_log::column_bytes(text.as_bytes())));
                }
                other => rows.push(&Cell::String(other.to_string().as_bytes())),
            };
        }
        let parsed = json_typed(value, kind);
        if parsed.is_none() {
            problems.value(field.name);
        }
        rows.push(&parsed.unwrap_or(Cell::Unset));
    };
    match (field.ty, value) {
        (_, None | Some(Value::Null)) => rows.push(&Cell::Unset),
        (Type::Scalar(_), Some(value)) => scalar(value, rows),
        (_, Some(Value::Array(elements))) => {
            rows.push_list(elements.len());
            elements.iter().for_each(|element| scalar(element, rows));
        }
        (_, Some(value)) => {
            rows.push_list(1);
            scalar(value, rows);
        }
    }
}

fn json_typed(value: &Value, kind: Kind) -> Option<Cell<'static>> {
    /// Milliseconds since 1970 are more than this from 1973 on, seconds only after the year 5000.
    const MILLIS: f64 = 1e11;
    match (value, kind) {
        (Value::Bool(v), Kind::Bool) => Some(Cell::Bool(*v)),
        (Value::Number(number), Kind::Time)
            if number.as_f64().is_some_and(|v| v.abs() > MILLIS) =>
        {
            let millis = number.as_i64()?;
            Some(Cell::Time(Time::from_nanos(millis.checked_mul(1_000_000)?)))
        }
        (Value::Number(number), Kind::Time | Kind::Interval) => {
            // Microseconds, as logs have them.
            let seconds = number.as_f64()?;
            let micros = (seconds * 1e6).round();
            if micros.abs() < 9e15 {
                typed(&format!("{:.6}", micros / 1e6), kind)
            } else {
                typed(&number.to_string(), kind)
            }
        }
        (Value::Number(number), _) => typed(&number.to_string(), kind),
        (Value::String(text), Kind::Time) => {
            let nanos = string_to_timestamp_nanos(text).ok();
            nanos.map(|nanos| Cell::Time(Time::from_nanos(nanos))).or_else(|| typed(text, kind))
        }
        (Value::String(text), _) => typed(text, kind),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_exactly() {
        assert_eq!(nanos("1700000000.000001"), Some(1_700_000_000_000_001_000));
        assert_eq!(nanos("-0.5"), Some(-500_000_000));
        assert_eq!(nanos("7"), Some(7_000_000_000));
        for wrong in ["", "-", ".5", "1e3", "1.0000000001", "99999999999"] {
            assert_eq!(nanos(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn escapes_of_tsv() {
        assert_eq!(unescape(br"a\x09b\\x41\x"), b"a\tb\\x41\\x");
        assert_eq!(unescape(br"\x28empty)"), b"(empty)");
    }

    #[test]
    fn types_of_json() {
        let ty = |name: &str, values: Value| {
            let mut found = ColumnValues::default();
            values.as_array().unwrap().iter().for_each(|value| found.add(value));
            found.ty(name)
        };
        assert_eq!(ty("n", serde_json::json!([1, 2])), "int");
        assert_eq!(ty("n", serde_json::json!([1, 2.5])), "double");
        assert_eq!(ty("ts", serde_json::json!([1, 2.5])), "time");
        assert_eq!(ty("n", serde_json::json!([1, "x"])), "string");
        assert_eq!(ty("n", serde_json::json!([[true], []])), "vector[bool]");
        assert_eq!(ty("n", serde_json::json!([null])), "string");
    }

    /// Any file is read without a panic.
    #[test]
    fn any_bytes_are_read() {
        let pieces: [&[u8]; 16] = [
            b"#separator \\x09\n",
            b"#separator",
            b"#fields\tts\tid.orig_h\ttags\n",
            b"#types\ttime\taddr\tset[string]\n",
            b"#types\tset[",
            b"1.5\t192.0.2.1\ta,b\n",
            b"-\t-\t(empty)\n",
            b"\n",
            b"\t\t\n",
            b"{\"ts\":1",
            b"}\n",
            b"{\"id\":{\"orig_h\":[1,{}]}}\n",
            b"\xff\\x",
            b"#set_separator\n",
            b"9e999\t::\t\\x0\n",
            b"#close\n",
        ];
        let mut random = 1_u64;
        for _ in 0..2_000 {
            let mut bytes = Vec::new();
            for _ in 0..6 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.extend_from_slice(pieces[(random >> 60) as usize]);
            }
            let input = || -> Box<dyn BufRead + Send> { Box::new(io::Cursor::new(bytes.clone())) };
            let (_, schema) = tsv_schema(input()).unwrap();
            let mut problems = Problems::default();
            tsv(input(), &Arc::new(schema), &mut problems, |_| true).unwrap();
            let schema = json_schema(input(), "conn").unwrap();
            let fields = gannet_columns::fields_of(&schema);
            json(input(), None, &fields, &Arc::new(schema), &mut problems, |_| true).unwrap();
        }
    }
}
