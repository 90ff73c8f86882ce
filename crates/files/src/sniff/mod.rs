//! File type detection from the first bytes.
//!
//! A [`Signature`] has a media type, a strength and a pattern: a sequence of [`Step`]s from the
//! first byte on, or a function for patterns that steps cannot express (markup, JSON, scripts). Of
//! all matching signatures, the strongest one determines the type; among equals the type that sorts
//! first. [`mime_type`] therefore tries the signatures in that order, by the first byte they
//! accept, and stops at the first match. For most signatures, all files of the type have a certain
//! byte at a certain offset: most signatures are rejected by that byte.
//!
//! A pattern must match at the start of the file and may end anywhere. Plain text is detected from
//! the first ten characters, with or without a byte order mark.

mod binary;
mod container;
mod media;
mod text;

use std::sync::LazyLock;

use memchr::memmem;

/// Maximum number of bytes of a file that are examined; a caller with fewer passes all it has.
pub const SNIFF_BYTES: usize = 4096;

/// A signature of a media type.
#[derive(Clone, Copy, Debug)]
struct Signature {
    /// Priority over other signatures; negative for guesses.
    strength: i16,
    /// The media type.
    mime: &'static str,
    shape: Shape,
}

/// The pattern of the first bytes.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Consecutive steps.
    Steps(&'static [Step]),
    /// A function for the whole; the first function returns whether the file may start with a byte.
    Test(fn(u8) -> bool, fn(&[u8]) -> bool),
}

/// A step of a pattern.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// These bytes.
    Lit(&'static [u8]),
    /// These bytes, with lower-case ASCII letters matched in either case.
    NoCase(&'static [u8]),
    /// These bytes, optionally.
    Opt(&'static [u8]),
    /// One of these byte strings; none is a prefix of another.
    OneOf(&'static [&'static [u8]]),
    /// This number of arbitrary bytes.
    Any(usize),
    /// The longest run of bytes of a class, with a minimum and a maximum length.
    Run(fn(u8) -> bool, usize, usize),
    /// A minimum and a maximum number of arbitrary bytes before the next step.
    Gap(usize, usize),
}

/// No maximum of a [`Step::Run`] or [`Step::Gap`].
const MANY: usize = SNIFF_BYTES;

impl Signature {
    const fn new(strength: i16, mime: &'static str, steps: &'static [Step]) -> Self {
        Self { strength, mime, shape: Shape::Steps(steps) }
    }

    const fn test(
        strength: i16,
        mime: &'static str,
        first: fn(u8) -> bool,
        test: fn(&[u8]) -> bool,
    ) -> Self {
        Self { strength, mime, shape: Shape::Test(first, test) }
    }

    /// The bytes with which a file may start.
    fn first_bytes(&self) -> Bytes {
        let mut bytes = Bytes::default();
        match self.shape {
            Shape::Test(first, _) => add_class(first, &mut bytes),
            Shape::Steps(steps) => add_first_bytes(steps, &mut bytes),
        }
        bytes
    }

    /// The offset and value of a byte after the first one that all files of the type have.
    fn mark(&self) -> Option<(u16, u8)> {
        let Shape::Steps(steps) = self.shape else { return None };
        let mut at = 0;
        for step in steps {
            at += match step {
                // The last byte, because many types have the same beginning.
                Step::Lit([.., last]) if at + step.length()? > 1 => {
                    let offset = u16::try_from(at + step.length()? - 1).ok()?;
                    return Some((offset, *last));
                }
                _ => step.length()?,
            };
        }
        None
    }

    /// A byte string that must occur in the file, if only a gap precedes it.
    fn needle(&self) -> Option<Box<memmem::Finder<'static>>> {
        match self.shape {
            Shape::Steps([Step::Gap(0, MANY), Step::Lit(bytes), ..]) => {
                Some(Box::new(memmem::Finder::new(*bytes)))
            }
            _ => None,
        }
    }

    fn fits(&self, data: &[u8]) -> bool {
        match self.shape {
            Shape::Test(_, test) => test(data),
            Shape::Steps(steps) => fits(steps, data),
        }
    }
}

impl Step {
    /// Number of bytes that the step matches, if fixed.
    fn length(&self) -> Option<usize> {
        match *self {
            Self::Lit(bytes) | Self::NoCase(bytes) => Some(bytes.len()),
            Self::OneOf([first, rest @ ..]) => {
                rest.iter().all(|choice| choice.len() == first.len()).then_some(first.len())
            }
            Self::Any(count) => Some(count),
            Self::Run(_, min, max) => (min == max).then_some(min),
            Self::Opt(_) | Self::OneOf([]) | Self::Gap(..) => None,
        }
    }
}

/// A set of bytes, as a bitmap.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes([u64; 4]);

