use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;

use crate::escape::escape_tsv;
use crate::number::write_addr_tab;
use crate::number::write_count_tab;
use crate::number::write_fixed6;
use crate::number::write_fixed6_tab;
use crate::number::write_port_tab;
use crate::number::write_v4_endpoint;
use crate::piece;
use crate::row::Cut;
use crate::row::Limits;
use crate::text::LineBuffer;
use crate::text::Sink;
use crate::text::append_plain;
use crate::value::Encoder;
use crate::value::Value;

/// Writes a row as a line of Zeek's tab-separated text.
///
/// The write position stays in a register from one column to the next.
pub struct TsvEncoder<'a> {
    out: LineBuffer<'a>,
    limits: Limits,
    in_list: bool,
    cut: Cut,
}

impl<'a> TsvEncoder<'a> {
    /// Writes a row to `buffer`; call [`finish`](Self::finish) after the last column.
    #[inline(always)]
    pub fn new(buffer: &'a mut [u8], limits: Limits) -> Self {
        Self { out: LineBuffer::new(buffer), limits, in_list: false, cut: Cut::default() }
    }

    /// Ends the line; returns its length and which parts were truncated to their limits. Returns `None` if `buffer` was
    /// too small; even one with up to 64 spare bytes may be: write the row again to a larger one.
    #[inline(always)]
    pub fn finish(mut self) -> Option<(usize, Cut)> {
        if self.out.is_empty() {
            self.out.put([b'\n'], 1);
        } else {
            // Overwrites the last column's tab.
            self.out.replace_last(b'\n');
        }
        self.out.written().map(|n| (n, self.cut))
    }
}

/// Writes a string from the wire.
#[inline(never)]
fn string(buffer: &mut [u8], at: u32, v: &[u8], in_list: bool) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    let comma = if in_list { b',' } else { b'\\' };
    let marked = matches!(v.first(), Some(b'-' | b'(' | b'#') | None);
    if marked || !append_plain(&mut out, v, b'\\', comma) {
        let text = escaped(v, in_list, out.is_empty());
        out.put_all(&text);
    }
    out.into_position()
}

#[inline(never)]
fn fixed6(buffer: &mut [u8], at: u32, ns: i64) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    write_fixed6(&mut out, ns);
    out.into_position()
}

#[inline(never)]
fn fixed6_tab(buffer: &mut [u8], at: u32, ns: i64) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    write_fixed6_tab(&mut out, ns);
    out.into_position()
}

#[inline(never)]
fn count_tab(buffer: &mut [u8], at: u32, v: u64) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    write_count_tab(&mut out, v);
    out.into_position()
}

#[inline(never)]
fn uid_tab(buffer: &mut [u8], at: u32, v: &Uid) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    let (mut text, len) = v.text();
    if let Some(end) = text.get_mut(len) {
        *end = b'\t';
    }
    out.put(text, len + 1);
    out.into_position()
}

/// Writes four columns, each followed by a tab.
#[inline(never)]
fn conn_id(buffer: &mut [u8], at: u32, v: &ConnId) -> u32 {
    if let Some(orig) = v.orig_h.as_v4()
        && let Some(resp) = v.resp_h.as_v4()
    {
        let mut out = LineBuffer::at(buffer, at);
        let filled = out.fill(|target| {
            let at = write_v4_endpoint(target, 0, orig, v.orig_p);
            write_v4_endpoint(target, at, resp, v.resp_p)
        });
        if filled {
            return out.into_position();
        }
    }
    conn_id_slow(buffer, at, v)
}

/// Like [`conn_id`], but for any addresses, and if less space is left.
#[inline(never)]
fn conn_id_slow(buffer: &mut [u8], at: u32, v: &ConnId) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    for (host, port) in [(v.orig_h, v.orig_p), (v.resp_h, v.resp_p)] {
        write_addr_tab(&mut out, host);
        write_port_tab(&mut out, port);
    }
    out.into_position()
}

