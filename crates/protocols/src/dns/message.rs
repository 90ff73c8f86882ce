//! Headers and names of DNS messages (RFC 1035 §4.1).

/// Length of a header, in bytes.
pub const HEADER_LEN: usize = 12;

/// Maximum length of a name as text in bytes, including the dots between and after its labels. This is twice the limit of
/// RFC 1035, so that overlong names in real traffic are parsed and reported.
pub const MAX_NAME_LEN: usize = 512;

/// Default maximum number of compression pointers that are followed for one name.
pub const MAX_POINTERS: u32 = 20;

/// Default maximum number of questions in a message; a message with more is not considered DNS.
pub const MAX_QUESTIONS: u16 = 25;

/// The fixed part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Identifier that joins a reply to its query.
    pub id: u16,
    /// QR, opcode, AA, TC, RD, RA, Z, rcode from the highest bit down.
    pub flags: u16,
    /// Number of questions (zones of an update).
    pub questions: u16,
    /// Number of answers (prerequisites of an update).
    pub answers: u16,
    /// Number of authority records (updates of an update).
    pub authorities: u16,
    /// Number of additional records.
    pub additionals: u16,
}

impl Header {
    /// Parses the first [`HEADER_LEN`] bytes; `None` if the message is shorter.
    #[inline]
    pub fn parse(msg: &[u8]) -> Option<Self> {
        let b: &[u8; HEADER_LEN] = msg.first_chunk()?;
        let word = |i: usize| u16::from_be_bytes([b[2 * i], b[2 * i + 1]]);
        Some(Self {
            id: word(0),
            flags: word(1),
            questions: word(2),
            answers: word(3),
            authorities: word(4),
            additionals: word(5),
        })
    }

    /// QR: a reply.
    pub fn is_reply(&self) -> bool {
        self.flags & 0x8000 != 0
    }

    /// Operation code, four bits.
    pub fn opcode(&self) -> u8 {
        (self.flags >> 11) as u8 & 15
    }

    /// AA: the server is authoritative for the name.
    pub fn authoritative(&self) -> bool {
        self.flags & 0x0400 != 0
    }

    /// TC: truncated to fit the transport.
    pub fn truncated(&self) -> bool {
        self.flags & 0x0200 != 0
    }

    /// RD: recursion is desired.
    pub fn recursion_desired(&self) -> bool {
        self.flags & 0x0100 != 0
    }

    /// RA: recursion is available.
    pub fn recursion_available(&self) -> bool {
        self.flags & 0x0080 != 0
    }

    /// The three reserved bits of RFC 1035, two of them AD and CD since RFC 4035.
    pub fn z(&self) -> u8 {
        (self.flags >> 4) as u8 & 7
    }

    /// Response code, four bits.
    pub fn rcode(&self) -> u8 {
        self.flags as u8 & 15
    }
}

/// Properties of the transport and of the listeners on which parsing depends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageContext {
    /// The responder's port is 137: labels may be long, and type 33 is not SRV.
    pub netbios_server: bool,
    /// The transport is UDP: a TCP keep-alive option is a weird.
    pub udp: bool,
    /// The event of HINFO records has a listener. As in Zeek, they are not parsed otherwise.
    pub hinfo: bool,
    /// The event of CAA records has a listener. As in Zeek, they are not parsed otherwise.
    pub caa: bool,
}