impl Bytes {
    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// The bytes in ascending order; most sets are small.
    fn iter(self) -> impl Iterator<Item = u8> {
        self.0.into_iter().zip([0, 64, 128, 192]).flat_map(|(mut word, first)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as u8)?;
                word &= word - 1;
                Some(first + bit)
            })
        })
    }
}

/// Adds the bytes with which a match of the steps may start.
fn add_first_bytes(steps: &[Step], bytes: &mut Bytes) {
    let mut add = |byte: u8| bytes.add(byte);
    match steps {
        [Step::Lit([first, ..]), ..] => add(*first),
        [Step::NoCase([first, ..]), ..] => {
            add(*first);
            add(first.to_ascii_uppercase());
        }
        [Step::OneOf(choices), ..] if choices.iter().all(|choice| !choice.is_empty()) => {
            choices.iter().for_each(|choice| add(choice[0]));
        }
        [Step::Run(class, 1.., _), ..] => add_class(*class, bytes),
        [Step::Run(class, 0, _), rest @ ..] => {
            add_class(*class, bytes);
            add_first_bytes(rest, bytes);
        }
        [Step::Opt([first, ..]), rest @ ..] => {
            add(*first);
            add_first_bytes(rest, bytes);
        }
        _ => *bytes = Bytes([u64::MAX; 4]),
    }
}

fn add_class(class: fn(u8) -> bool, bytes: &mut Bytes) {
    (0..=u8::MAX).filter(|byte| class(*byte)).for_each(|byte| bytes.add(byte));
}

/// Whether `data` starts with a match of the steps.
///
/// Steps between gaps match a fixed length for given data, so the earliest match after a gap is as
/// good as any later one, and no gap is tried twice.
fn fits(steps: &[Step], data: &[u8]) -> bool {
    let mut parts = steps.split(|step| matches!(step, Step::Gap(..)));
    let mut gaps = steps.iter().filter_map(|step| match step {
        Step::Gap(min, max) => Some((*min, *max)),
        _ => None,
    });
    let Some(mut rest) = parts.next().and_then(|part| skip_part(part, data)) else {
        return false;
    };
    for part in parts {
        let Some((min, max)) = gaps.next() else {
            return false;
        };
        let Some(found) = find_part(part, rest, min, max) else {
            return false;
        };
        rest = found;
    }
    true
}

/// The data after the first match of a part at an offset between `min` and `max`.
fn find_part<'a>(part: &[Step], data: &'a [u8], min: usize, max: usize) -> Option<&'a [u8]> {
    let mut at = min;
    while at <= max {
        let rest = data.get(at..)?;
        if let Some(Step::Lit(bytes)) = part.first() {
            let window = (max - at).saturating_add(bytes.len()).min(rest.len());
            at += memmem::find(&rest[..window], bytes)?;
        }
        if let Some(after) = data.get(at..).and_then(|rest| skip_part(part, rest)) {
            return Some(after);
        }
        at += 1;
    }
    None
}

/// The data after steps without gaps, if they match.
fn skip_part<'a>(part: &[Step], data: &'a [u8]) -> Option<&'a [u8]> {
    let mut rest = data;
    for step in part {
        rest = match *step {
            Step::Lit(bytes) => rest.strip_prefix(bytes)?,
            Step::NoCase(bytes) => {
                if !starts_with_no_case(rest, bytes) {
                    return None;
                }
                &rest[bytes.len()..]
            }
            Step::Opt(bytes) => rest.strip_prefix(bytes).unwrap_or(rest),
            Step::OneOf(choices) => choices.iter().find_map(|choice| rest.strip_prefix(*choice))?,
            Step::Any(count) => rest.get(count..)?,
            Step::Run(class, min, max) => {
                let count = rest.iter().take(max).take_while(|&&byte| class(byte)).count();
                if count < min {
                    return None;
                }
                &rest[count..]
            }
            Step::Gap(..) => return None,
        };
    }
    Some(rest)
}

/// Whether `data` starts with `lower`, ignoring ASCII case.
fn starts_with_no_case(data: &[u8], lower: &[u8]) -> bool {
    data.get(..lower.len()).is_some_and(|start| start.eq_ignore_ascii_case(lower))
}

/// A signature that may match files with a certain first byte.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// An offset, and the byte at that offset in every file of the type: the first byte if no other
    /// one is known.
    mark: (u16, u8),
    /// Index in [`Table::signatures`].
    signature: u16,
}