/// Escapes a value that equals the marker for unset or empty values, that would look like a header line as the `first`
/// value of a line, or that has bytes that need escapes.
#[cold]
#[inline(never)]
fn escaped(v: &[u8], in_list: bool, first: bool) -> Vec<u8> {
    // Some extra capacity: most texts have few characters to escape.
    let mut out = Vec::with_capacity(v.len() + 16);
    match v {
        b"" => out.extend_from_slice(b"(empty)"),
        b"-" => out.extend_from_slice(b"\\x2d"),
        b"(empty)" => out.extend_from_slice(b"\\x28empty)"),
        [b'#', rest @ ..] if first => {
            out.extend_from_slice(b"\\x23");
            escape_tsv(&mut out, rest, in_list);
        }
        _ => escape_tsv(&mut out, v, in_list),
    }
    out
}

impl Encoder for TsvEncoder<'_> {
    #[inline(always)]
    fn field<V: Value>(&mut self, _name: &'static str, value: &V) {
        if value.is_unset() {
            return self.out.put(*b"-\t", 2);
        }
        value.put_column(self);
    }

    #[inline(always)]
    fn end_column(&mut self) {
        self.out.put([b'\t'], 1);
    }

    #[inline(always)]
    fn count_column(&mut self, v: u64) {
        self.out.with(|buffer, at| count_tab(buffer, at, v));
    }

    #[inline(always)]
    fn time_column(&mut self, v: Time) {
        self.out.with(|buffer, at| fixed6_tab(buffer, at, v.as_nanos()));
    }

    #[inline(always)]
    fn interval_column(&mut self, v: Interval) {
        self.out.with(|buffer, at| fixed6_tab(buffer, at, v.as_nanos()));
    }

    #[inline(always)]
    fn uid_column(&mut self, v: &Uid) {
        self.out.with(|buffer, at| uid_tab(buffer, at, v));
    }

    #[inline(always)]
    fn bool(&mut self, v: bool) {
        self.out.put([if v { b'T' } else { b'F' }], 1);
    }

    #[inline(always)]
    fn count(&mut self, v: u64) {
        self.out.with(|buffer, at| piece::count(buffer, at, v));
    }

    #[inline(always)]
    fn int(&mut self, v: i64) {
        if v < 0 {
            self.out.put([b'-'], 1);
        }
        self.count(v.unsigned_abs());
    }

    fn double(&mut self, v: f64) {
        let text = format!("{v:.6}");
        let trimmed = text.trim_end_matches('0').trim_end_matches('.');
        self.out.put_all(trimmed.as_bytes());
        // A whole number gets a decimal point, so that it is recognized as a double.
        if (v - v.round()).abs() < 1e-9 && v.is_finite() {
            self.out.put_all(b".0");
        }
    }

    #[inline(always)]
    fn time(&mut self, v: Time) {
        self.out.with(|buffer, at| fixed6(buffer, at, v.as_nanos()));
    }

    #[cold]
    fn far_time(&mut self, seconds: f64) {
        self.out.put_all(format!("{seconds:.6}").as_bytes());
    }

    #[inline(always)]
    fn interval(&mut self, v: Interval) {
        self.out.with(|buffer, at| fixed6(buffer, at, v.as_nanos()));
    }

    #[inline(always)]
    fn addr(&mut self, v: Addr) {
        self.out.with(|buffer, at| piece::addr(buffer, at, v));
    }

    #[inline(always)]
    fn conn_id(&mut self, v: &ConnId) {
        self.out.with(|buffer, at| conn_id(buffer, at, v));
    }

    #[inline(always)]
    fn uid(&mut self, v: &Uid) {
        self.out.with(|buffer, at| piece::uid(buffer, at, v));
    }

    #[inline(always)]
    fn string(&mut self, v: &[u8]) {
        let cut = v.len() > self.limits.string;
        self.cut.strings |= cut;
        let v = if cut { &v[..self.limits.string] } else { v };
        let in_list = self.in_list;
        self.out.with(|buffer, at| string(buffer, at, v, in_list));
    }

    #[inline(always)]
    fn plain(&mut self, v: &[u8]) {
        self.out.with(|buffer, at| piece::plain(buffer, at, v));
    }

    #[inline(always)]
    fn list<V: Value>(&mut self, v: impl ExactSizeIterator<Item = V>) {
        if v.len() == 0 {
            return self.out.put_all(b"(empty)");
        }
        let n = v.len().min(self.limits.elements);
        self.cut.lists |= n < v.len();
        self.in_list = true;
        for (i, element) in v.take(n).enumerate() {
            if i > 0 {
                self.out.put([b','], 1);
            }
            if element.is_unset() { self.out.put([b'-'], 1) } else { element.put(self) }
        }
        self.in_list = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Date;
    use crate::Row;
    use crate::Seconds;
    use crate::Set;
    use crate::Vector;

    crate::row! {
        /// For the tests.
        struct Sample<'a> = "sample" {
            first: &'a [u8] = "first",
            number: Option<u64> = "number",
            share: f64 = "share",
            names: Set<&'a [u8]> = "names",
            times: Vector<Option<Interval>> = "times",
            ok: bool = "ok",
        }
    }

    fn line(row: &Sample<'_>) -> String {
        let mut buffer = [0; 1 << 10];
        let mut e = TsvEncoder::new(&mut buffer, Sample::LIMITS);
        row.encode(&mut e);
        let (n, cut) = e.finish().unwrap();
        assert_eq!((cut, buffer[n - 1]), (Cut::default(), b'\n'));
        let line = String::from_utf8(buffer[..n - 1].to_vec()).unwrap();
        for buffer in 0..n {
            let mut buffer = vec![0; buffer];
            let mut e = TsvEncoder::new(&mut buffer, Sample::LIMITS);
            row.encode(&mut e);
            assert_eq!(e.finish(), None, "{line}");
        }
        line
    }

    #[test]
    fn every_kind_of_value() {
        let mut row = Sample {
            first: b"#x",
            number: None,
            share: 1.0,
            names: Set(vec![b"a,b", b""]),
            times: Vector(vec![Some(Interval::from_millis(1500)), None]),
            ok: true,
        };
        assert_eq!(line(&row), "\\x23x\t-\t1.0\ta\\x2cb,(empty)\t1.500000,-\tT");
        row.first = b"-";
        row.number = Some(7);
        row.share = 123_456_789.123_456_7;
        row.names.0.clear();
        assert_eq!(line(&row), "\\x2d\t7\t123456789.123457\t(empty)\t1.500000,-\tT");
        row.share = 1e-7;
        assert!(line(&row).contains("\t0\t"));
    }

    #[test]
    fn times_of_any_year() {
        fn text(value: impl Value) -> String {
            let mut buffer = [0; 128];
            let mut e = TsvEncoder::new(&mut buffer, Sample::LIMITS);
            value.put(&mut e);
            let n = e.out.written().unwrap();
            String::from_utf8(buffer[..n].to_vec()).unwrap()
        }
        assert_eq!(text(Date(1_423_664_106)), "1423664106.000000");
        assert_eq!(text(Date(253_402_300_799)), "253402300799.000000");
        assert_eq!(text(Date(-62_167_219_200)), "-62167219200.000000");
        assert_eq!(text(Seconds(1.5)), "1.500000");
        // Zeek rounds to the microsecond.
        assert_eq!(text(Seconds(1_682_501_599.463_033_7)), "1682501599.463034");
        assert_eq!(text(Seconds(1_682_501_599.999_999_7)), "1682501600.000000");
        assert_eq!(text(Seconds(-1.000_000_6)), "-1.000001");
        assert_eq!(text(Seconds(-11_644_473_600.0)), "-11644473600.000000");
        assert_eq!(text(Seconds(910_692_730_085.477_5)), "910692730085.477539");
    }

    #[test]
    fn values_above_limits_are_truncated_and_reported() {
        let long = vec![b'x'; 5000];
        let row = Sample {
            first: &long,
            number: None,
            share: 0.5,
            names: Set(vec![b"n"; 101]),
            times: Vector(vec![]),
            ok: false,
        };
        let mut buffer = [0; 1 << 13];
        let mut e = TsvEncoder::new(&mut buffer, Sample::LIMITS);
        row.encode(&mut e);
        let (n, cut) = e.finish().unwrap();
        assert_eq!(cut, Cut { strings: true, lists: true });
        let text = String::from_utf8(buffer[..n].to_vec()).unwrap();
        let columns: Vec<_> = text.split('\t').collect();
        assert_eq!(columns[0].len(), 4096);
        assert_eq!(columns[3].split(',').count(), 100);
    }
}
