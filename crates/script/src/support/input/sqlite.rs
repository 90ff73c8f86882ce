//! Reader of the rows of a database query.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Statement};

use super::ascii::parse_protocol;
use super::value::addr;
use super::{MessageSink, Mode, PeriodicAction, Read, Source, ValueFormat};
use crate::support::field::{Column, Field, Kind, Protocol};
use crate::support::text::convert::scan;

pub(super) struct Sqlite {
    source: Source,
    columns: Vec<Column>,
    format: ValueFormat,
    query: String,
    connection: Option<Connection>,
}

fn failed(error: &rusqlite::Error) -> String {
    let text = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    format!("SQLite call failed: {text}")
}

impl Sqlite {
    pub(super) fn new(source: Source, columns: Vec<Column>, format: ValueFormat) -> Self {
        Sqlite { source, columns, format, query: String::new(), connection: None }
    }

    fn rows(&self, connection: &Connection, out: &mut MessageSink) -> Result<(), String> {
        let mut statement = connection.prepare(&self.query).map_err(|error| failed(&error))?;
        let mut positions = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let at = column_index(&statement, &column.name)?;
            let at = at.ok_or_else(|| {
                format!("Required field {} not found after SQLite statement", column.name)
            })?;
            let protocol_index = match &column.secondary {
                Some(secondary) => column_index(&statement, secondary)?,
                None => None,
            };
            positions.push((column, at, protocol_index));
        }
        let mut rows = statement.query([]).map_err(|error| failed(&error))?;
        while let Some(row) = rows.next().map_err(|error| failed(&error))? {
            let mut fields = Vec::with_capacity(positions.len());
            for (column, at, protocol_index) in &positions {
                let value = row.get_ref(*at).map_err(|error| failed(&error))?;
                let mut field = self.field(column, value, out)?;
                if let (Field::Port(_, protocol), Some(at)) = (&mut field, protocol_index) {
                    match row.get_ref(*at).map_err(|error| failed(&error))? {
                        ValueRef::Text(name) => *protocol = parse_protocol(name, out),
                        _ => out.error("Port protocol definition did not contain text"),
                    }
                }
                fields.push(field);
            }
            out.row(Mode::Manual, fields, None);
        }
        out.end_of_send();
        Ok(())
    }

    fn field(
        &self,
        column: &Column,
        value: ValueRef<'_>,
        out: &mut MessageSink,
    ) -> Result<Field<'static>, String> {
        let text = || match value {
            ValueRef::Text(text) | ValueRef::Blob(text) => text.to_vec(),
            ValueRef::Integer(value) => value.to_string().into_bytes(),
            ValueRef::Real(value) => value.to_string().into_bytes(),
            ValueRef::Null => Vec::new(),
        };
        let integer = || match value {
            ValueRef::Integer(value) => value,
            ValueRef::Real(value) => value as i64,
            _ => scan(&text(), 10)
                .and_then(|(negative, value, _)| {
                    i64::try_from(value?).ok().map(|value| if negative { -value } else { value })
                })
                .unwrap_or(0),
        };
        let real = || match value {
            ValueRef::Integer(value) => value as f64,
            ValueRef::Real(value) => value,
            _ => String::from_utf8_lossy(&text()).trim().parse().unwrap_or(0.0),
        };
        if matches!(value, ValueRef::Null) {
            return Ok(Field::Unset);
        }
        Ok(match &column.kind {
            Kind::String => Field::String(text().into()),
            Kind::Enum => Field::Enum(text().into()),
            Kind::Bool => match value {
                ValueRef::Integer(value @ (0 | 1)) => Field::Bool(value == 1),
                ValueRef::Integer(value) => {
                    return Err(format!("Invalid value for boolean: {value}"));
                }
                _ => return Err("Invalid data type for boolean - expected Integer".to_owned()),
            },
            Kind::Int => Field::Int(integer()),
            Kind::Count => Field::Count(integer() as u64),
            Kind::Double => Field::Double(real()),
            Kind::Time => Field::Time(real()),
            Kind::Interval => Field::Interval(real()),
            Kind::Port => Field::Port(integer() as u32, Protocol::Unknown),
            Kind::Addr => Field::Addr(addr(&text(), out)),
            Kind::Subnet => {
                let text = text();
                let slash = text.iter().position(|byte| *byte == b'/').unwrap_or(text.len());
                let width = text
                    .get(slash + 1..)
                    .and_then(|width| scan(width, 10))
                    .and_then(|(_, width, _)| width);
                Field::Subnet(addr(&text[..slash], out), width.unwrap_or(0) as u8)
            }
            kind @ (Kind::Set(_) | Kind::Vector(_)) => self
                .format
                .parse(&text(), "", kind, out)
                .ok_or_else(|| "Could not read set or vector".to_owned())?,
            kind @ (Kind::File | Kind::Func | Kind::Pattern) => {
                return Err(format!("unsupported field format {kind}"));
            }
        })
    }
}

fn column_index(statement: &Statement<'_>, name: &str) -> Result<Option<usize>, String> {
    let mut found = None;
    for (at, column) in statement.column_names().enumerate() {
        if column == name && found.replace(at).is_some() {
            return Err(format!(
                "SQLite statement returns several columns with name {name}! Cannot decide which to choose, aborting"
            ));
        }
    }
    Ok(found)
}

impl Read for Sqlite {
    fn open(&mut self, out: &mut MessageSink) -> bool {
        if self.source.mode != Mode::Manual {
            out.error("SQLite only supports manual reading mode.");
            return false;
        }
        let Some(query) = self.source.config.get("query") else {
            let source = &self.source.source;
            out.error(format!(
                "No query specified when setting up SQLite data source {source}. Aborting."
            ));
            return false;
        };
        self.query.clone_from(query);
        let path = format!("{}.sqlite", self.source.source);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags);
        let checked = opened
            .and_then(|connection| connection.prepare(&self.query).map(drop).map(|()| connection));
        match checked {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => {
                out.error(failed(&error));
                return false;
            }
        }
        self.update(out);
        true
    }

    fn update(&mut self, out: &mut MessageSink) -> bool {
        let Some(connection) = &self.connection else { return false };
        let read = self.rows(connection, out);
        if let Err(error) = &read {
            out.error(error);
        }
        read.is_ok()
    }

    fn heartbeat(&mut self, _: &mut MessageSink) -> PeriodicAction {
        PeriodicAction::Nothing
    }
}
