//! The writer of `SQLite` databases (`Log::WRITER_SQLITE`).

use std::path::Path;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::{LogFile, TextFormat};
use crate::support::field::{Column, Field, Kind};
use crate::support::format;

/// Options of the writer: the constants of the module `LogSQLite` and the `$config` of the filter.
#[derive(Clone, Debug)]
pub struct SqliteConfig {
    /// Separators and texts of empty and unset values.
    pub text: TextFormat,
    /// The name of the table; `None` for the path of the log.
    pub table: Option<String>,
    /// `Log::default_logdir`.
    pub log_dir: String,
    /// `OFF`, `NORMAL`, `FULL` or `EXTRA`; `None` for the default.
    pub synchronous: Option<&'static str>,
    /// `DELETE`, `TRUNCATE`, `PERSIST`, `MEMORY`, `WAL` or `OFF`; `None` for the default.
    pub journal_mode: Option<&'static str>,
}

impl Default for SqliteConfig {
    fn default() -> Self {
        let text = TextFormat { separator: Vec::new(), utf8: false, ..TextFormat::default() };
        SqliteConfig {
            text,
            table: None,
            log_dir: String::new(),
            synchronous: None,
            journal_mode: None,
        }
    }
}

/// Writes one log to a table.
#[derive(Debug)]
pub struct SqliteWriter {
    connection: Connection,
    insert: String,
    text: TextFormat,
}

impl SqliteWriter {
    /// Opens the database and creates the table, unless it exists.
    ///
    /// # Errors
    ///
    /// Zeek's message.
    pub fn open(file: &LogFile, config: SqliteConfig, columns: &[Column]) -> Result<Self, String> {
        let path = Path::new(&config.log_dir).join(format!("{}.sqlite", file.path));
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| failed(&error))?;
        for (name, value) in
            [("synchronous", config.synchronous), ("journal_mode", config.journal_mode)]
        {
            if let Some(value) = value {
                let set = connection.pragma_update_and_check(None, name, value, |_| Ok(()));
                // Some pragmas return their value, others no row.
                if let Err(error) = set
                    && error != rusqlite::Error::QueryReturnedNoRows
                {
                    return Err(format!("Error setting {name} pragma: {}", text_of(&error)));
                }
            }
        }
        let table = config.table.unwrap_or_else(|| file.path.clone());
        let quoted: Vec<String> =
            columns.iter().map(|column| format!("'{}'", column.name.replace('\'', "''"))).collect();
        let declared: Vec<String> = quoted
            .iter()
            .zip(columns)
            .map(|(name, column)| format!("{name} {}", type_of(&column.kind)))
            .collect();
        let create = format!("CREATE TABLE IF NOT EXISTS {table} (\n{}\n);", declared.join(",\n"));
        connection.execute_batch(&create).map_err(|error| {
            format!("Error executing table creation statement: {}", text_of(&error))
        })?;
        let placeholders = vec!["?"; columns.len()].join(", ");
        let insert =
            format!("INSERT INTO {table} ( {}) VALUES ({placeholders});", quoted.join(", "));
        connection.prepare_cached(&insert).map_err(|error| failed(&error))?;
        Ok(SqliteWriter { connection, insert, text: config.text })
    }

    /// Writes a row.
    ///
    /// # Errors
    ///
    /// Zeek's message; the log is then abandoned.
    pub fn write(&mut self, fields: &[Field<'_>]) -> Result<(), String> {
        let mut statement =
            self.connection.prepare_cached(&self.insert).map_err(|error| failed(&error))?;
        let values: Vec<ToSqlOutput<'_>> =
            fields.iter().map(|field| value_of(&self.text, field)).collect();
        statement.execute(params_from_iter(values)).map(drop).map_err(|error| failed(&error))
    }
}

fn type_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::Bool => "boolean",
        Kind::Int | Kind::Count | Kind::Port => "integer",
        Kind::Time | Kind::Interval | Kind::Double => "double precision",
        _ => "text",
    }
}

fn value_of<'f>(format: &TextFormat, field: &'f Field<'_>) -> ToSqlOutput<'f> {
    let owned = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut text = Vec::new();
        write(&mut text);
        ToSqlOutput::Owned(Value::Text(String::from_utf8_lossy(&text).into_owned()))
    };
    match field {
        Field::Unset => ToSqlOutput::Owned(Value::Null),
        Field::Bool(value) => ToSqlOutput::Owned(Value::Integer(i64::from(*value))),
        Field::Int(value) => ToSqlOutput::Owned(Value::Integer(*value)),
        Field::Count(value) => ToSqlOutput::Owned(Value::Integer(*value as i64)),
        Field::Port(value, _) => ToSqlOutput::Owned(Value::Integer(i64::from(*value))),
        Field::Double(value) | Field::Interval(value) | Field::Time(value) => {
            ToSqlOutput::Owned(Value::Real(*value))
        }
        Field::Addr(address) => owned(&|out| format::addr(out, *address)),
        Field::Subnet(address, width) => {
            owned(&|out| format::subnet(out, *address, u32::from(*width)))
        }
        Field::String(text) | Field::Enum(text) | Field::File(text) | Field::Func(text)
            if text.is_empty() =>
        {
            ToSqlOutput::Owned(Value::Null)
        }
        Field::String(text)
        | Field::Enum(text)
        | Field::File(text)
        | Field::Func(text)
        | Field::Pattern(text, ..) => ToSqlOutput::Borrowed(ValueRef::Text(text)),
        Field::Set(_) | Field::Vector(_) => owned(&|out| format.value(out, field)),
    }
}

fn text_of(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

fn failed(error: &rusqlite::Error) -> String {
    format!("SQLite call failed: {}", text_of(error))
}
