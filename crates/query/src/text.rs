//! Reads rows from Zeek's TSV and JSON logs.

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
use crate::convert::to_schema;
use crate::listing::Format;
use crate::listing::is_compressed;
use crate::listing::open;
use crate::session::Shared;

/// Rows per batch.
const BATCH_ROWS: usize = 8 << 10;
/// Lines of a JSON log that its schema is inferred from.
const SCHEMA_LINES: usize = 10_000;
/// Maximum number of columns of a JSON log that Zeek's log does not have. Further columns are not read, and reported.
const MAX_EXTRA_COLUMNS: usize = 1_000;
/// Maximum number of logs in a file.
const MAX_LOGS: usize = 1_000;
/// Maximum number of columns reported by name.
const MAX_REPORTED_COLUMNS: usize = 100;
/// Maximum length of a line in bytes: a row has at most some hundred strings of 4 KiB.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// The rows of a text log.
#[derive(Debug)]
pub(crate) struct TextRows {
    /// The projected columns.
    pub(crate) schema: SchemaRef,
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) log: String,
    /// Value of the column `capture`.
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
                let fits =
                    to_schema(&batch, &schema, capture.as_deref()).map_err(DataFusionError::from);
                to.blocking_send(fits).is_ok()
            };
            let mut read_errors = ReadErrors::default();
            let read = open(&path).and_then(|input| match format {
                Format::Json => read_json(input, None, &fields, &schema, &mut read_errors, send),
                Format::MixedJson => {
                    read_json(input, Some(&log), &fields, &schema, &mut read_errors, send)
                }
                _ => read_tsv(input, &schema, &mut read_errors, send),
            });
            read_errors.report(&path, &shared);
            match read {
                Ok(()) => Ok(()),
                // Truncated or damaged compressed data: the rows read so far are valid.
                Err(error) if is_compressed(&path) => {
                    let path = path.display();
                    let text =
                        "the compressed data is truncated or damaged; the rows before it were read";
                    shared.report_damage(format!("{path}: {text} ({error})"));
                    Ok(())
                }
                Err(error) => Err(Error::input(format!("{}: {error}", path.display())).into()),
            }
        });
        builder.build()
    }
}

/// Counts of input that could not be read.
#[derive(Debug, Default)]
struct ReadErrors {
    lines: u64,
    values: BTreeMap<&'static str, u64>,
    /// Number of rows with each column that is not read.
    columns: BTreeMap<String, u64>,
    /// Number of values in columns that are not read and not reported by name.
    others: u64,
}

impl ReadErrors {
    fn value(&mut self, column: &'static str) {
        *self.values.entry(column).or_default() += 1;
    }

    fn column(&mut self, name: &str) {
        if let Some(count) = self.columns.get_mut(name) {
            *count += 1;
        } else if self.columns.len() < MAX_REPORTED_COLUMNS {
            self.columns.insert(name.to_owned(), 1);
        } else {
            self.others += 1;
        }
    }

    fn report(&self, path: &std::path::Path, shared: &Shared) {
        let path = path.display();
        match self.lines {
            0 => {}
            1 => shared.report_damage(format!("{path}: skipped 1 line that is not a row")),
            lines => {
                shared.report_damage(format!("{path}: skipped {lines} lines that are not rows"));
            }
        }
        for (column, count) in &self.values {
            shared.report_damage(match count {
                1 => format!("{path}: 1 value of '{column}' does not have the type of its column and is read as null"),
                _ => format!(
                    "{path}: {count} values of '{column}' do not have the type of their column and are read as null"
                ),
            });
        }
        for (column, count) in &self.columns {
            let what = format!(
                "{path}: {count} rows have a column '{column}' that the first {SCHEMA_LINES} rows lack; it is ignored"
            );
            shared.report_damage(what);
        }
        if self.others > 0 {
            shared.report_damage(format!(
                "{path}: {} values of other such columns are also ignored",
                self.others
            ));
        }
    }
}

/// Reads the next line without its line ending; returns `false` at the end of the file.
fn next_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut limited = io::Read::take(&mut *input, MAX_LINE_BYTES);
    if limited.read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() != Some(&b'\n') && line.len() as u64 == MAX_LINE_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than 16 MiB"));
    }
    while let Some(b'\n' | b'\r') = line.last() {
        line.pop();
    }
    Ok(true)
}

