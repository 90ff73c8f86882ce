//! Packed rows compared with the rows that they are encoded from.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use proptest::prelude::*;

use super::*;
use crate::Date;
use crate::Enum;
use crate::Extra;
use crate::Format;
use crate::JsonEncoder;
use crate::JsonTimes;
use crate::Key;
use crate::Logs;
use crate::Options;
use crate::Port;
use crate::Row;
use crate::Set;
use crate::Shape;
use crate::TsvEncoder;
use crate::Type;
use crate::Vector;

crate::row! {
    /// For the tests.
    struct Sample<'a> = "sample" {
        /// Time of the row.
        ts: Option<Time> = "ts",
        /// Who.
        id: Option<ConnId> = "id",
        /// Text.
        text: Option<&'a [u8]> = "text",
        /// A name.
        kind: Enum = "kind",
        /// Many of them.
        texts: Set<&'a [u8]> = "texts",
        /// Spans.
        spans: Vector<Option<Interval>> = "spans",
        /// Ports.
        ports: Option<Set<Port>> = "ports",
        /// A share.
        share: f64 = "share",
        /// A number.
        n: i64 = "n",
        /// Any year.
        date: Date = "date",
        /// Whether.
        is: bool = "is",
        /// Only on request.
        more: Extra<u64> = "more",
    }
}

fn id() -> ConnId {
    let [orig_h, resp_h] = [[10, 0, 0, 1], [192, 0, 2, 7]].map(Addr::v4);
    ConnId { orig_h, orig_p: 1024, resp_h, resp_p: 65535 }
}

fn packed<R: Row>(row: &R) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 16];
    let mut e = PackedEncoder::new(&mut buffer, Sample::LIMITS, R::COLUMNS);
    row.encode(&mut e);
    let (n, _) = e.finish().unwrap();
    buffer.truncate(n);
    buffer
}

