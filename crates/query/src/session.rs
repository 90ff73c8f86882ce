//! Captures and logs that queries are asked about.

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
use crate::show::Asked;
use crate::sum::CheckedSum;
use crate::table::LogTable;

/// How queries run.
#[derive(Clone)]
pub struct Options {
    /// Bytes that sorts, groups and joins may take; beyond, they use temporary files.
    pub memory: usize,
    /// Threads that compute, and threads that analyse.
    pub threads: usize,
    /// Each capture is analysed alone, and every table has the column `capture`.
    pub each: bool,
    /// How captures are analysed. Where logs go, and which, is up to the query.
    pub analysis: gannet_engine::Options,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { memory: 1 << 30, threads, each: false, analysis: gannet_engine::Options::default() }
    }
}

/// What the parts of a query share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    /// The query is to end.
    pub(crate) stop: Arc<AtomicBool>,
    problems: Mutex<Problems>,
    captures: Mutex<Vec<PathBuf>>,
    /// The files that the latest query reads.
    inputs: Mutex<Vec<PathBuf>>,
    /// Packets that analyses of captures took.
    packets: AtomicU64,
    /// The capture on standard input, until it is read.
    stdin: Mutex<Option<Reader>>,
    /// A table reads standard input.
    is_stdin_taken: AtomicBool,
}

#[derive(Default)]
struct Problems {
    warnings: Vec<String>,
    damaged: Vec<String>,
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

    /// Something was left out that was not named.
    pub(crate) fn warn(&self, text: String) {
        let mut problems = self.problems();
        if !problems.warnings.contains(&text) {
            problems.warnings.push(text);
        }
    }

    /// An input is cut or damaged: the answer has what is before.
    pub(crate) fn damaged(&self, text: String) {
        let mut problems = self.problems();
        if !problems.damaged.contains(&text) {
            problems.damaged.push(text);
        }
    }

    /// An analysis took this many packets.
    pub(crate) fn analysed(&self, packets: usize) {
        self.packets.fetch_add(packets as u64, Ordering::Relaxed);
    }

    /// The capture on standard input, once.
    pub(crate) fn stdin(&self) -> Result<Reader, Error> {
        let reader = self.stdin.lock().unwrap_or_else(PoisonError::into_inner).take();
        reader.ok_or_else(Self::no_stdin)
    }

