//! Headers and names of DNS messages (RFC 1035 §4.1).

/// Bytes of a header.
pub const HEADER_LEN: usize = 12;

/// Bytes a name may have as text, the dots between and after its labels included. Twice what
/// RFC 1035 allows: longer ones occur, and are worth reading and reporting.
pub const NAME_ROOM: usize = 512;

/// Compression pointers followed for one name.
pub const MAX_POINTERS: u32 = 20;

/// Questions in one message, beyond which it is taken for something else than DNS.
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
    /// Reads the first [`HEADER_LEN`] bytes; `None` if there are fewer.
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

    /// What kind of query, four bits.
    pub fn opcode(&self) -> u8 {
        (self.flags >> 11) as u8 & 15
    }

    /// AA: the server is an authority for the name.
    pub fn authoritative(&self) -> bool {
        self.flags & 0x0400 != 0
    }

    /// TC: cut to fit the transport.
    pub fn truncated(&self) -> bool {
        self.flags & 0x0200 != 0
    }

    /// RD: recursion is asked for.
    pub fn recursion_desired(&self) -> bool {
        self.flags & 0x0100 != 0
    }

    /// RA: recursion is offered.
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

/// Where a message travels, as far as reading it depends on that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageContext {
    /// The responder's port is 137: long labels, and type 33 is no SRV.
    pub netbios_server: bool,
    /// Over UDP: a TCP keepalive option is out of place.
    pub udp: bool,
    /// HINFO has a listener: Zeek does not read such records otherwise.
    pub hinfo: bool,
    /// CAA has a listener: Zeek does not read such records otherwise.
    pub caa: bool,
}

