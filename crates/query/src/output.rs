//! Writes query results as CSV, JSON, a table of text, or a Parquet file.

use std::borrow::Cow;
use std::io;
use std::io::Write;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::ArrayRef;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_schema::DataType;
use arrow_schema::Schema;
use arrow_schema::SchemaRef;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::LineDelimited;
use datafusion::arrow::util::display::ArrayFormatter;
use datafusion::arrow::util::display::FormatOptions;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::Answer;
use crate::Error;

/// Writes the rows of a result in one format.
pub trait Writer {
    /// Writes a batch of rows.
    ///
    /// # Errors
    /// If they cannot be written.
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()>;
    /// Writes buffered rows and flushes the output.
    ///
    /// # Errors
    /// If the last rows cannot be written.
    fn finish(&mut self) -> io::Result<()>;
}

/// Format of times in UTC.
const TIME_FORMAT: &str = "%Y-%m-%dT%H:%M:%S%.6fZ";
/// Format of times in another time zone, which a query can convert them to.
const ZONED_TIME_FORMAT: &str = "%Y-%m-%dT%H:%M:%S%.6f%:z";

/// Replaces columns of times in zones other than UTC with formatted strings.
fn format_zoned_times(batch: &RecordBatch) -> io::Result<Cow<'_, RecordBatch>> {
    let is_other = |ty: &DataType| matches!(ty, DataType::Timestamp(_, Some(zone)) if !["UTC", "Z", "+00:00"].contains(&&**zone));
    let schema = batch.schema();
    if !schema.fields().iter().any(|field| is_other(field.data_type())) {
        return Ok(Cow::Borrowed(batch));
    }
    let options = format_options().with_timestamp_tz_format(Some(ZONED_TIME_FORMAT));
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if !is_other(field.data_type()) {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
            continue;
        }
        let texts = ArrayFormatter::try_new(column.as_ref(), &options).map_err(io::Error::other)?;
        let text = |row| column.is_valid(row).then(|| texts.value(row).to_string());
        let texts: StringArray = (0..column.len()).map(text).collect();
        fields.push(Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)));
        columns.push(Arc::new(texts) as ArrayRef);
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    batch.map(Cow::Owned).map_err(io::Error::other)
}

fn format_options() -> FormatOptions<'static> {
    FormatOptions::default()
        .with_timestamp_format(Some(TIME_FORMAT))
        .with_timestamp_tz_format(Some(TIME_FORMAT))
        .with_display_error(true)
}

/// Calls `each` with the formatted cells of each row; a null is `None`.
fn for_each_row(
    batch: &RecordBatch,
    mut each: impl FnMut(&[Option<String>]) -> io::Result<()>,
) -> io::Result<()> {
    let (options, batch) = (format_options(), format_zoned_times(batch)?);
    let columns = batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options));
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    let mut cells = Vec::new();
    for row in 0..batch.num_rows() {
        cells.clear();
        for (array, column) in batch.columns().iter().zip(&columns) {
            // Columns of type Null have no validity buffer.
            let is_null = array.is_null(row) || *array.data_type() == DataType::Null;
            cells.push((!is_null).then(|| column.value(row).to_string()));
        }
        each(&cells)?;
    }
    Ok(())
}

/// Comma-separated values (RFC 4180) with a header line. A null is an empty field, an empty string is `""`.
pub struct Csv<W> {
    out: W,
    schema: SchemaRef,
    is_header_written: bool,
}

impl<W: Write> Csv<W> {
    /// Rows of this schema.
    pub fn new(out: W, schema: SchemaRef) -> Self {
        Self { out, schema, is_header_written: false }
    }

    fn begin(&mut self) -> io::Result<()> {
        if self.is_header_written {
            return Ok(());
        }
        self.is_header_written = true;
        let names = self.schema.fields().iter().map(|f| Some(f.name().clone())).collect::<Vec<_>>();
        write_csv_line(&mut self.out, &names)
    }
}

fn write_csv_line(out: &mut impl Write, cells: &[Option<String>]) -> io::Result<()> {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        match cell {
            None => {}
            Some(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
                write!(out, "\"{}\"", text.replace('"', "\"\""))?;
            }
            Some(text) => out.write_all(text.as_bytes())?,
        }
    }
    out.write_all(b"\n")
}

impl<W: Write> Writer for Csv<W> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.begin()?;
        let out = &mut self.out;
        for_each_row(batch, |cells| write_csv_line(out, cells))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.begin()?;
        self.out.flush()
    }
}

/// One JSON object per row, with times as `2026-11-21T08:47:00.000000Z`. Nulls are omitted, as in Zeek's JSON logs.
pub struct Json<W: Write>(LineDelimitedWriter<W>);