    /// Reserves standard input for a table of a query, once.
    pub(crate) fn take_stdin(&self) -> Result<(), Error> {
        match self.is_stdin_taken.swap(true, Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Self::no_stdin()),
        }
    }

    fn no_stdin() -> Error {
        let hint = "with the capture in a file, or with logs of it (gannet analyze --format parquet -o logs -), a query has \
                    several tables";
        let error = Error::query("standard input is read once, for one table");
        error.with_hint(Some(hint.to_owned()))
    }

    pub(crate) fn captures(&self) -> Vec<PathBuf> {
        self.captures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers queries about captures and logs.
pub struct Session {
    context: SessionContext,
    sources: Vec<Source>,
    shared: Arc<Shared>,
}

impl Session {
    /// Of captures, logs, folders of both, and patterns of paths. Where a query names files itself, there may be none.
    ///
    /// # Errors
    /// Where a path does not exist, or is neither a capture nor a log.
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
        // Which rows a file has is decided by its pages and bloom filters.
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
            is_stdin_taken: AtomicBool::new(false),
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

    /// The capture on standard input, which the path `-` of the session stands for. One query reads it, for one table.
    pub fn set_stdin(&self, reader: Reader) {
        *self.shared.stdin.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
    }

    /// Set to end the query that runs.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.stop)
    }

    /// Returns the problems with inputs since the last call: first warnings, then errors for truncated or damaged
    /// inputs.
    pub fn problems(&self) -> (Vec<String>, Vec<String>) {
        let problems = std::mem::take(&mut *self.shared.problems());
        (problems.warnings, problems.damaged)
    }

    /// The files that the latest query may read: those of the session, and those that the query names.
    pub fn inputs(&self) -> Vec<PathBuf> {
        self.shared.inputs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Packets that analyses of captures took since the last call.
    pub fn analysed(&self) -> u64 {
        self.shared.packets.swap(0, Ordering::Relaxed)
    }

    /// Names of the tables, in order. Of captures all logs that an analysis can make.
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

    /// Names of the tables, in order, each with the logs that it is made of.
    pub fn files_of_tables(&self) -> Vec<(String, Vec<PathBuf>)> {
        let of = |table: String| {
            let is = |source: &&Source| matches!(&source.content, Content::Log { log, .. } if *log == table);
            let logs = self.sources.iter().filter(is).map(|source| source.path.clone());
            let logs = logs.collect();
            (table, logs)
        };
        self.tables().into_iter().map(of).collect()
    }

    /// The captures, of which every table of an analysis can be made.
    pub fn captures(&self) -> Vec<PathBuf> {
        captures_of(&self.sources)
    }

    /// The columns of a table.
    ///
    /// # Errors
    /// Where no table has this name.
    pub fn columns(&self, table: &str) -> Result<SchemaRef, Error> {
        let found = LogTable::new(table, &self.sources, &BTreeSet::new(), &self.shared)?;
        let table = found.ok_or_else(|| self.no_table(table))?;
        Ok(table.schema())
    }

    /// Names of all functions.
    pub fn functions(&self) -> Vec<String> {
        let state = self.context.state();
        let mut names: BTreeSet<String> = state.scalar_functions().keys().cloned().collect();
        names.extend(state.aggregate_functions().keys().cloned());
        names.extend(state.window_functions().keys().cloned());
        names.into_iter().collect()
    }

    /// Plans a query; its rows are computed as they are read.
    ///
    /// # Errors
    /// Where the query is wrong.
    pub fn query(&self, sql: &str) -> Result<Answer, Error> {
        self.shared.stop.store(false, Ordering::Relaxed);
        let failed = |e: DataFusionError| Error::of(&e, sql);
        show::refuse(sql)?;
        let mut statement =
            self.context.state().sql_to_statement(sql, &Dialect::Generic).map_err(failed)?;
        if let Asked::Tables(condition) = show::asked(&mut statement, sql)? {
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
        let mut is_catalogued = false;
        names::tables(&mut statement, |parts| {
            if let [schema, table] = parts
                && schema.value.eq_ignore_ascii_case(CATALOG)
            {
                if !std::mem::replace(&mut is_catalogued, true) {
                    self.catalog()?;
                }
                let lower =
                    |part: &Ident| Ident { value: part.value.to_lowercase(), ..part.clone() };
                let known = self.columns_of_catalog(&lower(table).value);
                columns.extend(known.map_err(|error| error.at(sql, table.span))?);
                return Ok(Some(vec![lower(schema), lower(table)]));
            }
            let found =
                self.resolve(parts, &declared).map_err(|(error, span)| error.at(sql, span))?;
            let Some(FoundTable { name, table, sources, ident }) = found else { return Ok(None) };
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

    /// Makes the catalogue list the tables of the session, with their columns.
    fn catalog(&self) -> Result<(), Error> {
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

    /// Names of the columns of a table of the catalogue itself.
    fn columns_of_catalog(&self, table: &str) -> Result<Vec<String>, Error> {
        let reference = TableReference::partial(CATALOG, table);
        let found = runtime(1)?.block_on(self.context.table_provider(reference));
        let Ok(found) = found else {
            let known = INFORMATION_SCHEMA_TABLES;
            let near = suggestion(table, known.iter().copied());
            let hint = near.unwrap_or_else(|| format!("its tables are {}", known.join(", ")));
            let error = Error::query(format!("{CATALOG} has no table '{table}'"));
            return Err(error.with_hint(Some(hint)));
        };
        Ok(found.schema().fields().iter().map(|field| field.name().clone()).collect())
    }

    fn no_table(&self, name: &str) -> Error {
        let known = self.tables();
        let hint = match known.is_empty() {
            true => Some(
                "no capture or log is given; FROM 'trace.pcap' names one in the query".to_owned(),
            ),
            false => suggestion(name, known.iter().map(String::as_str)).or_else(|| {
                let most = known.len() <= SHOWN;
                let names =
                    known.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
                Some(format!("the tables are {names}{}", if most { "" } else { ", …" }))
            }),
        };
        let lower = name.to_ascii_lowercase();
        if lower.starts_with("read_") || lower == "parquet_scan" {
            let hint =
                Some("a path in single quotes is a table: FROM 'logs/conn.parquet'".to_owned());
            return Error::query(format!("no function is named '{name}'")).with_hint(hint);
        }
        let is_log = gannet_engine::schemas().iter().any(|schema| schema.path == lower);
        if is_log && !known.is_empty() {
            let names = known.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
            let hint = format!(
                "an analysis writes the logs that have rows; those of the paths are {names}"
            );
            return Error::query(format!("no file has the log '{name}'")).with_hint(Some(hint));
        }
        if Path::new(name).extension().is_some() {
            let hint = Some(format!("a path is in single quotes: FROM '{name}'"));
            return Error::query(format!("no table is named '{name}'")).with_hint(hint);
        }
        Error::query(format!("no table is named '{name}'")).with_hint(hint)
    }

    /// The table that a name stands for: a log of all sources, a file, or a log of a file. `None` for names that the
    /// query declares, and DataFusion's own.
    fn resolve(
        &self,
        parts: &[Ident],
        declared: &names::Declared,
    ) -> Result<Option<FoundTable>, (Error, datafusion::sql::sqlparser::tokenizer::Span)> {
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
                Ok(Some(FoundTable::new(name, table.ok_or_else(missing)?, sources, first)))
            }
            [_] => {
                let known = self.tables();
                let is = |known: &&String| known.eq_ignore_ascii_case(name);
                let log = known.iter().find(is).ok_or_else(|| wrong(self.no_table(name)))?;
                let table =
                    LogTable::new(log, &self.sources, mentioned, &self.shared).map_err(wrong)?;
                let table = table.ok_or_else(|| wrong(self.no_table(name)))?;
                Ok(Some(FoundTable::new(log, table, Vec::new(), first)))
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
                Ok(Some(FoundTable::new(&full, table.ok_or_else(missing)?, sources, first)))
            }
            [_, ending] if !is_schema(name) => {
                let path = format!("{name}.{}", ending.value);
                let hint = match Path::new(&path).exists() {
                    true => format!("a path is in single quotes: FROM '{path}'"),
                    false => "a log of a capture is FROM 'trace.pcap'.dns".to_owned(),
                };
                let error = Error::query(format!("no table is named '{path}'"));
                Err((error.with_hint(Some(hint)), first.span.union(&ending.span)))
            }
            // DataFusion reports what it does not know.
            _ => Ok(None),
        }
    }

    fn is_table_function(&self, name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        lower == "unnest" || self.context.state().table_functions().contains_key(&lower)
    }
}

impl Drop for Session {
    /// Analyses of captures end.
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// The schema whose tables list tables and columns.
const CATALOG: &str = "information_schema";

/// Tables that a hint names.
const SHOWN: usize = 20;

/// The threads of a query.
fn runtime(threads: usize) -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.max(1))
        .enable_time()
        .build()
        .map_err(|e| Error::new(crate::ErrorKind::Run, e.to_string()))
}

/// A table that a name stands for.
struct FoundTable {
    /// Under which it is registered.
    name: String,
    table: LogTable,
    /// The files that the query names with it.
    sources: Vec<Source>,
    ident: Ident,
}

impl FoundTable {
    fn new(name: &str, table: LogTable, sources: Vec<Source>, at: &Ident) -> Self {
        let ident = Ident { value: name.to_owned(), quote_style: Some('"'), span: at.span };
        Self { name: name.to_owned(), table, sources, ident }
    }
}

fn is_schema(name: &str) -> bool {
    [CATALOG, "public"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn captures_of(sources: &[Source]) -> Vec<PathBuf> {
    let captures = sources.iter().filter(|source| matches!(source.content, Content::Capture));
    captures.map(|source| source.path.clone()).collect()
}

fn paths_of(sources: &[Source]) -> Vec<PathBuf> {
    sources.iter().map(|source| source.path.clone()).collect()
}

/// Names of files are in single quotes; others may be if they look like one.
fn is_path(ident: &Ident) -> bool {
    let looks = ident.value.contains('/') || Path::new(&ident.value).exists();
    ident.quote_style == Some('\'') || ident.quote_style.is_some() && looks
}

/// The log that a path alone stands for: the only one in its files, or conn.
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
        0 => Err(Error::input(format!("{} has no capture and no log", path.display()))),
        _ => {
            let path = path.display();
            let names: Vec<_> = logs.into_iter().collect();
            let hint = format!("name one of them: '{path}'.{}", names[0]);
            let what = format!("{path} has several logs: {}", names.join(", "));
            Err(Error::query(what).with_hint(Some(hint)))
        }
    }
}