/// Something about a message that is worth a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageNote {
    /// A name for weird.log, with details or an empty text.
    Weird(&'static str, String),
    /// The same, because a limit was reached.
    Limit(&'static str, String),
    /// The bytes are not DNS.
    Violation(&'static str),
}

/// The weirds of a message, in order.
pub type Notes = Vec<MessageNote>;

/// Adds a weird without details.
pub(super) fn weird(notes: &mut Notes, name: &'static str) {
    notes.push(MessageNote::Weird(name, String::new()));
}

/// Adds a weird with a number as its details.
pub(super) fn weird_number(notes: &mut Notes, name: &'static str, number: impl Into<i64>) {
    notes.push(MessageNote::Weird(name, number.into().to_string()));
}

/// A place in a message, and how far reading may go.
///
/// As in Zeek, reads that do not fit return zero and do not advance, so that records with a wrong
/// length field give the same results.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    msg: &'a [u8],
    pos: usize,
    end: usize,
    most_pointers: u32,
}

impl<'a> Cursor<'a> {
    /// At `pos` of a message, to be read to its end.
    pub fn new(msg: &'a [u8], pos: usize) -> Self {
        let (pos, end) = (pos.min(msg.len()), msg.len());
        Self { msg, pos, end, most_pointers: MAX_POINTERS }
    }

    /// The same, for names with at most this many pointers, one behind another.
    pub fn with_pointers(self, most: u64) -> Self {
        Self { most_pointers: u32::try_from(most).unwrap_or(u32::MAX), ..self }
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

    /// Bytes left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.end - self.pos
    }

    /// The bytes left.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.msg[self.pos..self.end]
    }

    /// A byte, or 0.
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

    /// Two bytes, or 0.
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

    /// Four bytes, or 0.
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

    /// The next `n` bytes, or as many as there are.
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

    /// Appends a name as text, labels joined by dots and in lower case, following compression
    /// pointers (RFC 1035 §4.1.4). `long_labels` lets labels have more than 63 bytes, as the
    /// NetBIOS name service does. Returns false, with a note, if it is no name.
    pub fn name(&mut self, out: &mut Vec<u8>, long_labels: bool, notes: &mut Notes) -> bool {
        let start = out.len();
        let ok = self.plain_name(out) || self.expand(out, NAME_ROOM, long_labels, 0, notes);
        lower(&mut out[start..]);
        ok
    }

    /// Skips a name whose text may not be needed: `None` for an invalid name, with a note;
    /// otherwise its offset, to be [read](Self::name) later.
    #[inline]
    pub fn pass_name(
        &mut self,
        room: &mut Vec<u8>,
        long_labels: bool,
        notes: &mut Notes,
    ) -> Option<Passed> {
        let from = self.pos;
        if let Some((_, after)) = self.plain_labels() {
            self.pos = after;
            return Some(Passed::At(from));
        }
        room.clear();
        self.name(room, long_labels, notes).then_some(Passed::Read)
    }

    /// What nearly all names are: a few labels, or one pointer to them. Whatever else there is, faults
    /// above all, is left to [`expand`](Self::expand). Returns the labels with their lengths, and the
    /// offset behind the name.
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

    /// Appends a name of plain labels in the case it came in; where there is none, nothing has been
    /// read.
    #[inline]
    fn plain_name(&mut self, out: &mut Vec<u8>) -> bool {
        let Some((labels, after)) = self.plain_labels() else { return false };
        // Labels take up one byte, or three and more.
        let pointed = after == self.pos + 2;
        self.pos = after;
        let Some((first, texts)) = labels.split_first() else { return true };
        // Where the length of a label was, behind the first, there is a dot.
        let start = out.len();
        out.extend_from_slice(texts);
        let mut dot = usize::from(*first);
        while let Some(place) = out[start..].get_mut(dot) {
            dot += 1 + usize::from(*place);
            *place = b'.';
        }
        // Behind a pointer a dot at the end is taken off once more, should a label end with one.
        if pointed && out.len() >= start + 2 && out.last() == Some(&b'.') {
            out.pop();
        }
        true
    }

    /// The same, in the case it came in (what pointers lead to excepted).
    pub fn name_as_is(&mut self, out: &mut Vec<u8>, long_labels: bool, notes: &mut Notes) -> bool {
        self.expand(out, NAME_ROOM, long_labels, 0, notes)
    }

    fn expand(
        &mut self,
        out: &mut Vec<u8>,
        mut room: usize,
        long_labels: bool,
        depth: u32,
        notes: &mut Notes,
    ) -> bool {
        if depth > self.most_pointers {
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
                let mut behind = Cursor { pos: target, end: at, ..*self };
                let tail = out.len();
                if !behind.expand(out, room, long_labels, depth + 1, notes) {
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
            if len >= room {
                weird(notes, "DNS_label_len_gt_name_len");
                return false;
            }
            out.extend_from_slice(&rest[..len]);
            out.push(b'.');
            room -= len + 1;
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

/// Where a name that was [passed](Cursor::pass_name) is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// Its text was not needed: it begins at this offset.
    At(usize),
    /// It had to be read, into the room that was given.
    Read,
}

/// Lower case, sixteen bytes at a time.
#[inline]
fn lower(text: &mut [u8]) {
    if let Some(last) = text.last_chunk_mut::<16>() {
        // Letters of the last bytes that the others overlap are in lower case by then: no harm.
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
        /// The short way to a name is only short.
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
            let ok = cursor.expand(&mut out, NAME_ROOM, false, 0, &mut notes);
            out.make_ascii_lowercase();
            let pos = cursor.pos();
            let mut passing = Cursor::new(&msg, at);
            let (mut room, mut same) = (vec![1], Notes::new());
            match passing.pass_name(&mut room, false, &mut same) {
                Some(Passed::At(from)) => prop_assert!(ok && from == at),
                Some(Passed::Read) => prop_assert!(ok && room == out),
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
        // A label, then pointers each to the one before.
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
        fn any_bytes_end(msg: Vec<u8>, at in 0usize..64) {
            let (_, text, pos, _) = name(&msg, at);
            prop_assert!(pos <= msg.len() && text.len() <= 3 * NAME_ROOM);
        }
    }
}
