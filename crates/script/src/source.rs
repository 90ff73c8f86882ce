//! Files that were read and places in them.

use std::rc::Rc;

use crate::ids::{Arena, FileId};

/// A stretch of a file: first and last line, as Zeek reports them, and bytes, for diagnostics with a caret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The file, [`Span::NOWHERE`]'s where there is none.
    pub file: FileId,
    /// Its first line, from 1 on; 0 where there is none.
    pub first: u32,
    /// Its last line.
    pub last: u32,
    /// Offset of the first byte in the file.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// The span of items that are in no file, such as built-in types.
    pub const NOWHERE: Self = Self { file: FileId(u32::MAX), first: 0, last: 0, start: 0, end: 0 };

    /// Whether this is a place in a file.
    #[must_use]
    pub fn is_somewhere(self) -> bool {
        self.first != 0
    }

    /// From the beginning of `self` to the end of `other`; `self` where they are not in one file.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        if !self.is_somewhere() {
            return other;
        }
        if self.file != other.file || !other.is_somewhere() {
            return self;
        }
        Self { last: other.last.max(self.first), end: other.end.max(self.start), ..self }
    }
}

/// A file that was read, or the text of `-e`.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its path as it was found: what messages show.
    pub path: Box<str>,
    /// The folder that `@load ./x` in it and `@DIR` refer to.
    pub folder: Box<str>,
    /// Its bytes.
    pub text: Rc<[u8]>,
    /// The file that loaded it, and in which line.
    pub loaded_from: Option<(FileId, u32)>,
    /// How deep in `@load`s it was read: 0 for files of the command line.
    pub depth: u32,
}

/// All files, in the order in which they were opened.
#[derive(Clone, Default, Debug)]
pub struct Sources {
    /// The files.
    pub files: Arena<FileId, SourceFile>,
}

impl Sources {
    /// Zeek's text of a location: `FILE, line N` or `FILE, lines A-B`; empty without one.
    #[must_use]
    pub fn location(&self, span: Span) -> String {
        let Some(file) = self.files.find(span.file) else { return String::new() };
        if span.first == span.last {
            format!("{}, line {}", file.path, span.first)
        } else {
            format!("{}, lines {}-{}", file.path, span.first, span.last)
        }
    }
}
