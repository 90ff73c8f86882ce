//! A log as a DataFusion table over all files that have it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::DataType;
use arrow_schema::Schema;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::ScalarValue;
use datafusion::datasource::TableProvider;
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::ListingOptions;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::listing::ListingTableConfig;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::Operator;
use datafusion::logical_expr::TableProviderFilterPushDown;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::streaming::StreamingTableExec;
use datafusion::physical_plan::union::UnionExec;
use gannet_columns::TimeUnit;
use gannet_log::Field;

use crate::Error;
use crate::capture::CaptureRows;
use crate::capture::is_stdin;
use crate::convert::CAPTURE;
use crate::listing::Content;
use crate::listing::Format;
use crate::listing::Source;
use crate::session::Shared;
use crate::text::TextRows;

/// A log from captures and files.
#[derive(Debug)]
pub(crate) struct LogTable {
    name: String,
    schema: SchemaRef,
    /// Captures, which are read as one stream.
    captures: Vec<PathBuf>,
    log: &'static str,
    /// Whether a query names the hashes of files.
    hashes: bool,
    fields: Vec<Field>,
    texts: Vec<Text>,
    /// Parquet files, each with the value of the column `capture`.
    parquet: Vec<(Option<String>, ListingTable)>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Text {
    path: PathBuf,
    format: Format,
    fields: Vec<Field>,
}

impl LogTable {
    /// Creates the table of a log; returns `None` if no source has it. Optional columns of captures are included if the
    /// query mentions them, and files are hashed if it mentions a hash.
    pub(crate) fn new(
        log: &str,
        sources: &[Source],
        mentioned: &BTreeSet<String>,
        shared: &Arc<Shared>,
    ) -> Result<Option<Self>, Error> {
        let known = gannet_engine::schemas().into_iter().find(|schema| schema.path == log);
        let mut schema: Vec<arrow_schema::FieldRef> = Vec::new();
        let mut add = |more: &Schema| {
            for field in more.fields() {
                match schema.iter_mut().find(|known| known.name() == field.name()) {
                    None => schema.push(Arc::clone(field)),
                    Some(known) if known.data_type() == field.data_type() => {}
                    // If files disagree, the column is the wider number, or text.
                    Some(known) => {
                        let ty = common_type(known.data_type(), field.data_type());
                        *known = Arc::new(known.as_ref().clone().with_data_type(ty));
                    }
                }
            }
        };
        let (mut captures, mut texts, mut parquet) = (Vec::new(), Vec::new(), Vec::new());
        let mut fields = Vec::new();
        // Case does not matter in queries.
        let is_mentioned =
            |name: &str| mentioned.iter().any(|word| word.eq_ignore_ascii_case(name));
        let hashes = log == "files" && ["md5", "sha1", "sha256"].into_iter().any(is_mentioned);
        let mut path = "";
        if let Some(known) = known
            && sources.iter().any(|source| matches!(source.content, Content::Capture))
        {
            path = known.path;
            fields = known.fields;
            fields.retain(|field| !field.optional || is_mentioned(field.name));
            add(&gannet_columns::schema(&fields, TimeUnit::Microseconds));
        }
        for source in sources {
            match &source.content {
                Content::Capture if !path.is_empty() => captures.push(source.path.clone()),
                Content::Log { log: name, schema, format } if name == log => {
                    add(schema);
                    match format {
                        Format::Parquet => parquet.push(source.path.clone()),
                        format => texts.push(Text {
                            path: source.path.clone(),
                            format: *format,
                            fields: gannet_columns::fields_of(schema),
                        }),
                    }
                }
                Content::Capture | Content::Log { .. } => {}
            }
        }
        if captures.is_empty() && texts.is_empty() && parquet.is_empty() {
            return Ok(None);
        }
        // A log with its own column `capture` keeps it.
        let has_capture_column =
            shared.options.each && schema.iter().all(|field| field.name() != CAPTURE);
        let own = Arc::new(Schema::new(schema.clone()));
        if has_capture_column {
            schema.push(Arc::new(arrow_schema::Field::new(CAPTURE, DataType::Utf8, true)));
        }
        let schema = Arc::new(Schema::new(schema));
        let parquet = match (parquet.is_empty(), has_capture_column) {
            (true, _) => Vec::new(),
            (false, false) => vec![(None, listing(&parquet, &schema)?)],
            (false, true) => {
                let mut folders: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
                for path in parquet {
                    folders.entry(folder_of(&path)).or_default().push(path);
                }
                let each = folders
                    .into_iter()
                    .map(|(folder, paths)| Ok((Some(folder), listing(&paths, &own)?)));
                each.collect::<Result<_, Error>>()?
            }
        };
        Ok(Some(Self {
            name: log.to_owned(),
            schema,
            captures,
            log: path,
            hashes,
            fields,
            texts,
            parquet,
            shared: Arc::clone(shared),
        }))
    }
}

/// Returns the folder of a log, which identifies its capture.
fn folder_of(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or_else(|| Path::new(".")).display().to_string()
}

/// Returns a type that can represent values of both types.
fn common_type(a: &DataType, b: &DataType) -> DataType {
    match (a, b) {
        (DataType::Timestamp(..), DataType::Timestamp(..)) => a.clone(),
        (a, b) if a.is_integer() && b.is_integer() => DataType::Int64,
        (a, b) if a.is_numeric() && b.is_numeric() => DataType::Float64,
        _ => DataType::Utf8,
    }
}

fn listing(paths: &[PathBuf], schema: &SchemaRef) -> Result<ListingTable, Error> {
    let failed = |e: datafusion::error::DataFusionError| Error::input(e.to_string());
    let url = |path: &PathBuf| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        ListingTableUrl::parse(file_url(&path))
    };
    let urls = paths.iter().map(url).collect::<Result<Vec<_>>>().map_err(failed)?;
    let format = ParquetFormat::default().with_force_view_types(false);
    let options = ListingOptions::new(Arc::new(format)).with_file_extension("");
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(Arc::clone(schema));
    ListingTable::try_new(config).map_err(failed)
}

