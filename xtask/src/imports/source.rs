//! The module structure of a Rust file: the modules that it declares, its imports, and the paths in
//! its code.

/// A file, without its tests.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Child modules in separate files.
    pub(super) children: Vec<String>,
    /// Child modules that only tests have.
    pub(super) tests: Vec<String>,
    /// Names imported by `use`.
    pub(super) uses: Vec<Use>,
    /// Paths of two or more names in the code.
    pub(super) paths: Vec<Path>,
    /// Macros `with_…` that the file defines, each with the list that it passes on.
    pub(super) lists: Vec<(String, Vec<Listed>)>,
    /// Calls of such macros.
    pub(super) calls: Vec<String>,
    /// Whether a macro of the file has paths `crate::$…`, so that it imports the names of such a
    /// list.
    pub(super) imports_lists: bool,
}

/// A name that is imported.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) path: Path,
    /// The local name; `None` for all names of a module.
    pub(super) name: Option<String>,
    /// Whether it is a re-export.
    pub(super) is_public: bool,
}

/// A path as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) names: Vec<String>,
    /// Number of inline modules around it.
    pub(super) depth: usize,
}

/// An entry of a list: a path, and the names in braces after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) path: Vec<String>,
    pub(super) names: Vec<String>,
}

impl Source {
    /// Parses a file.
    pub(super) fn read(text: &str) -> Self {
        let tokens = tokens(text);
        let mut reader = Reader {
            tokens: &tokens,
            at: 0,
            source: Self::default(),
            inline: Vec::new(),
            depth: 0,
        };
        reader.run();
        reader.source
    }
}

/// A token of Rust; comments and literals are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Name(&'a str),
    /// `::`
    Colons,
    Sign(char),
}

use Token::Colons;
use Token::Name;
use Token::Sign;

/// The tokens of a text, without lifetimes and literals of strings, characters and numbers.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = if rest.starts_with("//") {
            rest.split_once('\n').map_or("", |(_, behind)| behind)
        } else if rest.starts_with("/*") {
            after_comment(rest)
        } else if let Some(behind) = after_string(rest) {
            behind
        } else if c == '\'' {
            after_quote(rest)
        } else if c.is_alphabetic() || c == '_' {
            let (name, behind) = rest.split_at(word(rest));
            out.push(Name(name));
            behind
        } else if c.is_ascii_digit() {
            &rest[word(rest)..]
        } else if let Some(behind) = rest.strip_prefix("::") {
            out.push(Colons);
            behind
        } else {
            if !c.is_whitespace() {
                out.push(Sign(c));
            }
            &rest[c.len_utf8()..]
        };
    }
    out
}

/// Length of the name or number at the start of a text.
fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// The text after a comment `/* … */`, which may be nested.
fn after_comment(text: &str) -> &str {
    let (mut rest, mut depth) = (text, 0_u32);
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix("/*") {
            (rest, depth) = (behind, depth + 1);
        } else if let Some(behind) = rest.strip_prefix("*/") {
            (rest, depth) = (behind, depth - 1);
            if depth == 0 {
                break;
            }
        } else {
            rest = after_char(rest);
        }
    }
    rest
}

/// The text after the string at its start; `None` if it does not begin with one.
fn after_string(text: &str) -> Option<&str> {
    let prefixed = ["br", "cr", "b", "c", "r", ""].into_iter().find_map(|prefix| {
        let behind = text.strip_prefix(prefix)?;
        let is_raw = prefix.ends_with('r');
        let hashes = if is_raw { behind.len() - behind.trim_start_matches('#').len() } else { 0 };
        behind[hashes..].strip_prefix('"').map(|content| (is_raw, hashes, content))
    });
    let (is_raw, hashes, mut rest) = prefixed?;
    if is_raw {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(rest.split_once(&end).map_or("", |(_, behind)| behind));
    }
    while let Some(c) = rest.chars().next() {
        rest = after_char(rest);
        match c {
            '"' => break,
            '\\' => rest = after_char(rest),
            _ => {}
        }
    }
    Some(rest)
}

/// The text after a character literal or a lifetime.
fn after_quote(text: &str) -> &str {
    let content = &text[1..];
    if let Some(escaped) = content.strip_prefix('\\') {
        let behind = after_char(escaped);
        return behind.split_once('\'').map_or("", |(_, behind)| behind);
    }
    after_char(content).strip_prefix('\'').unwrap_or(&content[word(content)..])
}

fn after_char(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}

/// Words that begin items and statements, which end with a brace or semicolon; other targets of an
/// attribute end with a comma.
const BEGINNINGS: [&str; 14] = [
    "pub",
    "fn",
    "mod",
    "use",
    "impl",
    "struct",
    "enum",
    "trait",
    "const",
    "static",
    "type",
    "let",
    "unsafe",
    "macro_rules",
];

