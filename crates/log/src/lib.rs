//! Row schemas and log writers.
//!
//! A log stream is declared once, with [`row!`]: a struct whose fields have a column name, a type and
//! documentation. The TSV header, the JSON keys and the manual are derived from this declaration. A
//! row [encodes](Row::encode) itself with any [`Encoder`]; [`Logs`] has a buffered file for each
//! stream, opened at its first row.
//!
//! ```
//! use gannet_base::Time;
//! use gannet_log::{Format, Row, TsvEncoder};
//!
//! gannet_log::row! {
//!     /// One row for each greeting.
//!     pub struct Greeting<'a> = "greeting" {
//!         /// When it was said.
//!         ts: Time = "ts",
//!         /// What was said.
//!         words: Option<&'a [u8]> = "words",
//!     }
//! }
//!
//! let row = Greeting { ts: Time::from_secs(1), words: Some(b"ahoy\tyou") };
//! let mut line = [0; 100];
//! let mut encoder = TsvEncoder::new(&mut line, Greeting::LIMITS);
//! row.encode(&mut encoder);
//! let (len, _) = encoder.finish().unwrap();
//! assert_eq!(line[..len], *b"1.000000\tahoy\\x09you\n");
//! ```

mod buffer;
mod collect;
mod escape;
mod json;
mod logs;
mod number;
mod packed;
mod piece;
mod row;
mod schema;
mod selection;
mod tap;
mod text;
mod tsv;
mod value;

pub use buffer::packed_text;
pub use collect::Fields;
pub use collect::Key;
pub use collect::Rows;
pub use collect::Shape;
pub use escape::column_bytes;
pub use escape::column_text;
pub use escape::escape_json;
pub use escape::escape_tsv;
pub use json::JsonEncoder;
pub use json::JsonTimes;
pub use json::civil;
pub use logs::Format;
pub use logs::Logs;
pub use logs::Options;
pub use logs::StreamCount;
pub use logs::live::CompletedFile;
pub use logs::live::LiveFiles;
pub use logs::live::LogLosses;
pub use logs::live::Names;
pub use number::write_addr;
pub use number::write_count;
pub use number::write_fixed6;
pub use packed::BlockColumn;
pub use packed::Cell;
pub use packed::Cells;
pub use packed::Kind;
pub use packed::List;
pub use packed::Output;
pub use packed::PackedEncoder;
pub use packed::PackedRows;
pub use packed::PackedStream;
pub use packed::PackedWriter;
pub use packed::RowBlock;
pub use packed::RowPacker;
pub use packed::TextOutput;
pub use packed::replay;
pub use row::Column;
pub use row::Cut;
pub use row::Extra;
pub use row::Field;
pub use row::Limits;
pub use row::Row;
pub use row::slot;
pub use schema::Schema;
pub use selection::Selection;
pub use tap::Tap;
pub use tap::Tapped;
pub use tap::TappedRow;
pub use text::LineBuffer;
pub use text::Sink;
pub use text::append;
pub use tsv::TsvEncoder;
pub use value::Date;
pub use value::Encoder;
pub use value::Enum;
pub use value::Plain;
pub use value::Port;
pub use value::Seconds;
pub use value::Set;
pub use value::Type;
pub use value::Value;
pub use value::Vector;
