//! Options of pcapng blocks: code, length, value, padding to four bytes.

use crate::bytes::u16_at;

/// Iterates over the options of a block. Stops at `opt_endofopt`, or at the first option that does
/// not fit: options only annotate, so an invalid one does not invalidate a packet.
pub(crate) struct Options<'a> {
    rest: &'a [u8],
    big: bool,
}

impl<'a> Options<'a> {
    pub(crate) fn new(rest: &'a [u8], big: bool) -> Self {
        Self { rest, big }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let code = u16_at(self.rest, 0, self.big);
        let len = usize::from(u16_at(self.rest, 2, self.big));
        let value = self.rest.get(4..4 + len)?;
        self.rest = self.rest.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        (code != 0).then_some((code, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_ends_and_overruns() {
        let b = [1, 0, 3, 0, b'a', b'b', b'c', 0, 9, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0];
        let all: Vec<_> = Options::new(&b, false).collect();
        assert_eq!(all, [(1, &b"abc"[..]), (9, &[6])], "nothing after the end mark");
        assert_eq!(Options::new(&b[..7], false).count(), 1, "missing padding is forgiven");
        assert_eq!(Options::new(&b[..6], false).count(), 0);
        assert_eq!(Options::new(&[], true).count(), 0);
    }
}
