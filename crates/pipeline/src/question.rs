//! The question of a DNS message, parsed in place (RFC 1035 §4.1).
//!
//! A name is normalised for comparison: its labels as on the wire, in lower case (RFC 4343), without compression, in
//! words of eight bytes, padded with zeros to a multiple of four words. So most names take the same code path, and text
//! is formatted only for display.

/// Maximum length of a name on the wire, in bytes (RFC 1035 §2.3.4).
const MAX_NAME: usize = 255;
/// Offset of the first question.
const QUESTION_OFFSET: usize = 12;
/// Number of bytes of a name that are normalised at a time.
const CHUNK: usize = 32;

/// The first question of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The query type.
    pub qtype: u16,
    /// The query class; its highest bit has its own meaning in mDNS (RFC 6762 §5.4).
    pub qclass: u16,
    /// Length of the name in bytes, including the final zero; `None` if it contains a compression pointer.
    len: Option<u8>,
}

impl Question {
    /// Parses the first question of a message. `None` if there is none or it is malformed: truncated, or with a name
    /// that is too long or has invalid pointers.
    #[inline]
    pub fn of(message: &[u8]) -> Option<Self> {
        let head: &[u8; QUESTION_OFFSET] = message.first_chunk()?;
        if head[4] | head[5] == 0 {
            return None;
        }
        let mut at = QUESTION_OFFSET;
        loop {
            let label = usize::from(*message.get(at)?);
            match label {
                0 => break,
                1..=63 => at += 1 + label,
                _ => return Self::with_pointer(message),
            }
            if at - QUESTION_OFFSET >= MAX_NAME {
                return None;
            }
        }
        let [t, u, c, d] = *message.get(at + 1..)?.first_chunk()?;
        let (qtype, qclass) = (u16::from_be_bytes([t, u]), u16::from_be_bytes([c, d]));
        Some(Self { qtype, qclass, len: u8::try_from(at + 1 - QUESTION_OFFSET).ok() })
    }

    #[cold]
    fn with_pointer(message: &[u8]) -> Option<Self> {
        let end = expand(message, QUESTION_OFFSET, &mut Vec::new())?;
        let [t, u, c, d] = *message.get(end..)?.first_chunk()?;
        let (qtype, qclass) = (u16::from_be_bytes([t, u]), u16::from_be_bytes([c, d]));
        Some(Self { qtype, qclass, len: None })
    }

    /// Appends the normalised name; `message` is the message of the question.
    #[inline(always)]
    pub fn push_name(&self, message: &[u8], words: &mut Vec<u64>) {
        let len = self.len.map_or(usize::MAX, usize::from);
        // The sixteen bytes up to the end of the name nearly always exist, because the header precedes it.
        let last =
            message.get(..QUESTION_OFFSET.saturating_add(len)).and_then(<[u8]>::last_chunk::<16>);
        match (len, last) {
            (..=16, Some(last)) => {
                push_chunk([u128::from_le_bytes(*last) >> (8 * (16 - len)), 0], words);
            }
            (17..=CHUNK, Some(last)) => {
                let first = message.get(QUESTION_OFFSET..).and_then(<[u8]>::first_chunk::<16>);
                let first = first.map_or(0, |first| u128::from_le_bytes(*first));
                push_chunk([first, u128::from_le_bytes(*last) >> (8 * (CHUNK - len))], words);
            }
            (..=MAX_NAME, _) => {
                push_long(message.get(QUESTION_OFFSET..QUESTION_OFFSET + len), words);
            }
            _ => push_expanded(message, words),
        }
    }
}

/// Appends four words in lower case.
#[inline(always)]
fn push_chunk(halves: [u128; 2], words: &mut Vec<u64>) {
    let [first, second] = halves;
    words.extend_from_slice(&[
        lower(first as u64),
        lower((first >> 64) as u64),
        lower(second as u64),
        lower((second >> 64) as u64),
    ]);
}

#[inline(never)]
fn push_long(name: Option<&[u8]>, words: &mut Vec<u64>) {
    for part in name.unwrap_or_default().chunks(CHUNK) {
        let mut bytes = [[0; 16]; 2];
        bytes.as_flattened_mut()[..part.len()].copy_from_slice(part);
        push_chunk(bytes.map(u128::from_le_bytes), words);
    }
}

#[cold]
fn push_expanded(message: &[u8], words: &mut Vec<u64>) {
    let mut name = Vec::new();
    if expand(message, QUESTION_OFFSET, &mut name).is_some() {
        push_long(Some(&name), words);
    }
}