/// A finding about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageNote {
    /// A weird: its name, and its detail or an empty text.
    Weird(&'static str, String),
    /// Like `Weird`, for a limit that was exceeded.
    Limit(&'static str, String),
    /// The bytes are not DNS.
    Violation(&'static str),
}

/// The findings about a message, in order.
pub type Notes = Vec<MessageNote>;

/// Adds a weird without detail.
pub(super) fn weird(notes: &mut Notes, name: &'static str) {
    notes.push(MessageNote::Weird(name, String::new()));
}

/// Adds a weird with a number as its detail.
pub(super) fn weird_number(notes: &mut Notes, name: &'static str, number: impl Into<i64>) {
    notes.push(MessageNote::Weird(name, number.into().to_string()));
}

/// An offset in a message, and the end of the readable part.
///
/// As in Zeek, reads beyond the end return zero and do not advance, so that records with a wrong
/// length field give the same results.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    msg: &'a [u8],
    pos: usize,
    end: usize,
    max_pointers: u32,
}

impl<'a> Cursor<'a> {
    /// A cursor at `pos` of a message, whose whole rest is readable.
    pub fn new(msg: &'a [u8], pos: usize) -> Self {
        let (pos, end) = (pos.min(msg.len()), msg.len());
        Self { msg, pos, end, max_pointers: MAX_POINTERS }
    }

    /// Limits the number of compression pointers that are followed for one name.
    pub fn with_max_pointers(self, max: u64) -> Self {
        Self { max_pointers: u32::try_from(max).unwrap_or(u32::MAX), ..self }
    }

    /// The message.
    #[inline]
    pub fn message(&self) -> &'a [u8] {
        self.msg
    }

    /// Offset in the message.
    #[inline]
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// Number of remaining bytes.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.end - self.pos
    }

    /// The remaining bytes.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.msg[self.pos..self.end]
    }

    /// Reads a byte; 0 beyond the end.
    #[inline]
    pub fn u8(&mut self) -> u8 {
        match self.rest().first() {
            Some(b) => {
                self.pos += 1;
                *b
            }
            None => 0,
        }
    }

    /// Reads a number of two bytes; 0 beyond the end.
    #[inline]
    pub fn u16(&mut self) -> u16 {
        match self.rest().first_chunk() {
            Some(b) => {
                self.pos += 2;
                u16::from_be_bytes(*b)
            }
            None => 0,
        }
    }

    /// Reads a number of four bytes; 0 beyond the end.
    #[inline]
    pub fn u32(&mut self) -> u32 {
        match self.rest().first_chunk() {
            Some(b) => {
                self.pos += 4;
                u32::from_be_bytes(*b)
            }
            None => 0,
        }
    }

    /// Reads `n` bytes, or the remaining bytes if they are fewer.
    #[inline]
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let rest = self.rest();
        let n = n.min(rest.len());
        self.pos += n;
        &rest[..n]
    }

    /// Advances by `n` bytes, or to the end.
    #[inline]
    pub fn skip(&mut self, n: usize) {
        self.take(n);
    }

    /// Decodes a name, following compression pointers (RFC 1035 §4.1.4), and appends its text: labels joined by dots, in
    /// lower case. `long_labels` allows labels of more than 63 bytes, as in the NetBIOS name service. Returns false and
    /// adds a weird if the name is invalid.
    pub fn name(&mut self, out: &mut Vec<u8>, long_labels: bool, notes: &mut Notes) -> bool {
        let start = out.len();
        let ok = self.plain_name(out) || self.expand(out, MAX_NAME_LEN, long_labels, 0, notes);
        lower(&mut out[start..]);
        ok
    }

    /// Skips a name whose text may not be needed, and returns its offset for [decoding](Self::name). A name that cannot be
    /// skipped without decoding is decoded to `buffer`. `None`, with a weird, if the name is invalid.
    #[inline]
    pub fn skip_name(
        &mut self,
        buffer: &mut Vec<u8>,
        long_labels: bool,
        notes: &mut Notes,
    ) -> Option<SkippedName> {
        let from = self.pos;
        if let Some((_, after)) = self.plain_labels() {
            self.pos = after;
            return Some(SkippedName::At(from));
        }
        buffer.clear();
        self.name(buffer, long_labels, notes).then_some(SkippedName::Decoded)
    }

    /// Fast path for a name of a few labels, or of one pointer to them. `None` for any other name, valid or not, which
    /// [`expand`](Self::expand) decodes. Returns the labels with their length bytes, and the offset after the name.
    #[inline]
    fn plain_labels(&self) -> Option<(&'a [u8], usize)> {
        let from = self.pos;
        let (at, end, after) = match *self.rest() {
            [high @ 0xc0..=0xff, low, ..] => {
                let target = usize::from(high & 0x3f) << 8 | usize::from(low);
                (target, from, Some(from + 2))
            }
            _ => (from, self.end, None),
        };
        let labels = self.msg.get(at..end)?;
        let mut zero = 0;
        loop {
            match labels.get(zero) {
                Some(0) => break,
                Some(len @ 1..=63) if zero < 190 => zero += 1 + usize::from(*len),
                _ => return None,
            }
        }
        Some((&labels[..zero], after.unwrap_or(at + zero + 1)))
    }

    /// Decodes a name on the [fast path](Self::plain_labels) and appends it in its original case. Returns false, without
    /// having read anything, for any other name.
    #[inline]
    fn plain_name(&mut self, out: &mut Vec<u8>) -> bool {
        let Some((labels, after)) = self.plain_labels() else { return false };
        // Uncompressed names take one byte, or at least three.
        let is_pointer = after == self.pos + 2;
        self.pos = after;
        let Some((first, texts)) = labels.split_first() else { return true };
        // The length bytes of all labels but the first become dots.
        let start = out.len();
        out.extend_from_slice(texts);
        let mut dot = usize::from(*first);
        while let Some(byte) = out[start..].get_mut(dot) {
            dot += 1 + usize::from(*byte);
            *byte = b'.';
        }
        // As in Zeek, a name after a pointer loses another dot if its last label ends with one.
        if is_pointer && out.len() >= start + 2 && out.last() == Some(&b'.') {
            out.pop();
        }
        true
    }

    /// Like [`name`](Self::name), but keeps the original case, except after a compression pointer.
    pub fn name_as_is(&mut self, out: &mut Vec<u8>, long_labels: bool, notes: &mut Notes) -> bool {
        self.expand(out, MAX_NAME_LEN, long_labels, 0, notes)
    }

    fn expand(
        &mut self,
        out: &mut Vec<u8>,
        mut max_len: usize,
        long_labels: bool,
        depth: u32,
        notes: &mut Notes,
    ) -> bool {
        if depth > self.max_pointers {
            let name = "DNS_max_compression_chain_depth_exceeded";
            notes.push(MessageNote::Limit(name, depth.to_string()));
            return true;
        }
        let start = out.len();
        loop {
            let at = self.pos;
            let Some((&len, rest)) = self.rest().split_first() else {
                weird(notes, "dns_invalid_name");
                return false;
            };
            self.pos += 1;
            let len = usize::from(len);
            if len == 0 {
                break;
            }
            if len >= 0xc0 {
                let Some(low) = rest.first() else {
                    weird(notes, "dns_invalid_name");
                    return false;
                };
                self.pos += 1;
                let target = (len & 0x3f) << 8 | usize::from(*low);
                if target >= at {
                    weird(notes, "DNS_label_forward_compress_offset");
                    return false;
                }
                let mut suffix = Cursor { pos: target, end: at, ..*self };
                let tail = out.len();
                if !suffix.expand(out, max_len, long_labels, depth + 1, notes) {
                    return false;
                }
                out[tail..].make_ascii_lowercase();
                break;
            }
            if len > rest.len() {
                weird(notes, "DNS_label_len_gt_pkt");
                self.pos = self.end;
                return false;
            }
            if len > 63 && !long_labels {
                weird(notes, "DNS_label_too_long");
                return false;
            }
            if len >= max_len {
                weird(notes, "DNS_label_len_gt_name_len");
                return false;
            }
            out.extend_from_slice(&rest[..len]);
            out.push(b'.');
            max_len -= len + 1;
            self.pos += len;
        }
        let len = out.len() - start;
        if len >= 255 {
            weird(notes, "DNS_NAME_too_long");
        }
        if len >= 2 && out.last() == Some(&b'.') {
            out.pop();
        }
        true
    }
}

