//! DNS over TCP: each message has a length prefix (RFC 1035 §4.2.2).

/// Splits one direction of a TCP stream into messages.
#[derive(Debug, Default)]
pub(super) struct Framing {
    state: State,
    /// Length of the current message, in bytes.
    size: u16,
    /// The bytes of the current message so far. Grows with the bytes that arrive, never by the length alone.
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The high byte of the length is next.
    #[default]
    High,
    /// The low byte of the length is next.
    Low,
    Message,
}

impl Framing {
    /// Processes bytes of the stream and calls `message` for each message that they complete.
    pub(super) fn push(&mut self, mut data: &[u8], mut message: impl FnMut(&[u8])) {
        while let Some((&first, rest)) = data.split_first() {
            match self.state {
                State::High => {
                    self.size = u16::from(first) << 8;
                    self.state = State::Low;
                    data = rest;
                }
                State::Low => {
                    self.size |= u16::from(first);
                    self.state = State::Message;
                    self.buffer.clear();
                    data = rest;
                }
                State::Message => {
                    let size = usize::from(self.size);
                    let missing = size.saturating_sub(self.buffer.len());
                    let (part, rest) = data.split_at(missing.min(data.len()));
                    data = rest;
                    if part.len() < missing {
                        self.buffer.extend_from_slice(part);
                        continue;
                    }
                    self.state = State::High;
                    if self.buffer.is_empty() {
                        message(part); // complete: no copy
                    } else {
                        self.buffer.extend_from_slice(part);
                        message(&self.buffer[..size.min(self.buffer.len())]);
                        self.buffer.clear();
                    }
                }
            }
        }
    }

    /// Returns the incomplete message at the end of the stream, if any. As in Zeek, the bytes stay in the buffer, and
    /// data after the end starts with an empty message.
    pub(super) fn flush(&mut self) -> Option<&[u8]> {
        if self.state != State::Message || self.buffer.is_empty() {
            return None;
        }
        self.size = 0;
        Some(&self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut framing, mut out) = (Framing::default(), Vec::new());
        for chunk in chunks {
            framing.push(chunk, |m| out.push(m.to_vec()));
        }
        out
    }

    #[test]
    fn an_empty_message_is_complete_with_the_next_byte() {
        assert_eq!(messages(&[b"\0\0"]), Vec::<Vec<u8>>::new());
        assert_eq!(messages(&[b"\0\0", b"\0"]), [b""]);
    }

    #[test]
    fn the_end_yields_the_incomplete_message() {
        let mut framing = Framing::default();
        framing.push(b"\x01\x00abc", |_| panic!("unfinished"));
        assert_eq!(framing.flush(), Some(&b"abc"[..]));
        let mut out = Vec::new();
        framing.push(b"\x00\x01x", |m| out.push(m.to_vec()));
        assert_eq!(out, [&b""[..], b"x"]);
        assert_eq!(framing.flush(), None);
    }

    proptest! {
        #[test]
        fn messages_do_not_depend_on_chunks(
            parts in prop::collection::vec(prop::collection::vec(0u8.., 1..40), 1..6),
            cuts in prop::collection::vec(1usize..20, 1..50),
        ) {
            let stream: Vec<u8> = parts
                .iter()
                .flat_map(|p| [&(p.len() as u16).to_be_bytes()[..], p].concat())
                .collect();
            let (mut chunks, mut rest) = (Vec::new(), &stream[..]);
            for cut in cuts {
                let (chunk, after) = rest.split_at(cut.min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            chunks.push(rest);
            prop_assert_eq!(messages(&chunks), parts);
        }
    }
}