/// Like `next_line`, but stores an error in `damage` and ends the file there.
fn read_line(input: &mut dyn BufRead, line: &mut Vec<u8>, damage: &mut Option<io::Error>) -> bool {
    next_line(input, line).unwrap_or_else(|error| {
        *damage = Some(error);
        false
    })
}

/// Packs rows, and converts them to record batches.
struct BatchBuilder<'a> {
    fields: Vec<Field>,
    packer: RowPacker,
    packed: usize,
    send: &'a mut dyn FnMut(RecordBatch) -> bool,
}

impl BatchBuilder<'_> {
    /// Sends the rows if they fill a batch, or if `at_end`. Returns `false` if the receiver needs no more rows.
    fn send(&mut self, at_end: bool) -> io::Result<bool> {
        if self.packed < BATCH_ROWS && !(at_end && self.packed > 0) {
            return Ok(true);
        }
        let mut batch = Batch::new(&self.fields, TimeUnit::Microseconds, self.packed);
        PackedRows::new(self.packer.rows()).for_each(|row| batch.push(row));
        self.packer.clear();
        self.packed = 0;
        Ok((self.send)(batch.finish()?))
    }
}

/// Header of a TSV log.
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
    /// Parses a line that begins with `#`. Returns whether it declares columns.
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
        // In logs without types all columns are strings.
        let types = self.types.iter().map(String::as_str).chain(std::iter::repeat("string"));
        let pairs = self.names.iter().zip(types);
        // A column of an unknown type is read as a string.
        let field = |name, ty| {
            gannet_columns::field(name, ty).or_else(|| gannet_columns::field(name, "string"))
        };
        pairs.filter_map(|(name, ty)| field(name, ty)).collect()
    }
}

/// Reads the name and the schema of a TSV log from its header.
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

