//! `gannet sql`: SQL queries over captures and logs.

mod pager;
mod prompt;

use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::IsTerminal as _;
use std::io::Read as _;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use arrow_array::Array as _;
use arrow_array::BooleanArray;
use arrow_array::Int64Array;
use arrow_array::StringArray;
use gannet_capture::NewFile;
use gannet_filter::Filter;
use gannet_query::Csv;
use gannet_query::Error;
use gannet_query::ErrorKind;
use gannet_query::FUNCTIONS;
use gannet_query::Json;
use gannet_query::Options;
use gannet_query::Pretty;
use gannet_query::Session;
use gannet_query::Writer;

use crate::limits;
#[cfg(target_os = "linux")]
use crate::memory;
use crate::names::System;
use crate::out;
use crate::outcome::Outcome;
use crate::packets::PacketSelection;
use crate::paths::InputFile;
use crate::stdin;
use crate::stop::Stop;
use crate::terminal::Terminal;
use pager::Paged;

const EXAMPLES: &str = "\
Examples:
  gannet sql \"SELECT * FROM 'trace.pcap' LIMIT 10\"    conn of a capture, analysed as far as needed
  gannet sql 'SELECT query, count(*) AS n FROM dns GROUP BY query ORDER BY n DESC' logs/ new.pcap
                                                      logs and captures together
  gannet sql \"SELECT id.resp_h, sum(orig_bytes) FROM conn
              WHERE cidr(id.orig_h, '10.0.0.0/8') GROUP BY id.resp_h\" 'logs/*.parquet' --csv
  gannet sql \"SELECT * FROM 'trace.pcap'.http\" --json  another log of a capture
  tcpdump -w - -i eth0 -c 1000 | gannet sql 'SELECT service, count(*) FROM conn GROUP BY service' -
                                                      a capture on standard input
  gannet sql logs/                                    a prompt: .tables, .help

Tables are named after their logs: conn, dns, http, ... Zeek's names need no quotes: id.orig_h.";

/// Ask SQL about captures and logs.
///
/// Rows come from Parquet files, from TSV and JSON logs, packed or not, and from captures, which are analysed while
/// the query runs: only the log and the columns that it names, and only until it has enough rows. Without SQL a
/// prompt is opened; where standard input is no terminal, its queries are run, each ended by ;
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The query; - reads queries from standard input
    #[arg(value_name = "SQL")]
    sql: Option<String>,
    /// Captures, logs, folders of both, and patterns like 'logs/*/dns.*'; - is a capture on standard input
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Comma-separated values with a line of names; what is written where standard output is no terminal
    #[arg(long, group = "how")]
    csv: bool,
    /// One JSON object per row
    #[arg(long, group = "how")]
    json: bool,
    /// A Parquet file
    #[arg(long, group = "how")]
    parquet: bool,
    /// A table, also where standard output is no terminal
    #[arg(long, group = "how")]
    table: bool,
    /// Do not show long tables on a terminal through a pager, which is that of PAGER or less
    #[arg(long)]
    no_pager: bool,
    /// Write the answer to this file; .csv, .json and .parquet choose the format
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Memory of sorts, groups and joins; beyond it they use temporary files
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = limits::size)]
    memory: u64,
    /// Analyse each capture alone; every table has a column 'capture': its path, or the folder of a log
    #[arg(long)]
    each: bool,
    /// Threads; by default one for each core
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    threads: Option<u8>,
    /// Do not verify checksums in captures
    #[arg(short = 'C', long)]
    no_checksums: bool,
    /// Analyse only packets of captures that match, like 'tcp port 80'
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,
    /// Decides uids of captures, as in gannet analyze
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// The format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Table,
    Csv,
    Json,
    Parquet,
}

