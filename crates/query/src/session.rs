//! A session: the captures and logs that queries read.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use arrow_schema::SchemaRef;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA_TABLES;
use datafusion::common::TableReference;
use datafusion::config::Dialect;
use datafusion::datasource::TableProvider as _;
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry as _;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::AggregateUDF;
use datafusion::prelude::SQLOptions;
use datafusion::prelude::SessionConfig;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::Ident;
use gannet_capture::Reader;
use tokio::runtime::Runtime;

use crate::Answer;
use crate::Error;
use crate::arithmetic::Planner;
use crate::compare::Comparisons;
use crate::functions;
use crate::hints::suggestion;
use crate::listing;
use crate::listing::Content;
use crate::listing::Source;
use crate::names;
use crate::show;
use crate::show::StatementKind;
use crate::sum::CheckedSum;
use crate::table::LogTable;

/// Options of a session.
#[derive(Clone)]
pub struct Options {
    /// Memory limit in bytes for sorts, groups and joins; beyond it, they spill to temporary files.
    pub memory: usize,
    /// Number of threads for the query, and for the analysis of captures.
    pub threads: usize,
    /// Whether each capture is analysed separately, and every table has the column `capture`.
    pub each: bool,
    /// Options of the analysis of captures. Its logs and their output are set by the query.
    pub analysis: gannet_engine::Options,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { memory: 1 << 30, threads, each: false, analysis: gannet_engine::Options::default() }
    }
}

/// State shared by the session, its tables and its functions.
pub(crate) struct Shared {
    pub(crate) options: Options,
    /// Cancels the query.
    pub(crate) stop: Arc<AtomicBool>,
    problems: Mutex<Problems>,
    captures: Mutex<Vec<PathBuf>>,
    /// Files that the latest query reads.
    inputs: Mutex<Vec<PathBuf>>,
    /// Number of packets analysed.
    packets: AtomicU64,
    /// Reader of the capture on standard input, until a query takes it.
    stdin: Mutex<Option<Reader>>,
    /// Whether a table reads standard input.
    is_stdin_reserved: AtomicBool,
}

#[derive(Default)]
struct Problems {
    warnings: Vec<String>,
    damage: Vec<String>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl Shared {
    fn problems(&self) -> std::sync::MutexGuard<'_, Problems> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a warning, once for each text.
    pub(crate) fn warn(&self, text: String) {
        let mut problems = self.problems();
        if !problems.warnings.contains(&text) {
            problems.warnings.push(text);
        }
    }

    /// Reports a truncated or damaged input, once for each text. The result has the rows before the damage.
    pub(crate) fn report_damage(&self, text: String) {
        let mut problems = self.problems();
        if !problems.damage.contains(&text) {
            problems.damage.push(text);
        }
    }

    /// Adds to the number of analysed packets.
    pub(crate) fn analysed(&self, packets: usize) {
        self.packets.fetch_add(packets as u64, Ordering::Relaxed);
    }

    /// Takes the reader of standard input; an error if it was taken before.
    pub(crate) fn stdin(&self) -> Result<Reader, Error> {
        let reader = self.stdin.lock().unwrap_or_else(PoisonError::into_inner).take();
        reader.ok_or_else(Self::no_stdin)
    }

    /// Reserves standard input for a table; an error if it was reserved before.
    pub(crate) fn reserve_stdin(&self) -> Result<(), Error> {
        match self.is_stdin_reserved.swap(true, Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Self::no_stdin()),
        }
    }

    fn no_stdin() -> Error {
        let hint = "with the capture in a file, or with logs of it (gannet analyze --format parquet -o logs -), a query has \
                    several tables";
        let error = Error::query("standard input can be read only once, for one table");
        error.with_hint(Some(hint.to_owned()))
    }