fn read_tsv(
    mut input: Box<dyn BufRead + Send>,
    schema: &SchemaRef,
    read_errors: &mut ReadErrors,
    mut send: impl FnMut(RecordBatch) -> bool,
) -> io::Result<()> {
    let (mut header, mut line) = (Header::default(), Vec::new());
    let mut rows = BatchBuilder {
        fields: Vec::new(),
        packer: RowPacker::default(),
        packed: 0,
        send: &mut send,
    };
    // For each column of the file its index in the projected columns.
    let mut projected: Vec<Option<usize>> = Vec::new();
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
            // Concatenated logs declare their columns again.
            if !rows.send(true)? {
                return Ok(());
            }
            let all = header.fields();
            projected = vec![None; all.len()];
            rows.fields.clear();
            for (at, field) in all.into_iter().enumerate() {
                if schema.index_of(field.name).is_ok() {
                    projected[at] = Some(rows.fields.len());
                    rows.fields.push(field);
                }
            }
            is_new = false;
        }
        let cells = line.split(|b| *b == header.separator);
        if cells.clone().count() != projected.len() {
            read_errors.lines += 1;
            continue;
        }
        rows.packer.begin();
        for (cell, at) in cells.zip(&projected) {
            let Some(field) = at.and_then(|at| rows.fields.get(at)) else { continue };
            push_tsv_cell(cell, field, &header, &mut rows.packer, read_errors);
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

fn push_tsv_cell(
    text: &[u8],
    field: &Field,
    header: &Header,
    rows: &mut RowPacker,
    read_errors: &mut ReadErrors,
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
        let parsed = std::str::from_utf8(text).ok().and_then(|text| parse_scalar(text, kind));
        if parsed.is_none() && text != header.unset {
            read_errors.value(field.name);
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

/// Parses a value that is not text.
fn parse_scalar(text: &str, kind: Kind) -> Option<Cell<'static>> {
    Some(match kind {
        Kind::Bool => match text {
            "T" | "true" | "1" => Cell::Bool(true),
            "F" | "false" | "0" => Cell::Bool(false),
            _ => return None,
        },
        Kind::Count => Cell::Count(text.parse().ok()?),
        // Some Zeek packages log ports as tcp/80.
        Kind::Port => Cell::Count(text.split('/').next()?.parse::<u16>().ok()?.into()),
        Kind::Int => Cell::Int(text.parse().ok()?),
        Kind::Double => Cell::Double(text.parse().ok()?),
        Kind::Time => match parse_nanos(text) {
            Some(nanos) => Cell::Time(Time::from_nanos(nanos)),
            None => Cell::FarTime(text.parse().ok()?),
        },
        Kind::Interval => match parse_nanos(text) {
            Some(nanos) => Cell::Interval(Interval::from_nanos(nanos)),
            None => Cell::Seconds(text.parse().ok()?),
        },
        Kind::Addr => Cell::Addr(text.parse::<Addr>().ok()?),
        Kind::Text => return None,
    })
}

/// Parses seconds with a fraction as nanoseconds, without rounding.
fn parse_nanos(text: &str) -> Option<i64> {
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

/// Decodes the escapes of a TSV string: `\xNN` and `\\`.
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

/// Infers the schema of a JSON log from its first rows: the columns of Zeek's log of that name in Zeek's order, then
/// all others.
pub(crate) fn json_schema(mut input: Box<dyn BufRead + Send>, log: &str) -> io::Result<Schema> {
    let mut columns = SchemaInference::of(log);
    let (mut line, mut damage) = (Vec::new(), None);
    for _ in 0..SCHEMA_LINES {
        // Damage is reported when rows are read.
        if !read_line(&mut input, &mut line, &mut damage) {
            break;
        }
        let Ok(Value::Object(object)) = serde_json::from_slice(&line) else { continue };
        columns.add(&object);
    }
    Ok(columns.schema())
}

/// The member of a JSON row that names its log in files with several logs.
pub(crate) const PATH: &str = "_path";

/// Whether the first row of a JSON log names its log.
pub(crate) fn names_logs(input: &mut dyn BufRead) -> bool {
    let (mut line, mut damage) = (Vec::new(), None);
    while read_line(input, &mut line, &mut damage) {
        if !line.trim_ascii().is_empty() {
            return log_name(&line).is_some();
        }
    }
    false
}

/// Returns the log that a row names.
fn log_name(line: &[u8]) -> Option<String> {
    // The format of `analyze --out -` needs no JSON parser.
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

/// Reads a whole JSON file whose rows name their logs. Returns these logs with the schemas inferred as by
/// `json_schema`.
pub(crate) fn mixed_schemas(
    mut input: Box<dyn BufRead + Send>,
) -> io::Result<Vec<(String, Schema)>> {
    let mut logs: BTreeMap<String, (usize, SchemaInference)> = BTreeMap::new();
    let (mut line, mut damage) = (Vec::new(), None);
    while read_line(&mut input, &mut line, &mut damage) {
        let Some(log) = log_name(&line) else { continue };
        if !logs.contains_key(&log) {
            if logs.len() == MAX_LOGS {
                let text = format!("rows of more than {MAX_LOGS} logs");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            logs.insert(log.clone(), (0, SchemaInference::of(&log)));
        }
        let Some((rows, columns)) = logs.get_mut(&log).filter(|(rows, _)| *rows < SCHEMA_LINES)
        else {
            continue;
        };
        let Ok(Value::Object(mut object)) = serde_json::from_slice(&line) else { continue };
        object.remove(PATH);
        columns.add(&object);
        *rows += 1;
    }
    Ok(logs.into_iter().map(|(log, (_, columns))| (log, columns.schema())).collect())
}

/// Columns found in the rows of a JSON log.
struct SchemaInference {
    /// Columns of Zeek's log, and whether a row has them.
    known: Vec<(Field, bool)>,
    others: Vec<(String, ValueTypes)>,
    row: Vec<(String, Value)>,
}

impl SchemaInference {
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
            } else if others.len() < MAX_EXTRA_COLUMNS {
                let mut found = ValueTypes::default();
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

/// Types of the values of a column.
#[derive(Clone, Copy, Debug, Default)]
struct ValueTypes {
    bools: bool,
    integers: bool,
    doubles: bool,
    texts: bool,
    lists: bool,
}

impl ValueTypes {
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
            // Zeek can log times as seconds, milliseconds or text (`LogAscii::json_timestamps`).
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

/// Lists the members of nested objects by their full names, separated with dots.
fn flatten(prefix: &str, object: &Map<String, Value>, to: &mut Vec<(String, Value)>) {
    for (name, value) in object {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Object(inner) => flatten(&name, inner, to),
            other => to.push((name, other.clone())),
        }
    }
}

/// Reads the rows of a JSON log, or of one of several logs in a file.
fn read_json(
    mut input: Box<dyn BufRead + Send>,
    log: Option<&str>,
    all: &[Field],
    schema: &SchemaRef,
    read_errors: &mut ReadErrors,
    mut send: impl FnMut(RecordBatch) -> bool,
) -> io::Result<()> {
    let is_projected = |field: &&Field| schema.index_of(field.name).is_ok();
    let fields: Vec<Field> = all.iter().filter(is_projected).copied().collect();
    let mut rows =
        BatchBuilder { fields, packer: RowPacker::default(), packed: 0, send: &mut send };
    let (mut line, mut row) = (Vec::new(), Vec::new());
    let mut damage = None;
    while read_line(&mut input, &mut line, &mut damage) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(log) = log
            && log_name(&line).is_some_and(|other| other != log)
        {
            continue;
        }
        let Ok(Value::Object(mut object)) = serde_json::from_slice(&line) else {
            read_errors.lines += 1;
            continue;
        };
        // In a file with several logs, a row without a name belongs to no log.
        if log.is_some() && object.remove(PATH).is_none() {
            read_errors.lines += 1;
            continue;
        }
        row.clear();
        flatten("", &object, &mut row);
        for (name, _) in &row {
            if !all.iter().any(|field| field.name == name) {
                read_errors.column(name);
            }
        }
        rows.packer.begin();
        for field in &rows.fields {
            let value = row.iter().find(|(name, _)| name == field.name).map(|(_, value)| value);
            push_json_cell(value, field, &mut rows.packer, read_errors);
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

fn push_json_cell(
    value: Option<&Value>,
    field: &Field,
    rows: &mut RowPacker,
    read_errors: &mut ReadErrors,
) {
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
        let parsed = json_scalar(value, kind);
        if parsed.is_none() {
            read_errors.value(field.name);
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

fn json_scalar(value: &Value, kind: Kind) -> Option<Cell<'static>> {
    /// Larger values are milliseconds: seconds reach this in the year 5138, milliseconds in 1973.
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
            // Times of logs have microseconds.
            let seconds = number.as_f64()?;
            let micros = (seconds * 1e6).round();
            if micros.abs() < 9e15 {
                parse_scalar(&format!("{:.6}", micros / 1e6), kind)
            } else {
                parse_scalar(&number.to_string(), kind)
            }
        }
        (Value::Number(number), _) => parse_scalar(&number.to_string(), kind),
        (Value::String(text), Kind::Time) => {
            let nanos = string_to_timestamp_nanos(text).ok();
            nanos
                .map(|nanos| Cell::Time(Time::from_nanos(nanos)))
                .or_else(|| parse_scalar(text, kind))
        }
        (Value::String(text), _) => parse_scalar(text, kind),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_exactly() {
        assert_eq!(parse_nanos("1700000000.000001"), Some(1_700_000_000_000_001_000));
        assert_eq!(parse_nanos("-0.5"), Some(-500_000_000));
        assert_eq!(parse_nanos("7"), Some(7_000_000_000));
        for wrong in ["", "-", ".5", "1e3", "1.0000000001", "99999999999"] {
            assert_eq!(parse_nanos(wrong), None, "{wrong}");
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
            let mut found = ValueTypes::default();
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

    /// Random input does not cause a panic.
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
            let mut read_errors = ReadErrors::default();
            read_tsv(input(), &Arc::new(schema), &mut read_errors, |_| true).unwrap();
            let schema = json_schema(input(), "conn").unwrap();
            let fields = gannet_columns::fields_of(&schema);
            read_json(input(), None, &fields, &Arc::new(schema), &mut read_errors, |_| true)
                .unwrap();
        }
    }
}
