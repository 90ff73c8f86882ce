//! The type of a file, told by its first bytes.
//!
//! A [`Signature`] is a media type, a strength and a shape: a row of [`Step`]s from the first
//! byte on, or a small function where steps cannot say it (markup, JSON, scripts). Of all
//! signatures that fit, the strongest names the type; among equals the type that sorts first.
//! [`mime_type`] therefore holds the signatures in that order, by the first byte they accept,
//! and ends at the first that fits.
//!
//! A shape has to fit at the start of the file and may end anywhere. Text is told from the first
//! ten characters, with or without a byte order mark.

mod binary;
mod container;
mod media;
mod text;

use std::sync::LazyLock;

use memchr::memmem;

/// Most bytes of a file that count; a caller that holds fewer passes what it has.
pub const SNIFF_BYTES: usize = 4096;

/// One way to know a type.
#[derive(Clone, Copy, Debug)]
struct Signature {
    /// Weight against other signatures; negative for guesses.
    strength: i16,
    /// The media type.
    mime: &'static str,
    shape: Shape,
}

/// What the first bytes must look like.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Steps one after the other.
    Steps(&'static [Step]),
    /// A function for the whole; the first says which bytes the file may start with.
    Test(fn(u8) -> bool, fn(&[u8]) -> bool),
}

/// A piece of a shape.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// These bytes.
    Lit(&'static [u8]),
    /// These lower-case ASCII letters, in either case, among other bytes.
    NoCase(&'static [u8]),
    /// These bytes, or nothing.
    Opt(&'static [u8]),
    /// One of these; none is a prefix of another.
    OneOf(&'static [&'static [u8]]),
    /// That many bytes of any value.
    Any(usize),
    /// As many bytes of a class as there are, between a least and a most.
    Run(fn(u8) -> bool, usize, usize),
    /// Between a least and a most number of bytes before the rest fits.
    Gap(usize, usize),
}

/// No upper end for a [`Step::Run`] or [`Step::Gap`].
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

    /// Whether a file may start with this byte.
    fn may_start_with(&self, byte: u8) -> bool {
        match self.shape {
            Shape::Test(first, _) => first(byte),
            Shape::Steps(steps) => match steps.first() {
                Some(Step::Lit(bytes)) => bytes.first() == Some(&byte),
                Some(Step::NoCase(bytes)) => bytes.first() == Some(&byte.to_ascii_lowercase()),
                Some(Step::OneOf(choices)) => {
                    choices.iter().any(|choice| choice.first() == Some(&byte))
                }
                Some(Step::Run(class, 1.., _)) => class(byte),
                _ => true,
            },
        }
    }

    fn fits(&self, data: &[u8]) -> bool {
        match self.shape {
            Shape::Test(_, test) => test(data),
            // Most that begin with the same byte differ in the next few.
            Shape::Steps([Step::Lit(bytes), ..]) if !data.starts_with(bytes) => false,
            Shape::Steps(steps) => fits(steps, data),
        }
    }
}

/// Whether `data` starts with what the steps describe.
///
/// Steps between gaps have one length for given data, so the earliest place after a gap where
/// they fit is as good as any later one, and no gap is tried twice.
fn fits(steps: &[Step], data: &[u8]) -> bool {
    let mut parts = steps.split(|step| matches!(step, Step::Gap(..)));
    let mut gaps = steps.iter().filter_map(|step| match step {
        Step::Gap(least, most) => Some((*least, *most)),
        _ => None,
    });
    let Some(mut rest) = parts.next().and_then(|part| skip_part(part, data)) else {
        return false;
    };
    for part in parts {
        let Some((least, most)) = gaps.next() else {
            return false;
        };
        let Some(found) = find_part(part, rest, least, most) else {
            return false;
        };
        rest = found;
    }
    true
}

/// What follows the first place between `least` and `most` where a part fits.
fn find_part<'a>(part: &[Step], data: &'a [u8], least: usize, most: usize) -> Option<&'a [u8]> {
    let mut at = least;
    while at <= most {
        let rest = data.get(at..)?;
        if let Some(Step::Lit(bytes)) = part.first() {
            at += memmem::find(rest, bytes)?;
            if at > most {
                return None;
            }
        }
        if let Some(after) = data.get(at..).and_then(|rest| skip_part(part, rest)) {
            return Some(after);
        }
        at += 1;
    }
    None
}

/// What follows steps without gaps, where they fit.
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
            Step::Run(class, least, most) => {
                let count = rest.iter().take(most).take_while(|&&byte| class(byte)).count();
                if count < least {
                    return None;
                }
                &rest[count..]
            }
            Step::Gap(..) => return None,
        };
    }
    Some(rest)
}

/// Whether `data` starts with `lower`, whatever the case of its letters.
fn starts_with_no_case(data: &[u8], lower: &[u8]) -> bool {
    data.get(..lower.len()).is_some_and(|start| start.eq_ignore_ascii_case(lower))
}

/// For each first byte, the signatures that may fit, strongest first.
static BY_FIRST_BYTE: LazyLock<Vec<Vec<&'static Signature>>> = LazyLock::new(|| {
    let mut all: Vec<&'static Signature> = signatures().collect();
    all.sort_by_key(|signature| (-signature.strength, signature.mime));
    (0..=u8::MAX)
        .map(|byte| {
            all.iter().copied().filter(|signature| signature.may_start_with(byte)).collect()
        })
        .collect()
});

/// Every signature.
fn signatures() -> impl Iterator<Item = &'static Signature> {
    [binary::SIGNATURES, container::SIGNATURES, media::SIGNATURES, text::SIGNATURES]
        .into_iter()
        .flatten()
}

/// The media type of a file that starts with `data`; `None` where nothing fits.
///
/// Only the first [`SNIFF_BYTES`] count. A file that is longer should be passed in that length:
/// more bytes may tell a more special type.
pub fn mime_type(data: &[u8]) -> Option<&'static str> {
    let data = &data[..data.len().min(SNIFF_BYTES)];
    let candidates = BY_FIRST_BYTE.get(usize::from(*data.first()?))?;
    candidates.iter().find(|signature| signature.fits(data)).map(|signature| signature.mime)
}