fn tsv(write: impl FnOnce(&mut TsvEncoder<'_>)) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 16];
    let mut e = TsvEncoder::new(&mut buffer, Sample::LIMITS);
    write(&mut e);
    let (n, _) = e.finish().unwrap();
    buffer.truncate(n);
    buffer
}

fn json(times: JsonTimes, write: impl FnOnce(&mut JsonEncoder<'_>)) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 16];
    let mut e = JsonEncoder::new(&mut buffer, Sample::LIMITS, times);
    write(&mut e);
    let (n, _) = e.finish().unwrap();
    buffer.truncate(n);
    buffer
}

fn fields() -> Vec<crate::Field> {
    let mut fields = Sample::fields();
    fields.retain(|f| !f.optional);
    fields
}

/// Debug text of a cell, with the elements of a list.
fn shown(cell: Cell<'_>) -> String {
    match cell {
        Cell::List(list) => format!("{:?}", list.collect::<Vec<_>>()),
        cell => format!("{cell:?}"),
    }
}

proptest! {
    /// A packed row is written as the same bytes as the row in all formats, and values that are packed one by one have
    /// the same cells.
    #[test]
    fn packed_rows_are_written_as_rows(
        ts: Option<i64>, has_id: bool, string: Option<Vec<u8>>, strings: Vec<Vec<u8>>,
        spans: Vec<Option<u32>>, ports: Option<Vec<u16>>, share: f64, n: i64, date: i64, is: bool,
    ) {
        let row = Sample {
            ts: ts.map(Time::from_nanos),
            id: has_id.then(id),
            text: string.as_deref(),
            kind: Enum("A::B"),
            texts: Set(strings.iter().map(Vec::as_slice).collect()),
            spans: Vector(spans.iter().map(|s| s.map(|s| Interval::from_millis(i64::from(s)))).collect()),
            ports: ports.map(|p| Set(p.into_iter().map(Port).collect())),
            share,
            n,
            date: Date(date),
            is,
            more: Extra(None),
        };
        let bytes = packed(&row);
        let rows: Vec<_> = PackedRows::new(&bytes).collect();
        prop_assert_eq!(rows.len(), 1);
        prop_assert_eq!(tsv(|e| row.encode(e)), tsv(|e| replay(&fields(), rows[0], e)));
        for times in [JsonTimes::Epoch, JsonTimes::Iso8601, JsonTimes::Millis] {
            let of_packed = json(times, |e| replay(&fields(), rows[0], e));
            prop_assert_eq!(json(times, |e| row.encode(e)), of_packed);
        }
        let mut packer = RowPacker::default();
        packer.begin();
        let mut cells = Cells::new(rows[0]);
        fields().iter().for_each(|f| packer.push(&cells.of(f.ty)));
        packer.end();
        let again = PackedRows::new(packer.rows()).next().unwrap_or_default();
        let (mut one, mut other) = (Cells::new(rows[0]), Cells::new(again));
        for field in fields() {
            prop_assert_eq!(shown(one.of(field.ty)), shown(other.of(field.ty)));
        }
    }

    /// Reading of arbitrary bytes ends without a panic.
    #[test]
    fn any_bytes_are_read(bytes: Vec<u8>) {
        for row in PackedRows::new(&bytes) {
            let mut cells = Cells::new(row);
            for ty in [Type::Scalar("string"), Type::Set("string"), Type::Vector("addr"), Type::Scalar("time")] {
                if let Cell::List(list) = cells.of(ty) {
                    prop_assert!(list.count() <= bytes.len());
                }
            }
        }
    }
}

/// A block of rows whose columns are in three groups, some of them unset.
#[test]
fn a_block_has_the_cells_of_its_rows() {
    const COLUMNS: usize = 70;
    let kinds = [Kind::Count, Kind::Text, Kind::Addr, Kind::Time, Kind::Text];
    let texts: [&[u8]; 5] = [b"", b"a", b"seven77", b"eight888", b"much more than eight"];
    let hosts = [Addr::v4([10, 0, 0, 1]), Addr::v6([7; 16])];
    let mut packer = RowPacker::default();
    for n in 0..40_usize {
        packer.begin();
        for column in 0..COLUMNS {
            let (some, text) = ((n * 7 + column) % 3 != 0, texts[(n + column) % texts.len()]);
            packer.push(&match (kinds[column % 5], column % 5) {
                // Column 33 is unset in all rows; columns ending in 2 or 9 are set in all rows.
                _ if column == 33 || column % 10 != 9 && column % 10 != 2 && !some => Cell::Unset,
                (Kind::Count, _) => Cell::Count((n + column) as u64),
                (Kind::Addr, _) => Cell::Addr(hosts[n % 2]),
                (Kind::Time, _) if n % 5 == 0 => Cell::FarTime(n as f64),
                (Kind::Time, _) => Cell::Time(Time::from_secs(n as i64)),
                (_, 1) => Cell::String(text),
                _ => Cell::Plain(text),
            });
        }
        packer.end();
    }
    let bytes = packer.rows();
    let rows: Vec<_> = PackedRows::new(bytes).collect();
    let mut block = RowBlock::new(bytes, COLUMNS);
    let offset_of = |row: &[u8]| (row.as_ptr() as usize - bytes.as_ptr() as usize) as u32;
    block.begin(rows.iter().map(|row| offset_of(row)));
    assert_eq!((block.len(), block.is_empty()), (40, false));
    let mut cells: Vec<_> = rows.iter().map(|row| Cells::new(row)).collect();
    for column in 0..COLUMNS {
        let kind = kinds[column % 5];
        let expected: Vec<_> = cells.iter_mut().map(|cells| cells.scalar(kind)).collect();
        let block_column = block.next_column();
        let mut found = Vec::new();
        block_column.cells(kind, |cell| found.push(cell));
        assert_eq!(found, expected, "column {column}");
        assert_eq!(block_column.is_unset(), column == 33);
        assert_eq!(block_column.is_plain(), column % 10 == 9);
        if block_column.is_plain() {
            let mut texts = Vec::new();
            block_column.texts(|text| texts.push(Cell::Plain(text)));
            assert_eq!(texts, expected);
        }
        if block_column.is_set() && kind == Kind::Addr {
            let (mut hosts, mut numbers) = (Vec::new(), Vec::new());
            block_column.addrs(|host| hosts.push(Cell::Addr(host)));
            block_column.addr_numbers(|n| numbers.push(Cell::Addr(Addr::v6(n.to_be_bytes()))));
            assert_eq!((&hosts, &numbers), (&expected, &expected));
        }
        if let Some(word) = block_column.common() {
            assert!(block_column.words().all(|other| other == word));
        }
        // A truncated row has no cells.
        assert_eq!(Cells::new(&rows[0][..4]).scalar(kind), Cell::Unset);
    }
    assert!(cells.iter_mut().all(|cells| cells.scalar(Kind::Text) == Cell::Unset));
}

crate::row! {
    /// For the tests: the columns of the connection are in two groups.
    struct Wide<'a> = "wide" {
        /// Numbers.
        a: Ten = "a",
        /// Numbers.
        b: Ten = "b",
        /// Numbers.
        c: Ten = "c",
        /// Who.
        id: ConnId = "id",
        /// Text.
        text: &'a [u8] = "text",
    }
}

/// Ten columns.
struct Ten(u64);

impl crate::Column for Ten {
    const COLUMNS: usize = 10;

    fn describe(name: &'static str, doc: &'static str, out: &mut Vec<crate::Field>) {
        (0..10).for_each(|_| <u64 as crate::Column>::describe(name, doc, out));
    }

    fn encode<E: crate::Encoder>(&self, name: &'static str, e: &mut E) {
        (0..10).for_each(|n| e.field(name, &(self.0 + n)));
    }
}

#[test]
fn rows_may_have_more_columns_than_a_word_has_marks() {
    let row = Wide { a: Ten(0), b: Ten(10), c: Ten(20), id: id(), text: b"some longer text" };
    let bytes = packed(&row);
    let rows: Vec<_> = PackedRows::new(&bytes).collect();
    let fields = Wide::fields();
    assert_eq!((rows.len(), fields.len(), Wide::COLUMNS), (1, 35, 35));
    assert_eq!(tsv(|e| row.encode(e)), tsv(|e| replay(&fields, rows[0], e)));
    // Every buffer that is too small is reported.
    for len in 0..bytes.len() {
        let mut buffer = vec![0; len];
        let mut e = PackedEncoder::new(&mut buffer, Wide::LIMITS, Wide::COLUMNS);
        row.encode(&mut e);
        assert!(e.finish().is_none(), "{len}");
    }
}

/// Sends what it receives to a channel.
#[derive(Debug)]
struct SendRows(std::sync::mpsc::Sender<(String, Vec<u8>)>);

impl Output for SendRows {
    fn open(&self, _: &Options) -> Box<dyn PackedWriter> {
        Box::new(Self(self.0.clone()))
    }
}

impl PackedWriter for SendRows {
    fn write(&mut self, stream: &PackedStream<'_>, rows: PackedRows<'_>) -> std::io::Result<()> {
        let names: Vec<_> = stream.fields.iter().map(|f| f.name).collect();
        let _ =
            self.0.send((format!("{} {}", stream.path, names.join(" ")), rows.bytes().to_vec()));
        Ok(())
    }

    fn close(&mut self, now: Time) -> std::io::Result<()> {
        let _ = self.0.send((format!("closed {now:?}"), Vec::new()));
        Ok(())
    }
}

crate::row! {
    /// For the tests.
    struct Number = "number" {
        /// The number.
        n: u64 = "n",
        /// Only on request.
        more: Extra<u64> = "more",
    }
}

#[test]
fn outputs_get_all_rows_in_order() {
    let (send, receiver) = std::sync::mpsc::channel();
    let options = Options {
        format: Format::Packed,
        outputs: vec![std::sync::Arc::new(SendRows(send))],
        ..Options::default()
    };
    let mut merged = Logs::new(options.clone());
    // Rows are collected in a shard and merged.
    let mut shard = Logs::collecting(options);
    for n in 0..20_000 {
        let row = Number { n, more: Extra(None) };
        shard.set_key(Key { packet: n, due: Time::MAX, tie: 0 });
        shard.write(&row);
        if n % 1_000 == 999 {
            for rows in shard.take() {
                let index = merged.stream_index(&rows);
                merged.add_at(index, &rows, 0..rows.marks.len());
            }
        }
    }
    merged.close().unwrap();
    drop((merged, shard));
    let all: Vec<_> = receiver.iter().collect();
    let (last, pieces) = all.split_last().unwrap();
    assert!(last.0.starts_with("closed") && pieces.len() > 2);
    let mut next = 0;
    for (name, bytes) in pieces {
        assert_eq!(name, "number n");
        for row in PackedRows::new(bytes) {
            assert_eq!(Cells::new(row).scalar(Kind::Count), Cell::Count(next));
            next += 1;
        }
    }
    assert_eq!(next, 20_000);
}

#[test]
fn text_of_packed_rows_is_the_text_of_rows() {
    let dir = std::env::temp_dir().join(format!("gannet-log-{}-packed", std::process::id()));
    let write = |name: &str, format, outputs: Vec<std::sync::Arc<dyn Output>>| {
        let dir = dir.join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let mut logs = Logs::new(Options { dir: Some(dir), format, outputs, ..Options::default() });
        logs.set_time(Time::from_secs(86_400));
        for n in 0..20_000 {
            logs.write(&Number { n, more: Extra(None) });
        }
        logs.set_time(Time::from_secs(172_800));
        logs.close().unwrap();
    };
    let json = Format::Json(JsonTimes::Epoch);
    write("tsv", Format::Tsv, Vec::new());
    write("json", json, Vec::new());
    let both: [std::sync::Arc<dyn Output>; 2] = [
        std::sync::Arc::new(TextOutput { format: Format::Tsv, extension: None }),
        std::sync::Arc::new(TextOutput { format: json, extension: Some("json") }),
    ];
    write("both", Format::Packed, both.to_vec());
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(read("tsv/number.log"), read("both/number.log"));
    assert_eq!(read("json/number.log"), read("both/number.json"));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A value that is written as several pieces of text.
struct Pieces;

impl crate::Value for Pieces {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: crate::Encoder>(&self, e: &mut E) {
        e.plain(b"a,");
        e.count(7);
        e.addr(Addr::v4([10, 0, 0, 1]));
    }
}

struct Span(f64);

impl crate::Value for Span {
    const TYPE: Type = Type::Scalar("interval");

    fn put<E: crate::Encoder>(&self, e: &mut E) {
        e.plain(format!("{:.6}", self.0).as_bytes());
    }
}

crate::row! {
    /// For the tests.
    struct Odd = "odd" {
        /// Text.
        text: Pieces = "text",
        /// Texts.
        texts: Vector<Pieces> = "texts",
        /// A span.
        span: Span = "span",
    }
}

#[test]
fn values_in_pieces_are_one_value() {
    let row = || Odd { text: Pieces, texts: Vector(vec![Pieces, Pieces]), span: Span(1e20) };
    let bytes = packed(&row());
    let packed = PackedRows::new(&bytes).next().unwrap();
    let mut cells = Cells::new(packed);
    assert_eq!(cells.scalar(Kind::Text), Cell::Plain(b"a,710.0.0.1"));
    assert_eq!(cells.list(Kind::Text).unwrap().count(), 2);
    assert_eq!(cells.scalar(Kind::Interval), Cell::Seconds(1e20));
    assert_eq!(tsv(|e| row().encode(e)), tsv(|e| replay(&Odd::fields(), packed, e)));
    let of_row = json(JsonTimes::Epoch, |e| row().encode(e));
    assert_eq!(of_row, json(JsonTimes::Epoch, |e| replay(&Odd::fields(), packed, e)));
}

#[test]
fn streams_may_be_declared_at_run_time() {
    let field = |name, ty| crate::Field { name, ty, doc: "", optional: false };
    let fields = vec![field("ts", Type::Scalar("time")), field("hosts", Type::Set("addr"))];
    let shape =
        Shape { path: "made_up", opt_in: false, fields: crate::Fields::Listed(Vec::leak(fields)) };
    let mut packer = RowPacker::default();
    packer.begin();
    packer.push(&Cell::Time(Time::from_secs(3)));
    packer.push_list(2);
    packer.push(&Cell::Addr(Addr::v4([10, 0, 0, 1])));
    packer.push(&Cell::Addr(Addr::v4([10, 0, 0, 2])));
    packer.end();
    let mut logs = Logs::new(Options::default());
    logs.write_packed(shape, Time::ZERO, PackedRows::new(packer.rows()));
    let is = String::from_utf8_lossy(logs.pending("made_up")).into_owned();
    let end = "#fields\tts\thosts\n#types\ttime\tset[addr]\n3.000000\t10.0.0.1,10.0.0.2\n";
    assert!(is.ends_with(end), "{is}");
}