impl Form {
    /// The format for the suffix of a file name.
    fn of_file(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" | "jsonl" | "ndjson" => Some(Self::Json),
            "parquet" => Some(Self::Parquet),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    // Hash tables of groups are accessed at random.
    #[cfg(target_os = "linux")]
    memory::allow_huge_pages();
    let terminal = Terminal::new(false);
    let (sql, paths) = args.query();
    let parse = |text: &str| Filter::with(text, Default::default(), Arc::new(System::new()));
    let filter = match args.filter.as_deref().map(parse).transpose() {
        Ok(filter) => filter,
        Err(error) => {
            terminal.error(&format_args!("--filter: {error}"));
            return Ok(Outcome::NoCapture);
        }
    };
    if let Some(text) = sql.as_deref()
        && !text.contains(char::is_whitespace)
        && !prompt::is_command(text)
        && text.contains(['/', '.'])
    {
        terminal.error(&format_args!("{text}: no such file or folder"));
        if paths.iter().any(|path| path.to_string_lossy().contains(char::is_whitespace)) {
            terminal.hint(&"the query is the first argument, before the paths");
        }
        return Ok(Outcome::NoCapture);
    }
    if let Some(query) = swapped(sql.as_deref(), &paths) {
        terminal.error(&format_args!("'{query}' is not a file or folder"));
        terminal.hint(&"the query is the first argument, before the paths");
        return Ok(Outcome::NoCapture);
    }
    let has_stdin = paths.iter().any(|path| path == Path::new("-"));
    if has_stdin && sql.is_none() {
        terminal.error(&"-: standard input can hold a capture or queries, not both");
        terminal.hint(&"the query is the first argument: gannet sql 'SELECT ...' -");
        return Ok(Outcome::NoCapture);
    }
    let session = match Session::new(&paths, args.options(filter)) {
        Ok(session) => session,
        Err(error) => return Ok(report(&error, &terminal)),
    };
    let is_prompt = sql.is_none() && io::stdin().is_terminal();
    if is_prompt {
        if args.out.is_some() {
            terminal.error(&"--out needs a query; the prompt can run several");
            return Ok(Outcome::NoCapture);
        }
        return prompt::run(args, &session, &terminal);
    }
    let stop = Stop::on_signals().context("signals")?;
    stop.set_on_stop(&session.stop());
    if has_stdin {
        match stdin::open(&stop) {
            Ok(reader) => session.set_stdin(reader),
            Err(error) => {
                terminal.error(&error);
                return Ok(stop.requested().unwrap_or(Outcome::NoCapture));
            }
        }
    }
    let queries = match sql {
        Some(sql) => vec![sql],
        None => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).context("standard input")?;
            prompt::lines(&text)
        }
    };
    if queries.len() > 1 && (args.out.is_some() || args.parquet) {
        let option = if args.out.is_some() { "--out" } else { "--parquet" };
        let count = queries.len();
        terminal.error(&format_args!("{option} is for one query, not for {count}"));
        return Ok(Outcome::NoCapture);
    }
    let mut outcome = Outcome::Done;
    for sql in queries {
        if sql.starts_with('.') {
            let Some(done) = prompt::command(&sql, &session, &terminal)? else { break };
            outcome = outcome.max(done);
            continue;
        }
        outcome = outcome.max(args.answer(&session, &sql, &terminal)?);
        if let Some(stopped) = stop.requested() {
            return Ok(stopped);
        }
    }
    Ok(outcome)
}

/// The query, if it was given in the place of a path.
fn swapped(sql: Option<&str>, paths: &[PathBuf]) -> Option<String> {
    if sql.is_some() {
        return None;
    }
    let words = paths.iter().filter(|path| !path.exists()).map(|path| path.to_string_lossy());
    let is_query = |text: &str| {
        let first = text.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        ["select", "with", "values", "explain", "describe", "from"].contains(&first.as_str())
    };
    words.into_iter().find(|text| is_query(text)).map(std::borrow::Cow::into_owned)
}

/// Prints an error with its hint.
fn report(error: &Error, terminal: &Terminal) -> Outcome {
    terminal.error(error);
    if let Some(hint) = error.hint() {
        terminal.hint(&hint);
    }
    match error.kind {
        ErrorKind::Input | ErrorKind::Query => Outcome::NoCapture,
        ErrorKind::Run | ErrorKind::Output | ErrorKind::Cancelled => Outcome::Failed,
    }
}

impl Args {
    /// The query, if there is one, and the paths. A first argument that is a path counts as a path.
    fn query(&self) -> (Option<String>, Vec<PathBuf>) {
        let mut paths = self.paths.clone();
        let sql = match &self.sql {
            Some(sql) if sql == "-" => None,
            Some(path) if Path::new(path).exists() => {
                paths.insert(0, path.into());
                None
            }
            // `.schema conn PATH` without quotes.
            Some(sql) if sql == ".schema" && paths.first().is_some_and(|path| !path.exists()) => {
                Some(format!("{sql} {}", paths.remove(0).display()))
            }
            sql => sql.clone(),
        };
        (sql, paths)
    }