/// Appends the name at `at` without compression; returns the offset of its end in the message. Pointers must refer to
/// earlier offsets (RFC 1035 §4.1.4), so the expansion terminates.
fn expand(message: &[u8], at: usize, out: &mut Vec<u8>) -> Option<usize> {
    let (mut at, mut end, mut bound) = (at, None, at);
    let start = out.len();
    loop {
        let head = *message.get(at)?;
        match head {
            0 => {
                out.push(0);
                return Some(end.unwrap_or(at + 1));
            }
            1..=63 => {
                let label = message.get(at..=at + usize::from(head))?;
                out.extend_from_slice(label);
                if out.len() - start >= MAX_NAME {
                    return None;
                }
                at += label.len();
            }
            0xc0.. => {
                let to = usize::from(head & 0x3f) << 8 | usize::from(*message.get(at + 1)?);
                end = end.or(Some(at + 2));
                if to >= bound {
                    return None;
                }
                (bound, at) = (to, to);
            }
            _ => return None,
        }
    }
}

/// Converts A to Z in eight bytes to lower case; the lengths of labels are below both ranges.
#[inline]
fn lower(word: u64) -> u64 {
    const ALL: u64 = 0x0101_0101_0101_0101;
    let low = word & (0x7f * ALL);
    let beyond_z = low + (0x7f - u64::from(b'Z')) * ALL;
    let from_a = low + (0x80 - u64::from(b'A')) * ALL;
    let is_upper = !word & (from_a ^ beyond_z) & (0x80 * ALL);
    word | is_upper >> 2
}

/// Reads a normalised name from the start of `words`; returns its labels as on the wire, and the number of words.
/// `None` if it is invalid.
pub fn name_of(words: &[u64]) -> Option<(Vec<u8>, usize)> {
    let bytes = words.iter().take(MAX_NAME.div_ceil(8)).flat_map(|w| w.to_le_bytes());
    let bytes: Vec<u8> = bytes.collect();
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            0 => break,
            label @ 1..=63 => at += 1 + usize::from(label),
            _ => return None,
        }
    }
    Some((bytes.get(..=at)?.to_vec(), (at + 1).div_ceil(CHUNK) * CHUNK / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(rest: &[u8]) -> Vec<u8> {
        [&[0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], rest].concat()
    }

    fn name(rest: &[u8]) -> Option<Vec<u8>> {
        let message = message(rest);
        let question = Question::of(&message)?;
        let mut words = vec![7];
        question.push_name(&message, &mut words);
        assert_eq!((question.qtype, question.qclass, words[0]), (28, 1, 7));
        let (name, len) = name_of(&words[1..])?;
        assert_eq!(len, words.len() - 1);
        Some(name)
    }

    #[test]
    fn names_of_any_length_are_in_lower_case() {
        assert_eq!(name(b"\0\0\x1c\0\x01").unwrap(), b"\0");
        for len in 1..=63 {
            let label = vec![b'Q'; len];
            let rest = [&[len as u8], &label[..], b"\x02\xC0[\0\0\x1c\0\x01"].concat();
            let expected = [&[len as u8], &vec![b'q'; len][..], b"\x02\xC0[\0"].concat();
            assert_eq!(name(&rest).unwrap(), expected);
        }
    }

    #[test]
    fn only_letters_change() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in all.as_chunks::<8>().0 {
            let expected = bytes.map(|b| b.to_ascii_lowercase());
            assert_eq!(lower(u64::from_le_bytes(*bytes)).to_le_bytes(), expected);
        }
    }

    #[test]
    fn pointers_must_refer_to_earlier_offsets() {
        // A pointer into the header, whose id is a label of one byte.
        let mut m = message(b"\x01A\xc0\x00\0\x1c\0\x01");
        m[..4].copy_from_slice(b"\x01B\0\0");
        let question = Question::of(&m).unwrap();
        let mut words = Vec::new();
        question.push_name(&m, &mut words);
        assert_eq!(name_of(&words).unwrap(), (b"\x01a\x01b\0".to_vec(), 4));
        assert_eq!(name(b"\xc0\x0c\0\x1c\0\x01"), None);
        assert_eq!(name(b"\x01a\xc0\x0c\0\x1c\0\x01"), None);
    }

    #[test]
    fn malformed_questions_are_none() {
        for rest in [&b"\x03ww"[..], b"\x03www\0\0\x1c\0", b"\x40\0\0\x1c\0\x01", b""] {
            assert_eq!(name(rest), None, "{rest:?}");
        }
        let long = [b"\x3f".as_slice(), &[b'a'; 63]].concat();
        let longest = [&long.repeat(3)[..], &[61], &[b'a'; 61], b"\0\0\x1c\0\x01"].concat();
        assert_eq!(name(&longest).unwrap().len(), 255);
        let longer = [&long.repeat(3)[..], &[62], &[b'a'; 62], b"\0\0\x1c\0\x01"].concat();
        assert_eq!(name(&longer), None);
        let mut none = message(b"\0\0\x1c\0\x01");
        none[5] = 0;
        assert_eq!(Question::of(&none), None);
    }
}
