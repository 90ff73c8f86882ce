//! Parsing of words and lines for the rules of several protocols.

/// Blank, tab and line ends: white space in the C locale.
pub(crate) fn is_space(b: u8) -> bool {
    matches!(b, b' ' | 9..=13)
}

/// `data` after all leading bytes that `skip` accepts.
pub(crate) fn after(data: &[u8], skip: impl Fn(u8) -> bool) -> &[u8] {
    let n = data.iter().position(|&b| !skip(b)).unwrap_or(data.len());
    &data[n..]
}

/// Whether `data` begins with an upper-case `word`, in any case.
pub(crate) fn has_word(data: &[u8], word: &[u8]) -> bool {
    data.len() >= word.len() && data[..word.len()].eq_ignore_ascii_case(word)
}

/// The text after `word` (in any case) and one blank.
pub(crate) fn after_word<'a>(data: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    (has_word(data, word) && data.get(word.len()) == Some(&b' ')).then(|| &data[word.len() + 1..])
}

/// Iterates over the suffixes of the data that begin at its start and after each CR, LF, or CR LF.
pub(crate) fn line_starts(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::once(data).chain(later_lines(data))
}

/// Iterates over the suffixes of the data that begin after each CR, LF, or CR LF.
pub(crate) fn later_lines(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(next_line(data), |line| next_line(line))
}

/// The data after the first CR, LF, or CR LF.
fn next_line(data: &[u8]) -> Option<&[u8]> {
    let at = memchr::memchr2(b'\r', b'\n', data)?;
    let rest = &data[at + 1..];
    Some(if data[at] == b'\r' { rest.strip_prefix(b"\n").unwrap_or(rest) } else { rest })
}

/// Whether a line of at least one byte ends in `data`.
pub(crate) fn ends_line(data: &[u8]) -> bool {
    data.len() > 1 && has_line_end(&data[1..])
}

/// Whether the data contains a CR or LF.
pub(crate) fn has_line_end(data: &[u8]) -> bool {
    memchr::memchr2(b'\r', b'\n', data).is_some()
}