    pub(crate) fn captures(&self) -> Vec<PathBuf> {
        self.captures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Runs queries over captures and logs.
pub struct Session {
    context: SessionContext,
    sources: Vec<Source>,
    shared: Arc<Shared>,
}

impl Session {
    /// Creates a session with captures, logs, folders of both, and glob patterns. `paths` may be empty if queries name
    /// files themselves.
    ///
    /// # Errors
    /// If a path does not exist, or is neither a capture nor a log.
    pub fn new(paths: &[PathBuf], options: Options) -> Result<Self, Error> {
        let mut skipped = Vec::new();
        let sources = listing::list(paths, &mut skipped)?;
        let failed = |e: DataFusionError| Error::new(crate::ErrorKind::Run, e.to_string());
        let pool = Arc::new(FairSpillPool::new(options.memory));
        let environment =
            RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().map_err(failed)?;
        let mut config = SessionConfig::new().with_target_partitions(options.threads.max(1));
        let settings = config.options_mut();
        settings.sql_parser.enable_ident_normalization = false;
        settings.catalog.information_schema = true;
        settings.execution.time_zone = Some("UTC".into());
        // Filters use the page index and Bloom filters of Parquet files.
        settings.execution.parquet.pushdown_filters = true;
        settings.execution.parquet.reorder_filters = true;
        let mut context = SessionContext::new_with_config_rt(config, environment);
        let captures = captures_of(&sources);
        let shared = Arc::new(Shared {
            options,
            stop: Arc::default(),
            problems: Mutex::default(),
            captures: Mutex::new(captures),
            inputs: Mutex::default(),
            packets: AtomicU64::new(0),
            stdin: Mutex::default(),
            is_stdin_reserved: AtomicBool::new(false),
        });
        for function in functions::all(&shared) {
            context.register_udf(function);
        }
        context.register_udaf(AggregateUDF::from(CheckedSum::new()));
        context.register_expr_planner(Arc::new(Planner)).map_err(failed)?;
        context.register_function_rewrite(Arc::new(Comparisons)).map_err(failed)?;
        for text in skipped {
            shared.warn(format!("skipped {text}"));
        }
        Ok(Self { context, sources, shared })
    }

    /// Sets the reader of standard input, for the path `-`. Only one table of one query can read it.
    pub fn set_stdin(&self, reader: Reader) {
        *self.shared.stdin.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
    }

    /// Returns the flag that cancels the running query.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.stop)
    }

    /// Returns the problems with inputs since the last call: first warnings, then errors for truncated or damaged
    /// inputs.
    pub fn problems(&self) -> (Vec<String>, Vec<String>) {
        let problems = std::mem::take(&mut *self.shared.problems());
        (problems.warnings, problems.damage)
    }

    /// Returns the files that the latest query may read: those of the session, and those that the query names.
    pub fn inputs(&self) -> Vec<PathBuf> {
        self.shared.inputs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of packets analysed since the last call.
    pub fn analysed(&self) -> u64 {
        self.shared.packets.swap(0, Ordering::Relaxed)
    }

    /// Returns the sorted names of the tables. Captures contribute all logs of the analysis.
    pub fn tables(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        for source in &self.sources {
            match &source.content {
                Content::Capture => {
                    names.extend(gannet_engine::schemas().iter().map(|s| s.path.to_owned()));
                }
                Content::Log { log, .. } => {
                    names.insert(log.clone());
                }
            }
        }
        names.into_iter().collect()
    }

    /// Returns the sorted names of the tables, each with its log files.
    pub fn files_of_tables(&self) -> Vec<(String, Vec<PathBuf>)> {
        let of = |table: String| {
            let is = |source: &&Source| matches!(&source.content, Content::Log { log, .. } if *log == table);
            let logs = self.sources.iter().filter(is).map(|source| source.path.clone());
            let logs = logs.collect();
            (table, logs)
        };
        self.tables().into_iter().map(of).collect()
    }

    /// Returns the captures, from which every log of the analysis can be created.
    pub fn captures(&self) -> Vec<PathBuf> {
        captures_of(&self.sources)
    }

    /// Returns the schema of a table.
    ///
    /// # Errors
    /// If no table has this name.
    pub fn columns(&self, table: &str) -> Result<SchemaRef, Error> {
        let found = LogTable::new(table, &self.sources, &BTreeSet::new(), &self.shared)?;
        let table = found.ok_or_else(|| self.no_table(table))?;
        Ok(table.schema())
    }

    /// Returns the sorted names of all functions.
    pub fn functions(&self) -> Vec<String> {
        let state = self.context.state();
        let mut names: BTreeSet<String> = state.scalar_functions().keys().cloned().collect();
        names.extend(state.aggregate_functions().keys().cloned());
        names.extend(state.window_functions().keys().cloned());
        names.into_iter().collect()
    }

    /// Plans and starts a query.
    ///
    /// # Errors
    /// If the query is invalid.
    pub fn query(&self, sql: &str) -> Result<Answer, Error> {
        self.shared.stop.store(false, Ordering::Relaxed);
        let failed = |e: DataFusionError| Error::of(&e, sql);
        show::reject_summarize(sql)?;
        let mut statement =
            self.context.state().sql_to_statement(sql, &Dialect::Generic).map_err(failed)?;
        if let StatementKind::Tables(condition) = show::classify(&mut statement, sql)? {
            let known = self.tables();
            let names: Vec<_> =
                known.iter().map(|name| format!("('{}')", name.replace('\'', "''"))).collect();
            let condition = condition.unwrap_or_else(|| "true".to_owned());
            return match names.is_empty() {
                true => self.query("SELECT '' AS name WHERE false"),
                false => {
                    let names = names.join(", ");
                    self.query(&format!("SELECT * FROM (VALUES {names}) t(name) WHERE {condition}"))
                }
            };
        }
        let declared = names::declared(&mut statement, sql)?;
        let labels = names::labels(&statement);
        let mut columns = BTreeSet::new();
        let mut captures = captures_of(&self.sources);
        let mut inputs = paths_of(&self.sources);
        let mut registered = BTreeSet::new();
        let mut is_catalog_registered = false;
        names::tables(&mut statement, |parts| {
            if let [schema, table] = parts
                && schema.value.eq_ignore_ascii_case(INFORMATION_SCHEMA)
            {
                if !std::mem::replace(&mut is_catalog_registered, true) {
                    self.register_catalog()?;
                }
                let lower =
                    |part: &Ident| Ident { value: part.value.to_lowercase(), ..part.clone() };
                let known = self.columns_of_catalog(&lower(table).value);
                columns.extend(known.map_err(|error| error.at(sql, table.span))?);
                return Ok(Some(vec![lower(schema), lower(table)]));
            }
            let found =
                self.resolve(parts, &declared).map_err(|(error, span)| error.at(sql, span))?;
            let Some(ResolvedTable { name, table, sources, ident }) = found else {
                return Ok(None);
            };
            columns.extend(table.schema().fields().iter().map(|field| field.name().clone()));
            captures.extend(captures_of(&sources));
            inputs.extend(paths_of(&sources));
            if registered.insert(name.clone()) {
                let reference = TableReference::bare(name);
                self.context.deregister_table(reference.clone()).map_err(failed)?;
                self.context.register_table(reference, Arc::new(table)).map_err(failed)?;
            }
            Ok(Some(vec![ident]))
        })?;
        names::columns(&mut statement, &declared, columns.iter().map(String::as_str))?;
        *self.shared.captures.lock().unwrap_or_else(PoisonError::into_inner) = captures;
        *self.shared.inputs.lock().unwrap_or_else(PoisonError::into_inner) = inputs;
        let runtime = runtime(self.shared.options.threads)?;
        let stream = runtime.block_on(async {
            let plan = self.context.state().statement_to_plan(statement).await?;
            let only_queries = SQLOptions::new()
                .with_allow_ddl(false)
                .with_allow_dml(false)
                .with_allow_statements(false);
            only_queries.verify_plan(&plan)?;
            self.context.execute_logical_plan(plan).await?.execute_stream().await
        });
        let stream = stream.map_err(failed)?;
        let stop = Arc::clone(&self.shared.stop);
        Ok(Answer::start(sql, stream, labels, runtime, stop))
    }

    /// Registers the tables of the session for `information_schema`, instead of those of earlier queries.
    fn register_catalog(&self) -> Result<(), Error> {
        let failed = |e: DataFusionError| Error::new(crate::ErrorKind::Run, e.to_string());
        let public =
            self.context.catalog("datafusion").and_then(|catalog| catalog.schema("public"));
        let old = public.map(|schema| schema.table_names()).unwrap_or_default();
        for name in old {
            self.context.deregister_table(TableReference::bare(name)).map_err(failed)?;
        }
        for name in self.tables() {
            if let Some(table) =
                LogTable::new(&name, &self.sources, &BTreeSet::new(), &self.shared)?
            {
                let reference = TableReference::bare(name);
                self.context.register_table(reference, Arc::new(table)).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Returns the column names of a table of `information_schema`.
    fn columns_of_catalog(&self, table: &str) -> Result<Vec<String>, Error> {
        let reference = TableReference::partial(INFORMATION_SCHEMA, table);
        let found = runtime(1)?.block_on(self.context.table_provider(reference));
        let Ok(found) = found else {
            let known = INFORMATION_SCHEMA_TABLES;
            let near = suggestion(table, known.iter().copied());
            let hint = near.unwrap_or_else(|| format!("its tables are {}", known.join(", ")));
            let error = Error::query(format!("{INFORMATION_SCHEMA} has no table '{table}'"));
            return Err(error.with_hint(Some(hint)));
        };
        Ok(found.schema().fields().iter().map(|field| field.name().clone()).collect())
    }

    fn no_table(&self, name: &str) -> Error {
        let known = self.tables();
        let hint = match known.is_empty() {
            true => Some(
                "no capture or log is given; name one in the query: FROM 'trace.pcap'".to_owned(),
            ),
            false => suggestion(name, known.iter().map(String::as_str)).or_else(|| {
                let most = known.len() <= MAX_LISTED_TABLES;
                let names = known
                    .iter()
                    .take(MAX_LISTED_TABLES)
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(", ");
                Some(format!("the tables are {names}{}", if most { "" } else { ", …" }))
            }),
        };
        let lower = name.to_ascii_lowercase();
        if lower.starts_with("read_") || lower == "parquet_scan" {
            let hint = Some(
                "write the path of a table in single quotes: FROM 'logs/conn.parquet'".to_owned(),
            );
            return Error::query(format!("no function is named '{name}'")).with_hint(hint);
        }
        let is_log = gannet_engine::schemas().iter().any(|schema| schema.path == lower);
        if is_log && !known.is_empty() {
            let names = known
                .iter()
                .take(MAX_LISTED_TABLES)
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ");
            let hint = format!(
                "an analysis writes the logs that have rows; those of the paths are {names}"
            );
            return Error::query(format!("no file has the log '{name}'")).with_hint(Some(hint));
        }
        if Path::new(name).extension().is_some() {
            let hint = Some(format!("write paths in single quotes: FROM '{name}'"));
            return Error::query(format!("no table is named '{name}'")).with_hint(hint);
        }
        Error::query(format!("no table is named '{name}'")).with_hint(hint)
    }

    /// Resolves a table name: a log of all sources, a file, or a log of a file. Returns `None` for names that the query
    /// or DataFusion defines.
    fn resolve(
        &self,
        parts: &[Ident],
        declared: &names::Declared,
    ) -> Result<Option<ResolvedTable>, (Error, datafusion::sql::sqlparser::tokenizer::Span)> {
        let Some(first) = parts.first() else { return Ok(None) };
        let wrong = |error| (error, first.span);
        let name = &first.value;
        let mentioned = &declared.mentioned;
        match parts {
            [_] if declared.has_table(name) || self.is_table_function(name) => Ok(None),
            [_] if is_path(first) => {
                let (mut skipped, path) = (Vec::new(), PathBuf::from(name));
                let sources = listing::list(&[path], &mut skipped).map_err(wrong)?;
                skipped.into_iter().for_each(|text| self.shared.warn(format!("skipped {text}")));
                let log = only_log(Path::new(name), &sources).map_err(wrong)?;
                let table =
                    LogTable::new(&log, &sources, mentioned, &self.shared).map_err(wrong)?;
                let missing = || wrong(Error::query(format!("{name} has no log '{log}'")));
                Ok(Some(ResolvedTable::new(name, table.ok_or_else(missing)?, sources, first)))
            }
            [_] => {
                let known = self.tables();
                let is = |known: &&String| known.eq_ignore_ascii_case(name);
                let log = known.iter().find(is).ok_or_else(|| wrong(self.no_table(name)))?;
                let table =
                    LogTable::new(log, &self.sources, mentioned, &self.shared).map_err(wrong)?;
                let table = table.ok_or_else(|| wrong(self.no_table(name)))?;
                Ok(Some(ResolvedTable::new(log, table, Vec::new(), first)))
            }
            [_, log] if is_path(first) => {
                let mut skipped = Vec::new();
                let sources = listing::list(&[PathBuf::from(name)], &mut skipped).map_err(wrong)?;
                let table =
                    LogTable::new(&log.value, &sources, mentioned, &self.shared).map_err(wrong)?;
                let missing = || {
                    let schemas = gannet_engine::schemas();
                    let hint = suggestion(&log.value, schemas.iter().map(|schema| schema.path));
                    let what = format!("{name} has no log '{}'", log.value);
                    (Error::query(what).with_hint(hint), log.span)
                };
                let full = format!("{name}.{}", log.value);
                Ok(Some(ResolvedTable::new(&full, table.ok_or_else(missing)?, sources, first)))
            }
            [_, ending] if !is_schema(name) => {
                let path = format!("{name}.{}", ending.value);
                let hint = match Path::new(&path).exists() {
                    true => format!("write paths in single quotes: FROM '{path}'"),
                    false => "write a log of a capture as FROM 'trace.pcap'.dns".to_owned(),
                };
                let error = Error::query(format!("no table is named '{path}'"));
                Err((error.with_hint(Some(hint)), first.span.union(&ending.span)))
            }
            // DataFusion reports unknown names.
            _ => Ok(None),
        }
    }

    fn is_table_function(&self, name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        lower == "unnest" || self.context.state().table_functions().contains_key(&lower)
    }
}

impl Drop for Session {
    /// Cancels analyses of captures.
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// The schema with tables of tables and columns.
const INFORMATION_SCHEMA: &str = "information_schema";

/// Maximum number of tables in a hint.
const MAX_LISTED_TABLES: usize = 20;

/// Creates the thread pool of a query.
fn runtime(threads: usize) -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.max(1))
        .enable_time()
        .build()
        .map_err(|e| Error::new(crate::ErrorKind::Run, e.to_string()))
}

/// A table that a name was resolved to.
struct ResolvedTable {
    /// The name that the table is registered under.
    name: String,
    table: LogTable,
    /// Files that the name refers to; empty for tables of the session.
    sources: Vec<Source>,
    ident: Ident,
}

impl ResolvedTable {
    fn new(name: &str, table: LogTable, sources: Vec<Source>, at: &Ident) -> Self {
        let ident = Ident { value: name.to_owned(), quote_style: Some('"'), span: at.span };
        Self { name: name.to_owned(), table, sources, ident }
    }
}

fn is_schema(name: &str) -> bool {
    [INFORMATION_SCHEMA, "public"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn captures_of(sources: &[Source]) -> Vec<PathBuf> {
    let captures = sources.iter().filter(|source| matches!(source.content, Content::Capture));
    captures.map(|source| source.path.clone()).collect()
}

fn paths_of(sources: &[Source]) -> Vec<PathBuf> {
    sources.iter().map(|source| source.path.clone()).collect()
}

/// Whether an identifier is a path: in single quotes, or in other quotes and similar to a path or existing.
fn is_path(ident: &Ident) -> bool {
    let looks_like_path = ident.value.contains('/') || Path::new(&ident.value).exists();
    ident.quote_style == Some('\'') || ident.quote_style.is_some() && looks_like_path
}

/// Returns the log that a path without a log name refers to: the only one in its files, or conn for captures.
fn only_log(path: &Path, sources: &[Source]) -> Result<String, Error> {
    let mut logs: BTreeSet<&str> = BTreeSet::new();
    for source in sources {
        logs.insert(match &source.content {
            Content::Capture => "conn",
            Content::Log { log, .. } => log,
        });
    }
    match logs.len() {
        1 => Ok(logs.first().copied().unwrap_or_default().to_owned()),
        0 => Err(Error::input(format!("{} contains no captures or logs", path.display()))),
        _ => {
            let path = path.display();
            let names: Vec<_> = logs.into_iter().collect();
            let hint = format!("name one of them: '{path}'.{}", names[0]);
            let what = format!("{path} has several logs: {}", names.join(", "));
            Err(Error::query(what).with_hint(Some(hint)))
        }
    }
}