    fn options(&self, filter: Option<Filter>) -> Options {
        let mut options = Options { memory: self.memory as usize, ..Options::default() };
        if let Some(threads) = self.threads {
            options.threads = usize::from(threads);
        }
        options.each = self.each;
        options.analysis.ignore_checksums = self.no_checksums;
        options.analysis.seed = self.seed;
        options.analysis.filter = filter;
        options
    }

    fn form(&self) -> Form {
        match () {
            () if self.csv => Form::Csv,
            () if self.json => Form::Json,
            () if self.parquet => Form::Parquet,
            () if self.table => Form::Table,
            () if let Some(form) = self.out.as_deref().and_then(Form::of_file) => form,
            () if self.out.is_none() && io::stdout().is_terminal() => Form::Table,
            () => Form::Csv,
        }
    }

    /// Runs a query and writes its rows.
    fn answer(&self, session: &Session, sql: &str, terminal: &Terminal) -> anyhow::Result<Outcome> {
        let form = self.form();
        if form == Form::Parquet && self.out.is_none() && io::stdout().is_terminal() {
            terminal.error(&"--parquet: Parquet cannot be shown on a terminal");
            terminal.hint(&"use --out FILE to write it to a file");
            return Ok(Outcome::NoCapture);
        }
        let written = match &self.out {
            None => {
                let out = Paged::new(form == Form::Table && !self.no_pager);
                match write(session, sql, form, BufWriter::new(out), None) {
                    Ok(out) => {
                        let out = out.into_inner().map_err(io::IntoInnerError::into_error);
                        out.and_then(Paged::finish).map_err(Failed::Write)
                    }
                    Err(error) => Err(error),
                }
            }
            Some(path) => {
                let file = NewFile::create(path).with_context(|| path.display().to_string())?;
                match write(session, sql, form, BufWriter::new(file), Some(path)) {
                    Ok(file) => {
                        let file = file.into_inner().map_err(io::IntoInnerError::into_error);
                        let finished = file.and_then(NewFile::finish);
                        finished.with_context(|| path.display().to_string())?;
                        Ok(())
                    }
                    Err(error) => Err(error),
                }
            }
        };
        let (warnings, damaged) = session.problems();
        warnings.iter().for_each(|text| terminal.warning(text));
        damaged.iter().for_each(|text| terminal.error(text));
        let outcome = if damaged.is_empty() { Outcome::Done } else { Outcome::Damaged };
        match written {
            Ok(()) => Ok(outcome),
            Err(Failed::Refused(error)) => {
                terminal.error(&error);
                Ok(outcome.max(Outcome::NoCapture))
            }
            Err(Failed::Query(error)) => Ok(outcome.max(report(&error, terminal))),
            Err(Failed::Write(error)) => {
                let error = anyhow::Error::from(error);
                if out::is_closed(&error) {
                    return Ok(outcome);
                }
                let file = self.out.as_ref().map(|path| path.display().to_string());
                Err(error.context(file.unwrap_or_else(|| "standard output".to_owned())))
            }
        }
    }
}

