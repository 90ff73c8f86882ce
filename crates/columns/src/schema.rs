//! Conversion of Zeek's types to Arrow's and back.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use arrow_schema::DataType;
use arrow_schema::Field;
use arrow_schema::Schema;
use gannet_log::Kind;
use gannet_log::Type;

/// Metadata key of a field; its value is Zeek's type.
pub const TYPE: &str = "zeek.type";
/// Name of the column that numbers the rows of a log in Parquet files.
pub const ROW: &str = "_row";

/// Unit of timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// Microseconds, as in text logs.
    #[default]
    Microseconds,
    /// Nanoseconds, the resolution of captures; some readers of Parquet do not support them.
    Nanoseconds,
}

impl TimeUnit {
    /// Arrow's timestamp type of this unit, in UTC.
    pub(crate) fn data_type(self) -> DataType {
        let unit = match self {
            Self::Microseconds => arrow_schema::TimeUnit::Microsecond,
            Self::Nanoseconds => arrow_schema::TimeUnit::Nanosecond,
        };
        DataType::Timestamp(unit, Some("UTC".into()))
    }
}

/// The schema of a log with these columns.
pub fn schema(fields: &[gannet_log::Field], unit: TimeUnit) -> Schema {
    Schema::new(fields.iter().map(|f| arrow_field(f, unit)).collect::<Vec<_>>())
}

fn arrow_field(field: &gannet_log::Field, unit: TimeUnit) -> Field {
    let single = match Kind::of(field.ty) {
        Kind::Bool => DataType::Boolean,
        Kind::Count | Kind::Int => DataType::Int64,
        Kind::Port => DataType::UInt16,
        Kind::Double | Kind::Interval => DataType::Float64,
        Kind::Time => unit.data_type(),
        Kind::Addr | Kind::Text => DataType::Utf8,
    };
    let is_interval = Kind::of(field.ty) == Kind::Interval;
    let ty = match field.ty {
        Type::Scalar(_) => single,
        Type::Set(_) | Type::Vector(_) => DataType::List(Arc::new(element(single))),
    };
    let mut metadata = HashMap::from([(TYPE.to_owned(), field.ty.to_string())]);
    if is_interval {
        metadata.insert("gannet.unit".to_owned(), "s".to_owned());
    }
    Field::new(field.name, ty, true).with_metadata(metadata)
}

/// The field of a list's elements.
pub(crate) fn element(ty: DataType) -> Field {
    Field::new("element", ty, true)
}

/// The columns of a log that was written with [`schema`], from the metadata of its fields. Fields without it,
/// such as [`ROW`], are left out.
pub fn fields_of(schema: &Schema) -> Vec<gannet_log::Field> {
    let zeek_field = |column: &Arc<Field>| field(column.name(), column.metadata().get(TYPE)?);
    schema.fields().iter().filter_map(zeek_field).collect()
}

/// A column from its name and Zeek type, as in the header of a TSV log; `None` if the type is malformed.
pub fn field(name: &str, ty: &str) -> Option<gannet_log::Field> {
    let ty = zeek_type(ty)?;
    Some(gannet_log::Field { name: intern(name), ty, doc: "", optional: false })
}

fn zeek_type(text: &str) -> Option<Type> {
    let inner = |text: &str| text.strip_suffix(']').map(intern);
    Some(if let Some(rest) = text.strip_prefix("set[") {
        Type::Set(inner(rest)?)
    } else if let Some(rest) = text.strip_prefix("vector[") {
        Type::Vector(inner(rest)?)
    } else {
        Type::Scalar(intern(text))
    })
}

/// Interns a text for the lifetime of the process: column names from files are few.
pub(crate) fn intern(text: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(text) {
        Some(name) => name,
        None => {
            let name: &'static str = Box::leak(text.into());
            names.insert(name);
            name
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back_from_their_schema() {
        let types = [
            Type::Scalar("time"),
            Type::Scalar("count"),
            Type::Set("addr"),
            Type::Vector("interval"),
            Type::Scalar("port"),
        ];
        let fields: Vec<_> = ["ts", "n", "hosts", "spans", "p"]
            .into_iter()
            .zip(types)
            .map(|(name, ty)| gannet_log::Field { name, ty, doc: "", optional: false })
            .collect();
        let schema = schema(&fields, TimeUnit::default());
        assert_eq!(fields_of(&schema), fields);
        let shown: Vec<_> = schema.fields().iter().map(|f| f.data_type().to_string()).collect();
        assert_eq!(shown[0], "Timestamp(µs, \"UTC\")");
        assert_eq!((&*shown[1], &*shown[4]), ("Int64", "UInt16"));
        assert!(shown[2].starts_with("List(") && shown[3].contains("Float64"), "{shown:?}");
    }
}