impl<W: Write> Json<W> {
    /// Creates a writer for rows of any schema.
    pub fn new(out: W) -> Self {
        let builder = WriterBuilder::new()
            .with_timestamp_format(TIME_FORMAT.to_owned())
            .with_timestamp_tz_format(TIME_FORMAT.to_owned());
        Self(builder.build::<W, LineDelimited>(out))
    }
}

impl<W: Write> Writer for Json<W> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.write(format_zoned_times(batch)?.as_ref()).map_err(io::Error::other)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish().map_err(io::Error::other)?;
        self.0.get_mut().flush()
    }
}

/// A table of aligned text. The first rows determine the column widths; longer cells of later rows shift the cells to
/// the right of them.
pub struct Pretty<W> {
    out: W,
    schema: SchemaRef,
    /// Maximum width of a column in characters; longer text is truncated.
    max_width: usize,
    /// Rows buffered until the widths are known.
    buffered_rows: Vec<Vec<Option<String>>>,
    widths: Vec<usize>,
    count: u64,
}

/// Number of rows that determine the column widths.
const MEASURED_ROWS: usize = 1_000;

impl<W: Write> Pretty<W> {
    /// Rows of this schema.
    pub fn new(out: W, schema: SchemaRef, max_width: usize) -> Self {
        Self { out, schema, max_width, buffered_rows: Vec::new(), widths: Vec::new(), count: 0 }
    }

    /// Returns the number of rows written.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn begin(&mut self) -> io::Result<()> {
        let Self { schema, buffered_rows, widths, max_width, out, .. } = self;
        let width = |text: &str| text.chars().count();
        *widths = schema.fields().iter().map(|field| width(field.name())).collect();
        for row in buffered_rows.iter() {
            for (width_so_far, cell) in widths.iter_mut().zip(row) {
                *width_so_far = (*width_so_far)
                    .max(cell.as_deref().map_or(1, |text| width(&truncated(text, *max_width))));
            }
        }
        let names: Vec<_> = schema.fields().iter().map(|f| Some(f.name().clone())).collect();
        let left_aligned = vec![false; names.len()];
        write_line(out, &names, widths, &left_aligned, usize::MAX)?;
        let rule: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
        writeln!(out, "{}", rule.join("──"))?;
        let right: Vec<_> = schema.fields().iter().map(|f| f.data_type().is_numeric()).collect();
        for row in buffered_rows.drain(..) {
            write_line(out, &row, widths, &right, *max_width)?;
        }
        Ok(())
    }
}

/// Truncates a cell to `max_width`, and replaces control characters and those that change the text direction.
fn truncated(text: &str, max_width: usize) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        if at + 1 >= max_width && text.chars().nth(max_width).is_some() {
            out.push('…');
            break;
        }
        out.push(if is_hidden(c) { '\u{fffd}' } else { c });
    }
    out
}

fn write_line(
    out: &mut impl Write,
    cells: &[Option<String>],
    widths: &[usize],
    right: &[bool],
    max_width: usize,
) -> io::Result<()> {
    let mut text = String::new();
    for ((cell, width), right) in cells.iter().zip(widths).zip(right) {
        if !text.is_empty() {
            text.push_str("  ");
        }
        let cell =
            cell.as_deref().map_or_else(|| "-".to_owned(), |cell| truncated(cell, max_width));
        text.push_str(&if *right { format!("{cell:>width$}") } else { format!("{cell:<width$}") });
    }
    writeln!(out, "{}", text.trim_end())
}

impl<W: Write> Writer for Pretty<W> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut all = Vec::new();
        for_each_row(batch, |cells| {
            all.push(cells.to_vec());
            Ok(())
        })?;
        self.count += all.len() as u64;
        if self.widths.is_empty() {
            self.buffered_rows.append(&mut all);
            return if self.buffered_rows.len() >= MEASURED_ROWS { self.begin() } else { Ok(()) };
        }
        let right: Vec<_> =
            self.schema.fields().iter().map(|f| f.data_type().is_numeric()).collect();
        all.iter().try_for_each(|row| {
            write_line(&mut self.out, row, &self.widths, &right, self.max_width)
        })
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.widths.is_empty() {
            self.begin()?;
        }
        self.out.flush()
    }
}

/// Writes a result as a Parquet file compressed with zstd. Returns the number of rows and the output.
///
/// # Errors
/// If the query fails, or the file cannot be written.
pub fn parquet<W: Write + Send>(answer: &mut Answer, out: W) -> Result<(u64, W), Error> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_created_by("gannet".to_owned())
        .build();
    let writer = ArrowWriter::try_new(out, answer.schema(), Some(properties));
    let mut writer = writer.map_err(Error::output)?;
    let mut count = 0;
    while let Some(batch) = answer.next()? {
        count += batch.num_rows() as u64;
        writer.write(&batch).map_err(Error::output)?;
    }
    let out = writer.into_inner().map_err(Error::output)?;
    Ok((count, out))
}
