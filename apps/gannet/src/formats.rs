//! The formats of logs: `--format`, `--json` and their options.

use std::sync::Arc;

use clap::ValueEnum;
use gannet_log::JsonTimes;
use gannet_log::Output;
use gannet_log::TextOutput;

/// Options for the format of logs.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Formats {
    /// Formats of the logs, like tsv,parquet: each log is written in all of them [default: tsv]
    #[arg(long, value_name = "FORMATS", value_delimiter = ',')]
    format: Vec<Format>,
    /// One JSON object per row instead of tab-separated values; the same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// How JSON shows points in time
    #[arg(long, value_name = "HOW", default_value = "epoch")]
    json_times: Times,
    /// Parquet and Arrow files by the time of their rows: LOG/day=2026-11-21/part-0000.parquet
    #[arg(long, value_name = "BY", default_value = "none")]
    partition: Partition,
    /// Unit of points in time in Parquet and Arrow files
    #[arg(long, value_name = "UNIT", default_value = "us")]
    time_unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tab-separated values: conn.log
    Tsv,
    /// One JSON object per row: conn.log, or conn.json if TSV is also written
    Json,
    /// Parquet with zstd: conn.parquet
    Parquet,
    /// Arrow's file format: conn.arrow
    Arrow,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Times {
    /// Seconds since 1970, with a fraction
    Epoch,
    /// 2026-11-21T08:47:00.000000Z
    Iso8601,
    /// Whole milliseconds since 1970
    Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Partition {
    /// One file per log
    None,
    /// One folder per day
    Day,
    /// One folder per hour
    Hour,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Unit {
    /// Microseconds, which all readers take
    Us,
    /// Nanoseconds
    Ns,
}

/// A format that this build does not include.
#[derive(Debug)]
pub(crate) struct LeftOut(pub(crate) &'static str);

impl Formats {
    /// Applies these options to those of the logs.
    pub(crate) fn apply(&self, logs: &mut gannet_log::Options) -> Result<(), LeftOut> {
        let times = self.json_times();
        let mut formats = self.all();
        let mut seen = Vec::new();
        formats.retain(|format| {
            !seen.contains(format) && {
                seen.push(*format);
                true
            }
        });
        logs.format = match formats[..] {
            [Format::Tsv] => gannet_log::Format::Tsv,
            [Format::Json] => gannet_log::Format::Json(times),
            _ => {
                let outputs = formats.iter().map(|format| self.output(*format, &formats, times));
                logs.outputs = outputs.collect::<Result<_, _>>()?;
                gannet_log::Format::Packed
            }
        };
        Ok(())
    }

    /// The format of points in time in JSON.
    pub(crate) fn json_times(&self) -> JsonTimes {
        match self.json_times {
            Times::Epoch => JsonTimes::Epoch,
            Times::Iso8601 => JsonTimes::Iso8601,
            Times::Millis => JsonTimes::Millis,
        }
    }

    /// All formats that were requested.
    fn all(&self) -> Vec<Format> {
        match (self.json, self.format.is_empty()) {
            (true, _) => vec![Format::Json],
            (false, true) => vec![Format::Tsv],
            (false, false) => self.format.clone(),
        }
    }

    /// A warning about an option of a format that is not written. With `is_json`, JSON is written in any case.
    pub(crate) fn without_effect(&self, is_json: bool) -> Option<&'static str> {
        let formats = self.all();
        let is_json = is_json || formats.contains(&Format::Json);
        let is_columns = formats.contains(&Format::Parquet) || formats.contains(&Format::Arrow);
        if self.partition != Partition::None && !is_columns {
            Some("--partition has no effect without Parquet or Arrow files (--format parquet)")
        } else if !matches!(self.time_unit, Unit::Us) && !is_columns {
            Some("--time-unit has no effect without Parquet or Arrow files (--format parquet)")
        } else if !matches!(self.json_times, Times::Epoch) && !is_json {
            Some("--json-times has no effect without JSON logs (--json)")
        } else {
            None
        }
    }

    /// Whether TSV was requested by name, and is not only the default.
    pub(crate) fn names_tsv(&self) -> bool {
        self.format.contains(&Format::Tsv)
    }

    fn output(
        &self,
        format: Format,
        formats: &[Format],
        times: JsonTimes,
    ) -> Result<Arc<dyn Output>, LeftOut> {
        let has_tsv = formats.contains(&Format::Tsv);
        Ok(match format {
            Format::Tsv => {
                Arc::new(TextOutput { format: gannet_log::Format::Tsv, extension: None })
            }
            Format::Json => Arc::new(TextOutput {
                format: gannet_log::Format::Json(times),
                extension: has_tsv.then_some("json"),
            }),
            Format::Parquet => self.columns(true)?,
            Format::Arrow => self.columns(false)?,
        })
    }

    #[cfg(feature = "columns")]
    #[expect(clippy::unnecessary_wraps, reason = "as it is without the feature")]
    fn columns(&self, parquet: bool) -> Result<Arc<dyn Output>, LeftOut> {
        use gannet_columns::ColumnFormat;
        use gannet_columns::Columns;
        use gannet_columns::TimeUnit;
        Ok(Arc::new(Columns {
            format: if parquet { ColumnFormat::Parquet } else { ColumnFormat::Arrow },
            partition: match self.partition {
                Partition::None => gannet_columns::Partition::None,
                Partition::Day => gannet_columns::Partition::Day,
                Partition::Hour => gannet_columns::Partition::Hour,
            },
            times: match self.time_unit {
                Unit::Us => TimeUnit::Microseconds,
                Unit::Ns => TimeUnit::Nanoseconds,
            },
        }))
    }

    #[cfg(not(feature = "columns"))]
    fn columns(&self, parquet: bool) -> Result<Arc<dyn Output>, LeftOut> {
        let _ = (self.partition, self.time_unit);
        Err(LeftOut(if parquet { "--format parquet" } else { "--format arrow" }))
    }
}