/// The reason why a result is incomplete.
enum Failed {
    Query(Error),
    Write(io::Error),
    /// The output is one of the inputs.
    Refused(anyhow::Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Query(error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Maximum number of characters of a value in a table.
const MAX_WIDTH: usize = 80;

/// Writes the rows of a query, and returns the output; `path` names it in errors.
fn write<W: Write + Send>(
    session: &Session,
    sql: &str,
    form: Form,
    mut out: W,
    path: Option<&PathBuf>,
) -> Result<W, Failed> {
    let mut answer = session.query(sql)?;
    if let Some(path) = path {
        InputFile::refuse(&InputFile::all(&session.inputs()), path).map_err(Failed::Refused)?;
    }
    let schema = answer.schema();
    let mut writer: Box<dyn Writer + '_> = match form {
        Form::Parquet => {
            let (_, mut out) = gannet_query::parquet(&mut answer, out)?;
            out.flush()?;
            return Ok(out);
        }
        Form::Table => Box::new(Pretty::new(&mut out, schema, MAX_WIDTH)),
        Form::Csv => Box::new(Csv::new(&mut out, schema)),
        Form::Json => Box::new(Json::new(&mut out)),
    };
    while let Some(batch) = answer.next()? {
        writer.write(&batch)?;
    }
    writer.finish()?;
    drop(writer);
    Ok(out)
}

/// The packets of the rows of a log for which a condition is true: for dns those of the query and its answer, for http and
/// smtp those up to the next request of the connection, for other logs those of the uid. Errors are reported.
pub(crate) fn select_packets(
    paths: &[PathBuf],
    analysis: gannet_engine::Options,
    log: &str,
    condition: &str,
    terminal: &Terminal,
) -> Result<Vec<PacketSelection>, Outcome> {
    // The condition starts in the second line of the query.
    let failed = |error: Error| report(&error.in_part(condition, 2), terminal);
    let options = Options { analysis, ..Options::default() };
    if paths.iter().any(|path| path == Path::new("-")) {
        terminal.error(&"-: packets cannot be found for rows of standard input; give the file");
        return Err(Outcome::NoCapture);
    }
    let session = Session::new(paths, options).map_err(failed)?;
    if session.columns(log).map_err(failed)?.field_with_name("uid").is_err() {
        terminal.error(&format_args!("rows of {log} have no uid, which identifies their packets"));
        return Err(Outcome::NoCapture);
    }
    const NONE: &str = "CAST(NULL AS BIGINT)";
    let with_next = |order: &str| {
        format!("(SELECT *, lead(ts) OVER (PARTITION BY {order}) AS _next FROM {log})")
    };
    let (from, start, until, message, is_stream) = match log {
        // The answer is in the packet at ts + rtt, or without rtt before the next query with the same id. Over TCP, these
        // are the times at which the messages are complete.
        "dns" => (
            with_next("uid, trans_id ORDER BY ts"),
            "CAST(ts AS BIGINT)",
            "CASE WHEN rtt IS NULL THEN CAST(_next AS BIGINT) \
             ELSE CAST(ts AS BIGINT) + CAST(round(rtt * 1000000) AS BIGINT) + 2 END",
            "trans_id",
            "coalesce(proto = 'tcp', false)",
        ),
        "http" | "smtp" => {
            let from = with_next("uid ORDER BY ts, trans_depth");
            (from, "CAST(ts AS BIGINT)", "CAST(_next AS BIGINT)", NONE, "false")
        }
        log => (log.to_owned(), NONE, NONE, NONE, "false"),
    };
    let sql = format!(
        "SELECT DISTINCT uid, {start} AS _from, {until} AS _until, CAST({message} AS BIGINT) AS _id, \
         {is_stream} AS _stream FROM {from} WHERE uid IS NOT NULL AND (\n{condition}\n) ORDER BY _from, uid"
    );
    let mut answer = session.query(&sql).map_err(failed)?;
    let mut all = Vec::new();
    while let Some(batch) = answer.next().map_err(failed)? {
        let uids = batch.column(0).as_any().downcast_ref::<StringArray>();
        let number = |at: usize| batch.column(at).as_any().downcast_ref::<Int64Array>();
        let is_stream = batch.column(4).as_any().downcast_ref::<BooleanArray>();
        let (Some(uids), Some(from), Some(until), Some(id), Some(is_stream)) =
            (uids, number(1), number(2), number(3), is_stream)
        else {
            terminal.error(&format_args!("{log} has no uid that is text"));
            return Err(Outcome::NoCapture);
        };
        for row in 0..batch.num_rows() {
            let value = |array: &Int64Array| array.is_valid(row).then(|| array.value(row));
            all.push(PacketSelection {
                uid: uids.value(row).to_owned(),
                within: value(from).map(|from| (from, value(until).unwrap_or(i64::MAX))),
                message: value(id).and_then(|id| u16::try_from(id).ok()),
                is_stream: is_stream.value(row),
            });
        }
    }
    let (warnings, damaged) = session.problems();
    warnings.iter().chain(&damaged).for_each(|text| terminal.warning(text));
    Ok(all)
}

/// The text of `.help`.
fn help() -> String {
    let mut text = "\
Queries end with ; and may have several lines
  .tables         the tables, and the files that they are made of
  .schema TABLE   the columns of a table
  .functions      functions that gannet adds to SQL
  .help           this
  .quit           ends the prompt, as Ctrl-D does
Ctrl-C ends a query that runs, and clears one that is typed."
        .to_owned();
    text.push('\n');
    text
}

/// The text of `.functions`.
fn functions() -> String {
    FUNCTIONS.iter().map(|f| format!("  {:<30}  {}\n", f.usage, f.doc)).collect()
}

/// The path of the history file.
fn history() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("gannet/sql_history"))
}

/// Creates the folder of a file.
fn with_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    File::options().create(true).append(true).open(path).map(drop)
}