/// Returns a file URL in which pattern characters of the path are escaped.
fn file_url(path: &Path) -> String {
    let mut url = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(*byte)),
            byte => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

#[async_trait]
impl TableProvider for LogTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    // Filters only prune Parquet files and the end of captures, so DataFusion filters all rows again. They are not
    // applied to packets, because a tunnelled packet or a fragment may have other addresses than its connection.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(projection) => Arc::new(self.schema.project(projection)?),
            None => Arc::clone(&self.schema),
        };
        let mut streams: Vec<Arc<dyn PartitionStream>> = Vec::new();
        if self.captures.iter().any(|path| is_stdin(path)) {
            self.shared.reserve_stdin()?;
        }
        if !self.captures.is_empty() {
            streams.push(Arc::new(CaptureRows {
                schema: Arc::clone(&schema),
                log: self.log,
                hashes: self.hashes,
                fields: self.fields.clone(),
                paths: self.captures.clone(),
                limit,
                until: latest_time(filters),
                shared: Arc::clone(&self.shared),
            }));
        }
        for text in &self.texts {
            streams.push(Arc::new(TextRows {
                schema: Arc::clone(&schema),
                path: text.path.clone(),
                format: text.format,
                log: self.name.clone(),
                capture: self.shared.options.each.then(|| folder_of(&text.path)),
                fields: text.fields.clone(),
                shared: Arc::clone(&self.shared),
            }));
        }
        let mut plans: Vec<Arc<dyn ExecutionPlan>> = Vec::new();
        for (capture, parquet) in &self.parquet {
            let Some(capture) = capture else {
                plans.push(parquet.scan(state, projection, filters, limit).await?);
                continue;
            };
            // The column `capture` is the last one of the table, and not in the files.
            let last = self.schema.fields().len() - 1;
            let columns = projection.cloned().unwrap_or_else(|| (0..=last).collect());
            let in_files: Vec<usize> = columns.iter().copied().filter(|at| *at != last).collect();
            let is_of_files =
                |filter: &&Expr| !filter.column_refs().iter().any(|column| column.name == CAPTURE);
            let filters: Vec<Expr> = filters.iter().filter(is_of_files).cloned().collect();
            let plan = parquet.scan(state, Some(&in_files), &filters, limit).await?;
            let mut next = 0;
            let column = |at: &usize| -> (Arc<dyn PhysicalExpr>, String) {
                if *at == last {
                    let name = ScalarValue::Utf8(Some(capture.clone()));
                    return (Arc::new(Literal::new(name)), CAPTURE.to_owned());
                }
                let name = self.schema.field(*at).name();
                next += 1;
                (Arc::new(Column::new(name, next - 1)), name.clone())
            };
            let columns: Vec<_> = columns.iter().map(column).collect();
            plans.push(Arc::new(ProjectionExec::try_new(columns, plan)?));
        }
        if !streams.is_empty() {
            let plan =
                StreamingTableExec::try_new(Arc::clone(&schema), streams, None, [], false, limit)?;
            plans.push(Arc::new(plan));
        }
        match plans.len() {
            0 => Ok(Arc::new(EmptyExec::new(schema))),
            1 => Ok(plans.swap_remove(0)),
            _ => UnionExec::try_new(plans),
        }
    }
}

/// Returns the latest `ts`, in microseconds, of rows that can satisfy all filters.
fn latest_time(filters: &[Expr]) -> Option<i64> {
    filters.iter().filter_map(latest_time_of_filter).min()
}

fn latest_time_of_filter(filter: &Expr) -> Option<i64> {
    let is_time = |expr: &Expr| matches!(expr, Expr::Column(column) if column.name == "ts");
    match filter {
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::And => [&binary.left, &binary.right]
                .into_iter()
                .filter_map(|e| latest_time_of_filter(e))
                .min(),
            Operator::Lt | Operator::LtEq | Operator::Eq if is_time(&binary.left) => {
                micros(&binary.right)
            }
            Operator::Gt | Operator::GtEq | Operator::Eq if is_time(&binary.right) => {
                micros(&binary.left)
            }
            _ => None,
        },
        Expr::Between(between) if !between.negated && is_time(&between.expr) => {
            micros(&between.high)
        }
        _ => None,
    }
}

fn micros(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::TimestampMicrosecond(time, _), _) => *time,
        _ => None,
    }
}
