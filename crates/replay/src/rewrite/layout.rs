//! Positions of the records that a rewrite changes (RFC 1035 §4.1).

use std::ops::Range;

use crate::message::HEADER;

use super::Unchanged;

const OPT: u16 = 41;
const SIG: u16 = 24;
const TSIG: u16 = 250;

/// The positions of these records in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The OPT record.
    pub(super) opt: Option<Range<usize>>,
    /// Offset of the signature, which is the last record: TSIG, or SIG(0) (RFC 2931).
    pub(super) signature: Option<usize>,
    /// Whether the signature is TSIG.
    pub(super) is_tsig: bool,
    /// Number of additional records, including the signature.
    pub(super) additional: u16,
}

impl Layout {
    pub(super) fn of(message: &[u8]) -> Result<Self, Unchanged> {
        read(message).unwrap_or(Err(Unchanged::Malformed))
    }
}

/// `None` if the message is truncated.
fn read(message: &[u8]) -> Option<Result<Layout, Unchanged>> {
    let mut at = HEADER;
    message.get(..HEADER)?;
    for _ in 0..word(message, 4)? {
        at = skip_name(message, at)? + 4;
    }
    let additional = word(message, 10)?;
    let mut layout = Layout { opt: None, signature: None, is_tsig: false, additional };
    for section in [6, 8, 10] {
        for _ in 0..word(message, section)? {
            if layout.signature.is_some() {
                return None;
            }
            let start = at;
            at = skip_name(message, at)?;
            let kind = word(message, at)?;
            at = at + 10 + usize::from(word(message, at + 8)?);
            message.get(..at)?;
            if section != 10 {
                continue;
            }
            match kind {
                OPT if message.get(start) != Some(&0) => return None,
                OPT if layout.opt.is_some() => return Some(Err(Unchanged::SeveralOpts)),
                OPT => layout.opt = Some(start..at),
                TSIG => (layout.signature, layout.is_tsig) = (Some(start), true),
                SIG => layout.signature = Some(start),
                _ => {}
            }
        }
    }
    (at == message.len()).then_some(Ok(layout))
}

/// One option of EDNS (RFC 6891 §6.1.2).
pub(super) struct EdnsOption<'a> {
    pub(super) code: u16,
    /// The whole option, including code and length.
    pub(super) bytes: &'a [u8],
}

/// The options of an OPT record; ends after the first error.
pub(super) fn options(mut rest: &[u8]) -> impl Iterator<Item = Result<EdnsOption<'_>, Unchanged>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let split = || {
            let (code, len) = (word(rest, 0)?, usize::from(word(rest, 2)?));
            let (bytes, after) = rest.split_at_checked(4 + len)?;
            Some((EdnsOption { code, bytes }, after))
        };
        let (option, after) = match split() {
            Some((option, after)) => (Ok(option), after),
            None => (Err(Unchanged::Malformed), &[][..]),
        };
        rest = after;
        Some(option)
    })
}

/// The offset after a name; `None` if the name is malformed.
fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            len @ 1..=63 => at += 1 + usize::from(len),
            0xc0.. => return message.get(at + 1).map(|_| at + 2),
            _ => return None,
        }
    }
}

fn word(message: &[u8], at: usize) -> Option<u16> {
    message.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]))
}