/// Result of [skipping](Cursor::skip_name) a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkippedName {
    /// The name was not decoded: it starts at this offset.
    At(usize),
    /// The name was decoded to the buffer.
    Decoded,
}

/// Converts to lower case, sixteen bytes at a time.
#[inline]
fn lower(text: &mut [u8]) {
    if let Some(last) = text.last_chunk_mut::<16>() {
        // The last chunk may overlap the others, which does not change the result.
        *last = last.map(|c| c.to_ascii_lowercase());
        for chunk in text.as_chunks_mut::<16>().0 {
            *chunk = chunk.map(|c| c.to_ascii_lowercase());
        }
    } else {
        text.make_ascii_lowercase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(msg: &[u8], at: usize) -> (bool, String, usize, Notes) {
        let mut cursor = Cursor::new(msg, at);
        let (mut out, mut notes) = (Vec::new(), Notes::new());
        let ok = cursor.name(&mut out, false, &mut notes);
        (ok, String::from_utf8_lossy(&out).into_owned(), cursor.pos(), notes)
    }

    proptest! {
        /// The fast path gives the same result as the general one.
        #[test]
        fn plain_names_as_any(
            lens in proptest::collection::vec(0_usize..70, 0..8),
            tail in proptest::collection::vec(any::<u8>(), 0..6),
            at in 0_usize..40,
            pointer in any::<bool>(),
        ) {
            let mut msg = vec![b'A'; 12];
            for len in lens {
                msg.push(len as u8);
                msg.extend((0..len).map(|i| b"aZ.9\0\xc0"[i % 6]));
            }
            if pointer {
                msg.extend_from_slice(&[0, 0xc0, at as u8]);
            }
            let at = if pointer { msg.len() - 2 } else { at.min(msg.len()) };
            msg.extend_from_slice(&tail);
            let mut cursor = Cursor::new(&msg, at);
            let (mut out, mut notes) = (Vec::new(), Notes::new());
            let ok = cursor.expand(&mut out, MAX_NAME_LEN, false, 0, &mut notes);
            out.make_ascii_lowercase();
            let pos = cursor.pos();
            let mut passing = Cursor::new(&msg, at);
            let (mut room, mut same) = (vec![1], Notes::new());
            match passing.skip_name(&mut room, false, &mut same) {
                Some(SkippedName::At(from)) => prop_assert!(ok && from == at),
                Some(SkippedName::Decoded) => prop_assert!(ok && room == out),
                None => prop_assert!(!ok),
            }
            prop_assert_eq!((passing.pos(), &same), (pos, &notes));
            let expected = (ok, String::from_utf8_lossy(&out).into_owned(), pos, notes);
            prop_assert_eq!(name(&msg, at), expected);
        }
    }

    fn fault(msg: &[u8], at: usize) -> &'static str {
        match name(msg, at) {
            (false, .., notes) => match notes[..] {
                [MessageNote::Weird(name, _)] => name,
                _ => "?",
            },
            _ => "",
        }
    }

    #[test]
    fn header_bits() {
        let h = Header::parse(&[0x12, 0x34, 0xad, 0xd3, 0, 1, 0, 2, 0, 3, 0, 4]).unwrap();
        assert_eq!((h.id, h.questions, h.answers), (0x1234, 1, 2));
        assert_eq!((h.authorities, h.additionals), (3, 4));
        assert!(h.is_reply() && h.authoritative() && !h.truncated());
        assert!(h.recursion_desired() && h.recursion_available());
        assert_eq!((h.opcode(), h.z(), h.rcode()), (5, 5, 3));
        assert_eq!(Header::parse(&[0; 11]), None);
    }

    #[test]
    fn names_with_and_without_pointers() {
        let msg = b"\x03WWW\x07example\x00\x03ftp\xc0\x04\x00";
        assert_eq!(name(msg, 0), (true, "www.example".into(), 13, vec![]));
        assert_eq!(name(msg, 13), (true, "ftp.example".into(), 19, vec![]));
        assert_eq!(name(msg, 19), (true, String::new(), 20, vec![]));
    }

    #[test]
    fn faults() {
        assert_eq!(fault(b"", 0), "dns_invalid_name");
        assert_eq!(fault(b"\x01a", 0), "dns_invalid_name");
        assert_eq!(fault(b"\xc0", 0), "dns_invalid_name");
        assert_eq!(fault(b"\xc0\x00", 0), "DNS_label_forward_compress_offset");
        assert_eq!(fault(b"\x05abc", 0), "DNS_label_len_gt_pkt");
        assert_eq!(fault(&[64; 80], 0), "DNS_label_too_long");
        let long: Vec<u8> = [[63u8; 64]; 9].concat();
        assert_eq!(fault(&long, 0), "DNS_label_len_gt_name_len");
    }

    #[test]
    fn chains_of_pointers_end() {
        // A label, then pointers that each lead to the previous one.
        let mut msg = vec![1, b'x', 0];
        for i in 0..25u8 {
            msg.extend_from_slice(&[0xc0, if i == 0 { 0 } else { 1 + 2 * i }]);
        }
        let at = |i: usize| 3 + 2 * i;
        assert_eq!(name(&msg, at(19)).1, "x");
        let (ok, text, _, notes) = name(&msg, at(20));
        assert!(ok && text.is_empty());
        let limit = "DNS_max_compression_chain_depth_exceeded";
        assert_eq!(notes, [MessageNote::Limit(limit, "21".into())]);
    }

    #[test]
    fn long_labels_for_netbios_only() {
        let mut msg = vec![100];
        msg.extend_from_slice(&[b'q'; 100]);
        msg.push(0);
        let (mut out, mut notes) = (Vec::new(), Notes::new());
        assert!(Cursor::new(&msg, 0).name(&mut out, true, &mut notes));
        assert_eq!((out.len(), notes.len()), (100, 0));
    }

    proptest! {
        #[test]
        fn decodes_what_was_encoded(labels in prop::collection::vec("[a-z0-9-]{1,63}", 1..4)) {
            let mut msg = Vec::new();
            for l in &labels {
                msg.push(l.len() as u8);
                msg.extend_from_slice(l.as_bytes());
            }
            msg.push(0);
            let whole = msg.len();
            msg.extend_from_slice(&[1, b'x', 0xc0, 0]);
            let text = labels.join(".");
            prop_assert_eq!(name(&msg, 0), (true, text.clone(), whole, vec![]));
            prop_assert_eq!(name(&msg, whole), (true, format!("x.{text}"), whole + 4, vec![]));
        }

        #[test]
        fn any_bytes_are_decoded(msg: Vec<u8>, at in 0usize..64) {
            let (_, text, pos, _) = name(&msg, at);
            prop_assert!(pos <= msg.len() && text.len() <= 3 * MAX_NAME_LEN);
        }
    }
}
