//! Source files and positions in them.

use std::rc::Rc;

use crate::ids::{Arena, FileId};

/// A range of a file: first and last line, as in Zeek's messages, and byte offsets, for diagnostics with a
/// caret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The file; that of [`Span::NOWHERE`] for none.
    pub file: FileId,
    /// Its first line, counted from 1; 0 for none.
    pub first: u32,
    /// Its last line.
    pub last: u32,
    /// Offset of the first byte in the file.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The span of items that are in no file, such as built-in types.
    pub const NOWHERE: Self = Self { file: FileId(u32::MAX), first: 0, last: 0, start: 0, end: 0 };

    /// Whether the span is in a file.
    #[must_use]
    pub fn is_somewhere(self) -> bool {
        self.first != 0
    }

    /// From the beginning of `self` to the end of `other`; `self` if they are in different files.
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

/// A source file, or the text of `-e`.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its resolved path, as messages show it.
    pub path: Box<str>,
    /// The folder that `@load ./x` in it and `@DIR` refer to.
    pub folder: Box<str>,
    /// Its bytes.
    pub text: Rc<[u8]>,
    /// The file that loaded it, and the line of the `@load`.
    pub loaded_from: Option<(FileId, u32)>,
    /// Nesting depth of `@load`: 0 for files of the command line.
    pub depth: u32,
}

/// All files, in the order in which they were opened.
#[derive(Clone, Default, Debug)]
pub struct Sources {
    /// The files.
    pub files: Arena<FileId, SourceFile>,
}

impl Sources {
    /// Zeek's text of a location: `FILE, line N` or `FILE, lines A-B`; empty for none.
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
