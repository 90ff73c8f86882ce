//! Texts of a request and its replies, in one buffer.

/// Maximum number of `Via` headers kept of each path.
const MAX_PATH: usize = 100;

/// Maximum number of unused bytes, left by replaced texts, before the buffer is compacted.
const MAX_UNUSED: usize = 4 << 10;

/// Names of single texts: columns of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Method,
    Uri,
    Date,
    RequestFrom,
    RequestTo,
    ResponseFrom,
    ResponseTo,
    ReplyTo,
    CallId,
    Seq,
    Subject,
    UserAgent,
    StatusMsg,
    Warning,
    ContentType,
}

const NAMES: usize = Name::ContentType as usize + 1;

/// Names of lists: the `Via` headers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path {
    /// Path of the request.
    Request,
    /// Path of the reply.
    Response,
}

/// Position of a text in the buffer.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    len: usize,
}

/// Texts by name.
#[derive(Debug, Default)]
pub(super) struct Values {
    text: Vec<u8>,
    /// Number of bytes of `text` that are no longer referenced.
    unused: usize,
    spans: [Option<Span>; NAMES],
    paths: [Vec<Span>; 2],
}

impl Values {
    /// Sets or replaces a text.
    pub(super) fn set(&mut self, name: Name, value: &[u8]) {
        let index = name as usize;
        if let Some(old) = &mut self.spans[index] {
            if value.len() <= old.len {
                self.text[old.start..old.start + value.len()].copy_from_slice(value);
                self.unused += old.len - value.len();
                old.len = value.len();
                return;
            }
            self.unused += old.len;
            self.spans[index] = None;
            if self.unused > MAX_UNUSED {
                self.compact();
            }
        }
        self.spans[index] = Some(self.append(value));
    }

    /// The text with this name.
    pub(super) fn get(&self, name: Name) -> Option<&[u8]> {
        self.spans[name as usize].map(|span| self.at(span))
    }

    /// Appends a step to a path; returns false if the path is full.
    pub(super) fn add(&mut self, path: Path, step: &[u8]) -> bool {
        let fits = self.paths[path as usize].len() < MAX_PATH;
        if fits {
            let span = self.append(step);
            self.paths[path as usize].push(span);
        }
        fits
    }

    /// The steps of a path.
    pub(super) fn path(&self, path: Path) -> impl Iterator<Item = &[u8]> {
        self.paths[path as usize].iter().map(|span| self.at(*span))
    }

    /// Removes all texts and keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.unused = 0;
        self.spans = [None; NAMES];
        self.paths.iter_mut().for_each(Vec::clear);
    }

    fn at(&self, span: Span) -> &[u8] {
        &self.text[span.start..span.start + span.len]
    }

    fn append(&mut self, value: &[u8]) -> Span {
        let start = self.text.len();
        self.text.extend_from_slice(value);
        Span { start, len: value.len() }
    }

    /// Compacts the buffer to the referenced texts.
    fn compact(&mut self) {
        let old = std::mem::take(&mut self.text);
        let spans = self.spans.iter_mut().flatten().chain(self.paths.iter_mut().flatten());
        for span in spans {
            let start = self.text.len();
            self.text.extend_from_slice(&old[span.start..span.start + span.len]);
            span.start = start;
        }
        self.unused = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_exchanged_and_memory_stays_bounded() {
        let mut values = Values::default();
        values.set(Name::Method, b"INVITE");
        assert!(values.add(Path::Request, b"first") && values.add(Path::Request, b"second"));
        let mut lengths = 0;
        for round in 0..1_000 {
            let text = vec![b'x'; round * 7 % 500];
            values.set(Name::Subject, &text);
            assert_eq!(values.get(Name::Subject), Some(&text[..]));
            lengths += text.len();
        }
        assert!(lengths > 100_000 && values.text.len() <= MAX_UNUSED + 1_100);
        assert_eq!(values.get(Name::Method), Some(&b"INVITE"[..]));
        assert!(values.path(Path::Request).eq([&b"first"[..], b"second"]));
        assert_eq!(values.path(Path::Response).count(), 0);
        values.clear();
        assert_eq!((values.get(Name::Subject), values.text.len()), (None, 0));
    }

    #[test]
    fn paths_are_only_so_long() {
        let mut values = Values::default();
        let fit = (0..200).filter(|_| values.add(Path::Response, b"step")).count();
        assert_eq!((fit, values.path(Path::Response).count()), (MAX_PATH, MAX_PATH));
    }
}
