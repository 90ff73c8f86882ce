//! Log writers: text with tab-separated columns, JSON, SQLite.
//!
//! ```
//! use gannet_script::support::field::{Column, Field, Kind};
//! use gannet_script::support::logs::{AsciiConfig, AsciiWriter, LogFile};
//!
//! let dir = std::env::temp_dir().join("gannet-logs-example");
//! std::fs::create_dir_all(&dir).unwrap();
//! let mut config = AsciiConfig::default();
//! config.log_dir = dir.display().to_string(); // Log::default_logdir
//! config.apply([("tsv", "T")]).unwrap(); // $config of the filter
//! let file = LogFile { path: "words".into(), ..LogFile::default() };
//! let columns = vec![Column::new("ts", Kind::Time), Column::new("word", Kind::String)];
//! let mut writer = AsciiWriter::open(file, config, columns).unwrap();
//! writer.write(&[Field::Time(1.0), Field::string(b"ahoy")]).unwrap();
//! writer.finish().unwrap();
//! assert_eq!(std::fs::read(dir.join("words.log")).unwrap(), b"ts\tword\n1.000000\tahoy\n");
//! ```

mod ascii;
mod json;
#[cfg(feature = "sqlite")]
mod sqlite;
mod text;

pub use ascii::{AsciiConfig, AsciiWriter, Rotated, TextRow, UnrotatedLog, leftover_logs};
pub use json::{JsonFormat, StringPolicy, TimeFormat};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteConfig, SqliteWriter};
pub use text::TextFormat;

/// The properties of a log filter that its writer needs.
#[derive(Clone, Debug, Default)]
pub struct LogFile {
    /// The path, without extension.
    pub path: String,
    /// Rotation interval in seconds; 0 for none.
    pub rotation_interval: f64,
    /// The name of the function to call after rotation; empty for the default one.
    pub postprocessor: String,
}

/// The message of an error as C's `strerror` returns it.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
pub(crate) mod tests;
