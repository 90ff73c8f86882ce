/// The first two words of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Tag of the command; in a response, the tag of the command that it completes, or `*`.
    pub tag: &'a [u8],
    /// Command of a client, or status of a server's response.
    pub command: &'a [u8],
    /// The rest of a server's line that lists its capabilities.
    pub capabilities: Option<&'a [u8]>,
}

/// Iterates over the lines of a chunk. A malformed line yields `Err` and ends the iteration.
pub fn lines(data: &[u8], client: bool) -> impl Iterator<Item = Result<Line<'_>, ()>> {
    let mut rest = data;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = match line(rest, client) {
            Some(found) => found,
            None => {
                rest = &[];
                return Some(Err(()));
            }
        };
        rest = after;
        Some(Ok(line))
    })
}

fn split(d: &[u8], inside: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    d.split_at(d.iter().position(|b| !inside(*b)).unwrap_or(d.len()))
}

fn word(d: &[u8]) -> Option<(&[u8], &[u8])> {
    let (word, rest) = split(d, |b| b.is_ascii_graphic());
    (!word.is_empty()).then_some((word, rest))
}

fn is_end(b: u8) -> bool {
    matches!(b, b'\r' | b'\n')
}

fn line(d: &[u8], client: bool) -> Option<(Line<'_>, &[u8])> {
    let (tag, d) = word(d)?;
    let (blanks, d) = split(d, |b| b == b' ');
    if blanks.is_empty() {
        return None;
    }
    let (command, d) = word(d)?;
    let (_, mut d) = split(d, |b| b == b' ');
    let mut capabilities = None;
    if !client && tag == b"*" && command.eq_ignore_ascii_case(b"capability") {
        // A list of words. As in Zeek, no blanks are required between them.
        let list = d;
        loop {
            let (_, rest) = word(d)?;
            let (_, rest) = split(rest, |b| b == b' ');
            let (ends, rest) = split(rest, is_end);
            d = rest;
            if !ends.is_empty() {
                capabilities = list.get(..list.len() - rest.len());
                break;
            }
        }
    } else {
        let (_, rest) = split(d, |b| !is_end(b));
        let (ends, rest) = split(rest, is_end);
        if ends.is_empty() {
            return None;
        }
        d = rest;
    }
    Some((Line { tag, command, capabilities }, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let all = |d, client| lines(d, client).collect::<Vec<_>>();
        let ok = |tag, command| Ok(Line { tag, command, capabilities: None });
        let list = |capabilities| {
            let (tag, command) = (&b"*"[..], &b"CAPABILITY"[..]);
            Ok(Line { tag, command, capabilities: Some(capabilities) })
        };
        assert_eq!(
            all(b"a1 LOGIN me pw\r\n\r\na2 NOOP\n", true),
            [ok(b"a1", b"LOGIN"), ok(b"a2", b"NOOP")]
        );
        assert_eq!(
            all(b"* CAPABILITY A B\r\na1 OK done\r\n", false),
            [list(&b"A B\r\n"[..]), ok(b"a1", b"OK")]
        );
        assert_eq!(all(b"a1 NOOP", true), [Err(())]);
        assert_eq!(all(b"a1\r\n", true), [Err(())]);
        assert_eq!(all(b"* CAPABILITY ", false), [Err(())]);
    }
}