struct Reader<'t> {
    tokens: &'t [Token<'t>],
    at: usize,
    source: Source,
    /// Brace depths of the open inline modules.
    inline: Vec<usize>,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn run(&mut self) {
        let mut is_public = false;
        while let Some(token) = self.peek(0) {
            let was_public = std::mem::take(&mut is_public);
            match token {
                Sign('#') => self.attribute(),
                Sign('$') => self.at += 2,
                Sign('{') => self.open(),
                Sign('}') => self.close(),
                Name("pub") => {
                    self.at += 1;
                    if self.peek(0) == Some(Sign('(')) {
                        self.group();
                    }
                    is_public = true;
                }
                Name("mod") => self.module(),
                Name("use") => self.import(was_public),
                Name("macro_rules") => self.list(),
                Name(_) => self.path(),
                // The rest of a path after type arguments.
                Colons => {
                    while matches!(self.peek(0), Some(Colons | Name(_))) {
                        self.at += 1;
                    }
                }
                Sign(_) => self.at += 1,
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<Token<'t>> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn name(&self, ahead: usize) -> Option<&'t str> {
        match self.peek(ahead) {
            Some(Name(name)) => Some(name),
            _ => None,
        }
    }

    fn open(&mut self) {
        (self.at, self.depth) = (self.at + 1, self.depth + 1);
    }

    fn close(&mut self) {
        (self.at, self.depth) = (self.at + 1, self.depth.saturating_sub(1));
        if self.inline.last() == Some(&self.depth) {
            self.inline.pop();
        }
    }

    /// Skips a group in brackets of any kind.
    fn group(&mut self) -> &'t [Token<'t>] {
        let (from, mut open) = (self.at, 0_usize);
        while let Some(token) = self.peek(0) {
            self.at += 1;
            match token {
                Sign('(' | '[' | '{') => open += 1,
                Sign(')' | ']' | '}') => open = open.saturating_sub(1),
                _ => {}
            }
            if open == 0 {
                break;
            }
        }
        &self.tokens[from..self.at]
    }

    /// Skips an attribute; for tests, also the item that it applies to.
    fn attribute(&mut self) {
        self.at += 1;
        if self.peek(0) == Some(Sign('!')) {
            self.at += 1;
        }
        if self.peek(0) != Some(Sign('[')) {
            return;
        }
        let attribute = self.group();
        let has = |name| attribute.contains(&Name(name));
        if attribute.get(1) == Some(&Name("cfg")) && has("test") && !has("not") {
            self.skip_item();
        }
    }

    /// Skips an item, statement or field of tests.
    fn skip_item(&mut self) {
        while self.peek(0) == Some(Sign('#')) {
            self.at += 1;
            self.group();
        }
        let is_item = self.name(0).is_some_and(|name| BEGINNINGS.contains(&name));
        let from = self.at;
        while let Some(token) = self.peek(0) {
            match token {
                Sign('{') => {
                    self.group();
                    break;
                }
                Sign('(' | '[') => {
                    self.group();
                }
                Sign(';') => {
                    self.at += 1;
                    break;
                }
                Sign(',') if !is_item => {
                    self.at += 1;
                    break;
                }
                Sign('}') => break,
                _ => self.at += 1,
            }
        }
        if let [.., Name("mod"), Name(name), Sign(';')] = &self.tokens[from..self.at] {
            self.source.tests.push((*name).to_owned());
        }
    }

    fn module(&mut self) {
        match (self.name(1), self.peek(2)) {
            (Some(name), Some(Sign(';'))) => {
                self.source.children.push(name.to_owned());
                self.at += 3;
            }
            (Some(_), Some(Sign('{'))) => {
                self.inline.push(self.depth);
                self.at += 2;
            }
            _ => self.at += 1,
        }
    }

    fn import(&mut self, is_public: bool) {
        self.at += 1;
        self.tree(&mut Vec::new(), is_public);
    }

    /// Parses a tree of imports after the names in `before`.
    fn tree(&mut self, before: &mut Vec<String>, is_public: bool) {
        let len = before.len();
        let mut is_leaf = true;
        while let Some(token) = self.peek(0) {
            match token {
                Name("as") => {
                    let name = self.name(1).map(str::to_owned);
                    self.at += 2;
                    self.imported(before, name, is_public);
                    is_leaf = false;
                }
                Name("self") if before.len() > len || len > 0 => self.at += 1,
                Name(name) => {
                    before.push(name.to_owned());
                    self.at += 1;
                }
                Colons => self.at += 1,
                Sign('*') => {
                    self.at += 1;
                    self.imported(before, None, is_public);
                    is_leaf = false;
                }
                Sign('{') => {
                    self.at += 1;
                    while !matches!(self.peek(0), None | Some(Sign('}'))) {
                        self.tree(before, is_public);
                        if self.peek(0) == Some(Sign(',')) {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    is_leaf = false;
                }
                Sign(_) => break,
            }
        }
        if is_leaf {
            let name = before.last().cloned();
            self.imported(before, name, is_public);
        }
        before.truncate(len);
    }

    fn imported(&mut self, names: &[String], name: Option<String>, is_public: bool) {
        let path = Path { names: names.to_vec(), depth: self.inline.len() };
        self.source.uses.push(Use { path, name, is_public });
    }

    /// Parses the definition of a macro; its body is parsed as code.
    fn list(&mut self) {
        let name = self.name(2).unwrap_or_default().to_owned();
        self.at += 3;
        if name.starts_with("with_") {
            let body = self.group();
            self.source.lists.push((name, listed(body)));
        }
    }

    fn path(&mut self) {
        let mut names = Vec::new();
        while let Some(name) = self.name(0) {
            names.push(name.to_owned());
            self.at += 1;
            if self.peek(0) != Some(Colons) {
                break;
            }
            self.at += 1;
        }
        match (&names[..], self.peek(0)) {
            ([name], Some(Sign('!'))) if name.starts_with("with_") => {
                self.source.calls.push(name.clone());
            }
            ([name], Some(Sign('$'))) if name == "crate" => self.source.imports_lists = true,
            ([_, _, ..], _) => {
                self.source.paths.push(Path { names, depth: self.inline.len() });
            }
            _ => {}
        }
    }
}

/// The entries of a list in the body of a macro.
fn listed(body: &[Token<'_>]) -> Vec<Listed> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(token) = body.get(at) {
        at += 1;
        let Name(name) = token else { continue };
        let mut path = vec![(*name).to_owned()];
        while let [Colons, Name(name), ..] = body[at..] {
            path.push(name.to_owned());
            at += 2;
        }
        let mut names = Vec::new();
        if body.get(at) == Some(&Sign('{')) {
            let end = body[at..].iter().position(|token| *token == Sign('}'));
            let end = end.map_or(body.len(), |end| at + end);
            names.extend(body[at..end].iter().filter_map(|token| match token {
                Name(name) => Some((*name).to_owned()),
                _ => None,
            }));
            at = end;
        }
        all.push(Listed { path, names });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        Source::read(text).paths.iter().map(|path| path.names.join("::")).collect()
    }

    fn uses(text: &str) -> Vec<(String, String, bool)> {
        let uses = Source::read(text).uses.into_iter();
        uses.map(|u| (u.path.names.join("::"), u.name.unwrap_or("*".into()), u.is_public)).collect()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        let text = r##"
            // a::b
            /* c::d /* e::f */ g::h */
            let x = ("i::j \" k::l", r#"m::n " o::p"#, b"q::r", '"', b'\'', '\u{22}', 1.0e5);
            fn f<'a>(x: &'a s::T) {}
        "##;
        assert_eq!(paths(text), ["s::T"]);
    }

    #[test]
    fn trees_of_imports() {
        let text = "use a::b; pub use a::{self, b::C as D, e::*}; pub(in crate::x) use super::f;";
        let all = uses(text);
        let expected = [
            ("a::b", "b", false),
            ("a", "a", true),
            ("a::b::C", "D", true),
            ("a::e", "*", true),
            ("super::f", "f", true),
        ];
        let all: Vec<_> =
            all.iter().map(|(path, name, public)| (&**path, &**name, *public)).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn tests_do_not_count() {
        let text = "
            #[cfg(test)] mod samples;
            #[cfg(any(test, feature = \"x\"))] pub(crate) fn f() { a::b() }
            #[cfg(not(test))] fn g() { c::d() }
            struct S { #[cfg(test)] x: e::F, y: g::H }
            mod i;
            #[cfg(test)] #[allow(x::y)] pub(super) mod tests { use super::*; fn j() { k::l() } }
            #[derive(m::N)] struct O;
        ";
        let source = Source::read(text);
        assert_eq!(source.children, ["i"]);
        assert_eq!(source.tests, ["samples"]);
        assert!(source.uses.is_empty());
        assert_eq!(paths(text), ["c::d", "g::H"]);
    }

    #[test]
    fn modules_within_a_file_are_counted() {
        let text =
            "mod a { use super::B; mod c { fn f() { super::super::d() } } } fn g() { super::e() }";
        let source = Source::read(text);
        assert_eq!(source.uses[0].path.depth, 1);
        let depths: Vec<_> = source.paths.iter().map(|path| path.depth).collect();
        assert_eq!(depths, [2, 0]);
    }

    #[test]
    fn lists_of_macros() {
        let text = "
            macro_rules! with_all { ($then:ident) => { $then! { dns { Dns: Analyzer inline } A b::c; } }; }
            macro_rules! each { ($($m:ident)*) => { $( crate::$m::X; )* } }
            with_all!(each);
        ";
        let source = Source::read(text);
        assert!(source.imports_lists);
        assert_eq!(source.calls, ["with_all"]);
        let (name, list) = &source.lists[0];
        assert_eq!(name, "with_all");
        let dns = Listed {
            path: vec!["dns".into()],
            names: vec!["Dns".into(), "Analyzer".into(), "inline".into()],
        };
        assert!(list.contains(&dns));
        assert!(list.iter().any(|one| one.path == ["b", "c"]));
    }
}