/// All signatures, prepared for matching.
#[derive(Debug)]
struct Table {
    /// Strongest first, each with a byte string that must occur in the file, if any. Few have one:
    /// boxing it keeps the other signatures close together in memory.
    signatures: Vec<(&'static Signature, Option<Box<memmem::Finder<'static>>>)>,
    /// For each first byte, the signatures that may match, strongest first.
    by_first_byte: Vec<Vec<Candidate>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut all: Vec<&'static Signature> = signatures().collect();
    all.sort_by_key(|signature| (-signature.strength, signature.mime));
    let mut by_first_byte = vec![Vec::new(); 256];
    for (signature, number) in all.iter().zip(0..) {
        let mark = signature.mark();
        for byte in signature.first_bytes().iter() {
            let candidate = Candidate { mark: mark.unwrap_or((0, byte)), signature: number };
            by_first_byte[usize::from(byte)].push(candidate);
        }
    }
    let signatures = all.into_iter().map(|signature| (signature, signature.needle())).collect();
    Table { signatures, by_first_byte }
});

/// All signatures.
fn signatures() -> impl Iterator<Item = &'static Signature> {
    [binary::SIGNATURES, container::SIGNATURES, media::SIGNATURES, text::SIGNATURES]
        .into_iter()
        .flatten()
}

/// The media type of a file that starts with `data`; `None` if no signature matches.
///
/// Only the first [`SNIFF_BYTES`] are examined. For a longer file, that many bytes should be
/// passed: more bytes may match a more specific type.
pub fn mime_type(data: &[u8]) -> Option<&'static str> {
    let data = &data[..data.len().min(SNIFF_BYTES)];
    let Table { signatures, by_first_byte } = &*TABLE;
    for candidate in by_first_byte.get(usize::from(*data.first()?))? {
        let (offset, byte) = candidate.mark;
        if data.get(usize::from(offset)) != Some(&byte) {
            continue;
        }
        let (signature, needle) = signatures.get(usize::from(candidate.signature))?;
        let contains_needle = needle.as_ref().is_none_or(|needle| needle.find(data).is_some());
        if contains_needle && signature.fits(data) {
            return Some(signature.mime);
        }
    }
    None
}

/// All types that the first bytes of a file match, with their strengths: the strongest first,
/// without duplicates of a type with the same strength.
pub fn matches(data: &[u8]) -> Vec<(i16, &'static str)> {
    let data = &data[..data.len().min(SNIFF_BYTES)];
    let mut all: Vec<_> =
        signatures().filter(|s| s.fits(data)).map(|s| (s.strength, s.mime)).collect();
    all.sort_unstable_by_key(|(strength, mime)| (-strength, *mime));
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The type, found by trying every signature.
    fn plainly(data: &[u8]) -> Option<&'static str> {
        let fitting = signatures().filter(|signature| signature.fits(data));
        fitting.min_by_key(|s| (-s.strength, s.mime)).map(|s| s.mime)
    }

    /// Bytes that roughly match a pattern.
    fn sample(steps: &[Step], filler: u8) -> Vec<u8> {
        let mut data = Vec::new();
        for step in steps {
            match *step {
                Step::Lit(bytes) | Step::NoCase(bytes) | Step::Opt(bytes) => data.extend(bytes),
                Step::OneOf(choices) => {
                    data.extend(choices[usize::from(filler) % choices.len()]);
                }
                Step::Any(count) => data.extend(vec![filler; count]),
                Step::Run(class, min, _) => {
                    let byte = (0..=u8::MAX).find(|byte| class(*byte)).unwrap_or_default();
                    data.extend(vec![byte; min]);
                }
                Step::Gap(min, _) => data.extend(vec![filler; min]),
            }
        }
        data
    }

    #[test]
    fn no_signature_is_passed_over() {
        for signature in signatures() {
            let Shape::Steps(steps) = signature.shape else { continue };
            for filler in [0, b' ', b'<', b'P', b'z', 0xff] {
                let data = sample(steps, filler);
                assert!(signature.fits(&data), "{}", signature.mime);
                assert_eq!(mime_type(&data), plainly(&data), "{}", signature.mime);
            }
        }
    }

    proptest! {
        #[test]
        fn the_first_byte_index_does_not_affect_the_result(
            head in proptest::collection::vec(any::<u8>(), 0..6),
            which in any::<proptest::sample::Index>(),
            cut in 0usize..60,
            tail in "(<\\?php|P[1-6]1  1|--- |[+]{3} |\n|@@|[ -~]){0,12}",
        ) {
            let steps: Vec<_> = signatures()
                .filter_map(|s| match s.shape { Shape::Steps(steps) => Some(steps), Shape::Test(..) => None })
                .collect();
            let mut data = sample(which.get::<&[Step]>(&steps), b' ');
            data.truncate(cut);
            data.splice(0..0, head);
            data.extend(tail.bytes());
            if !data.is_empty() {
                prop_assert_eq!(mime_type(&data), plainly(&data));
            }
        }
    }
}
