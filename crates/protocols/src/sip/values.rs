//! The texts of a request and its replies, in one piece of memory.

/// Steps of a path that are kept.
const MAX_PATH: usize = 100;

/// Texts that were exchanged for longer ones may take this much before they are cleared away.
const MAX_WASTE: usize = 4 << 10;

/// What there is one of: columns of the log.
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

/// What consists of steps.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path {
    /// The request's way.
    Request,
    /// The reply's way.
    Response,
}

/// Position of a text.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    len: usize,
}

/// Texts by name.
#[derive(Debug, Default)]
pub(super) struct Values {
    text: Vec<u8>,
    /// Bytes of `text` that nothing refers to.
    waste: usize,
    places: [Option<Span>; NAMES],
    paths: [Vec<Span>; 2],
}

impl Values {
    /// Sets or exchanges a text.
    pub(super) fn set(&mut self, name: Name, value: &[u8]) {
        let place = name as usize;
        if let Some(old) = &mut self.places[place] {
            if value.len() <= old.len {
                self.text[old.start..old.start + value.len()].copy_from_slice(value);
                self.waste += old.len - value.len();
                old.len = value.len();
                return;
            }
            self.waste += old.len;
            self.places[place] = None;
            if self.waste > MAX_WASTE {
                self.clear_away();
            }
        }
        self.places[place] = Some(self.append(value));
    }

    /// The text of that name.
    pub(super) fn get(&self, name: Name) -> Option<&[u8]> {
        self.places[name as usize].map(|span| self.at(span))
    }

    /// Adds a step to a path; whether there is room for it.
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

    /// Forgets everything but the memory.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.waste = 0;
        self.places = [None; NAMES];
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

    /// Keeps only what something refers to.
    fn clear_away(&mut self) {
        let old = std::mem::take(&mut self.text);
        let spans = self.places.iter_mut().flatten().chain(self.paths.iter_mut().flatten());
        for span in spans {
            let start = self.text.len();
            self.text.extend_from_slice(&old[span.start..span.start + span.len]);
            span.start = start;
        }
        self.waste = 0;
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
        assert!(lengths > 100_000 && values.text.len() <= MAX_WASTE + 1_100);
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
