use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;

use crate::escape::escape_tsv;
use crate::number::write_addr;
use crate::number::write_count;
use crate::number::write_fixed6;
use crate::row::Cut;
use crate::row::Limits;
use crate::text::append;
use crate::text::put;
use crate::value::Encoder;
use crate::value::Value;

/// Writes a row as a line of Zeek's tab-separated text.
pub struct TsvEncoder<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    limits: Limits,
    in_list: bool,
    cut: Cut,
}

impl<'a> TsvEncoder<'a> {
    /// Ends the line, returning what had to be cut to its limit.
    #[inline]
    pub fn finish(self) -> Cut {
        // In place of the last column's tab.
        if self.out.len() > self.start {
            self.out.pop();
        }
        self.out.push(b'\n');
        self.cut
    }

    /// Values that would read as the marks for unset, empty or a header line.
    fn mark(&mut self, v: &[u8]) {
        match v {
            b"" => self.out.extend_from_slice(b"(empty)"),
            b"-" => self.out.extend_from_slice(b"\\x2d"),
            b"(empty)" => self.out.extend_from_slice(b"\\x28empty)"),
            [b'#', rest @ ..] if self.out.len() == self.start => {
                self.out.extend_from_slice(b"\\x23");
                escape_tsv(self.out, rest, self.in_list);
            }
            _ => escape_tsv(self.out, v, self.in_list),
        }
    }

    /// A row is appended to `out`; call [`finish`](Self::finish) after the last column.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, limits: Limits) -> Self {
        let start = out.len();
        Self { out, start, limits, in_list: false, cut: Cut::default() }
    }
}

impl Encoder for TsvEncoder<'_> {
    #[inline]
    fn field<V: Value>(&mut self, _name: &'static str, value: &V) {
        if value.is_unset() {
            self.out.extend_from_slice(b"-\t");
            return;
        }
        value.put(self);
        self.out.push(b'\t');
    }

    fn bool(&mut self, v: bool) {
        self.out.push(if v { b'T' } else { b'F' });
    }

    #[inline]
    fn count(&mut self, v: u64) {
        write_count(self.out, v);
    }

    fn int(&mut self, v: i64) {
        if v < 0 {
            self.out.push(b'-');
        }
        write_count(self.out, v.unsigned_abs());
    }

    fn double(&mut self, v: f64) {
        let text = format!("{v:.6}");
        let trimmed = text.trim_end_matches('0').trim_end_matches('.');
        self.out.extend_from_slice(trimmed.as_bytes());
        // A whole number still reads as a double.
        if (v - v.round()).abs() < 1e-9 && v.is_finite() {
            self.out.extend_from_slice(b".0");
        }
    }

    #[inline]
    fn time(&mut self, v: Time) {
        write_fixed6(self.out, v.as_nanos());
    }

    #[inline]
    fn interval(&mut self, v: Interval) {
        write_fixed6(self.out, v.as_nanos());
    }

    #[inline]
    fn addr(&mut self, v: Addr) {
        write_addr(self.out, v);
    }

    #[inline]
    fn string(&mut self, v: &[u8]) {
        let cut = v.len() > self.limits.string;
        self.cut.strings |= cut;
        let v = if cut { &v[..self.limits.string] } else { v };
        match v.first() {
            Some(b'-' | b'(' | b'#') | None => self.mark(v),
            Some(_) => escape_tsv(self.out, v, self.in_list),
        }
    }

    #[inline]
    fn plain(&mut self, v: &[u8]) {
        append(self.out, v);
    }

    #[inline]
    fn short<const N: usize>(&mut self, text: [u8; N], len: usize) {
        put(self.out, text, len);
    }

    fn list<V: Value>(&mut self, v: &[V]) {
        if v.is_empty() {
            self.out.extend_from_slice(b"(empty)");
            return;
        }
        let n = v.len().min(self.limits.elements);
        self.cut.lists |= n < v.len();
        self.in_list = true;
        for (i, element) in v[..n].iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            if element.is_unset() { self.out.push(b'-') } else { element.put(self) }
        }
        self.in_list = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Row;
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
        let mut out = Vec::new();
        let mut e = TsvEncoder::new(&mut out, Sample::LIMITS);
        row.encode(&mut e);
        assert_eq!(e.finish(), Cut::default());
        assert_eq!(out.pop(), Some(b'\n'));
        String::from_utf8(out).unwrap()
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
    fn limits_cut_and_say_so() {
        let long = vec![b'x'; 5000];
        let row = Sample {
            first: &long,
            number: None,
            share: 0.5,
            names: Set(vec![b"n"; 101]),
            times: Vector(vec![]),
            ok: false,
        };
        let mut out = Vec::new();
        let mut e = TsvEncoder::new(&mut out, Sample::LIMITS);
        row.encode(&mut e);
        assert_eq!(e.finish(), Cut { strings: true, lists: true });
        let text = String::from_utf8(out).unwrap();
        let columns: Vec<_> = text.split('\t').collect();
        assert_eq!(columns[0].len(), 4096);
        assert_eq!(columns[3].split(',').count(), 100);
    }
}
