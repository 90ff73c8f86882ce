//! Reassembles the hello that a side's CRYPTO frames carry (RFC 9000 section 19.6).

/// Maximum length of a reassembled handshake message, in bytes: one TLS record (RFC 8446 section
/// 5.2).
pub(super) const MAX_MESSAGE: usize = (1 << 14) + 256;
/// Maximum number of parts kept that follow a missing one.
const MAX_PARTS: usize = 256;
/// The error for data that exceeds any message.
pub(super) const TOO_MUCH: &str = "too much crypto data";
/// Length of a handshake message's header, in bytes.
const HEADER: usize = 4;

/// Result of adding a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More data is needed.
    Partial,
    /// The message is complete: [`Hello::take`] returns it.
    Complete,
    /// The message is complete, and data follows it.
    CompleteWithExcess,
}

/// Reassembly of one side's first handshake message.
#[derive(Debug, Default)]
pub(super) struct Hello {
    /// Bytes received in order.
    message: Vec<u8>,
    /// Parts after missing data, as offset and bytes, unsorted.
    ahead: Vec<(usize, Vec<u8>)>,
    /// Number of bytes received in order, including those of a message that was taken.
    received: usize,
    finished: bool,
}

impl Hello {
    /// Whether the message was complete: nothing more is parsed.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Length of the message including its header, once known.
    fn length(&self) -> Option<usize> {
        match self.message[..] {
            [_, a, b, c, ..] => Some(HEADER + u32::from_be_bytes([0, a, b, c]) as usize),
            _ => None,
        }
    }

    /// Adds a part.
    ///
    /// # Errors
    /// If the data exceeds the maximum length of a message.
    pub(super) fn add(&mut self, offset: u64, data: &[u8]) -> Result<Progress, &'static str> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = at.saturating_add(data.len());
        if data.is_empty() || end <= self.received {
            return Ok(Progress::Partial);
        }
        if self.finished || end > MAX_MESSAGE {
            return Err(TOO_MUCH);
        }
        if at > self.received {
            if self.ahead.len() >= MAX_PARTS {
                return Err("too many parts of crypto data");
            }
            if !self.ahead.iter().any(|(o, d)| *o <= at && end <= o + d.len()) {
                self.ahead.push((at, data.to_vec()));
            }
            return Ok(Progress::Partial);
        }
        self.message.extend_from_slice(&data[self.message.len() - at..]);
        while let Some(i) = self.ahead.iter().position(|(o, _)| *o <= self.message.len()) {
            let (at, part) = self.ahead.swap_remove(i);
            if let Some(new_bytes) = part.get(self.message.len() - at..) {
                self.message.extend_from_slice(new_bytes);
            }
        }
        self.received = self.message.len();
        match self.length() {
            Some(n) if n > MAX_MESSAGE => Err(TOO_MUCH),
            Some(n) if self.message.len() >= n => {
                self.finished = true;
                self.ahead = Vec::new();
                let over = self.message.len() > n;
                self.message.truncate(n);
                Ok(if over { Progress::CompleteWithExcess } else { Progress::Complete })
            }
            _ => Ok(Progress::Partial),
        }
    }

    /// Takes the complete message, including its header.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_in_any_order() {
        let mut h = Hello::default();
        assert_eq!(h.add(6, b"cd"), Ok(Progress::Partial));
        assert_eq!(h.add(2, b"\0\x05ab"), Ok(Progress::Partial));
        assert_eq!(h.add(0, b"\x01\0\0"), Ok(Progress::Partial));
        assert_eq!(h.add(0, b"\x01\0\0"), Ok(Progress::Partial));
        assert_eq!(h.add(8, b"e"), Ok(Progress::Complete));
        assert_eq!(h.take(), b"\x01\0\0\x05abcde");
        assert_eq!(h.add(6, b"cd"), Ok(Progress::Partial));
        assert!(h.is_finished());
        assert!(h.add(9, b"f").is_err());
    }

    #[test]
    fn limits() {
        let mut h = Hello::default();
        assert_eq!(h.add(0, b"\x01\0\0\x01ab"), Ok(Progress::CompleteWithExcess));
        assert_eq!(h.take(), b"\x01\0\0\x01a");
        assert!(h.is_finished());
        assert!(Hello::default().add(0, b"\x01\x01\0\0ab").is_err());
        assert!(Hello::default().add(MAX_MESSAGE as u64, b"a").is_err());
        assert!(Hello::default().add(u64::MAX, b"a").is_err());
        let mut h = Hello::default();
        for i in 0..MAX_PARTS as u64 {
            assert_eq!(h.add(10 + 2 * i, b"a"), Ok(Progress::Partial));
        }
        assert!(h.add(9000, b"a").is_err());
    }

    proptest! {
        #[test]
        fn the_order_does_not_matter(
            cuts in prop::collection::vec((0usize..40, 1usize..12), 0..30),
            len in 4usize..40,
        ) {
            let mut whole = vec![1, 0, 0, (len - 4) as u8];
            whole.extend((4..len).map(|i| i as u8));
            let mut h = Hello::default();
            let mut seen = vec![false; len];
            for (at, n) in cuts {
                let end = (at + n).min(len);
                if at >= end || h.is_finished() {
                    continue;
                }
                seen[at..end].fill(true);
                let got = h.add(at as u64, &whole[at..end]);
                let all = seen.iter().all(|s| *s);
                prop_assert_eq!(got, Ok(if all { Progress::Complete } else { Progress::Partial }));
            }
            if h.is_finished() {
                prop_assert_eq!(h.take(), whole);
            }
        }
    }
}
