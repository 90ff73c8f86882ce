/// Iterates over the names of a chunk's tags, including the slash of closing tags; at the first
/// data that is not a tag, returns `Err` and ends.
pub fn tags(data: &[u8]) -> impl Iterator<Item = Result<&[u8], ()>> {
    let mut rest = data;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (name, after) = match tag(rest) {
            Some(found) => found,
            None => {
                rest = &[];
                return Some(Err(()));
            }
        };
        rest = after;
        Some(Ok(name))
    })
}

/// Parses a tag, after optional spaces. Returns its name and the text after it.
fn tag(d: &[u8]) -> Option<(&[u8], &[u8])> {
    let skip =
        |d: &[u8], inside: fn(u8) -> bool| d.iter().position(|b| !inside(*b)).unwrap_or(d.len());
    let d = &d[skip(d, |b| matches!(b, b' ' | b'\r' | b'\n'))..];
    let d = d.strip_prefix(b"<")?;
    let slash = usize::from(d.first() == Some(&b'/'));
    let letters = skip(&d[slash..], |b| b.is_ascii_alphanumeric() || matches!(b, b'?' | b':'));
    if letters == 0 {
        return None;
    }
    let (name, d) = d.split_at(slash + letters);
    let text: fn(u8) -> bool = |b| !matches!(b, b'<' | b'>');
    let d = d[skip(d, text)..].strip_prefix(b">")?;
    Some((name, &d[skip(d, text)..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let all = |d| tags(d).collect::<Vec<_>>();
        assert_eq!(
            all(b"<?xml version='1.0'?>\n<stream:stream to='x'> text </a>"),
            [Ok(&b"?xml"[..]), Ok(b"stream:stream"), Ok(b"/a")]
        );
        assert_eq!(all(b"<a></a"), [Ok(&b"a"[..]), Err(())]);
        assert_eq!(all(b"text"), [Err(())]);
        assert_eq!(all(b"<a>x< b>"), [Ok(&b"a"[..]), Err(())]);
    }
}
