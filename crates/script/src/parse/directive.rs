//! Directives: they take effect while the parser reads the token after them.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::{Input, OpenFile, ParseEnd, Parsed, Parser, find};
use crate::ast::ExprKind;
use crate::coverage::Conditional;
use crate::diagnostics::Severity;
use crate::evaluate::Constant;
use crate::ids::{ExprId, FileId};
use crate::lexer::{Directive, Lexer, Op, Token};
use crate::literal::Literal;
use crate::report::Object;
use crate::source::{SourceFile, Span};

/// Maximum nesting depth of `@load`.
const MAX_LOADS: usize = 1_000;

impl Parser<'_> {
    /// Executes a directive. `@DIR` and `@FILENAME` yield tokens.
    pub(super) fn directive(&mut self, directive: Directive, span: Span) -> Parsed<Option<Token>> {
        let result = self.execute(directive, span);
        if matches!(
            directive,
            Directive::If
                | Directive::IfDef
                | Directive::IfNotDef
                | Directive::Else
                | Directive::EndIf
        ) {
            self.directives += 1;
            let line = self.open_files.last().map_or(span.last, |open| open.lexer.line());
            self.directive_line = Span { first: line, last: line, ..span };
            self.directive_begins = !matches!(directive, Directive::Else | Directive::EndIf);
        }
        result
    }

    fn execute(&mut self, directive: Directive, span: Span) -> Parsed<Option<Token>> {
        match directive {
            Directive::Load => {
                let name = self.word();
                self.load(&name)?;
            }
            Directive::LoadSigs => {
                let name = self.word();
                self.load_signatures(&name)?;
            }
            Directive::LoadPlugin => {
                self.word();
            }
            Directive::Unload => {
                let name = self.word();
                match find::script(&name, &self.folder(), &self.search_path) {
                    Some(path) => {
                        let path = self.canonical(&path);
                        self.loaded_paths.insert(path);
                    }
                    None => {
                        let text = format!("failed find file associated with @unload {name}");
                        self.report_here(Severity::Error, &text);
                    }
                }
            }
            Directive::Prefixes => self.prefixes(),
            Directive::If => self.condition_if()?,
            Directive::IfDef => self.condition_defined(true)?,
            Directive::IfNotDef => self.condition_defined(false)?,
            Directive::Else => self.condition_else(),
            Directive::EndIf => self.condition_end(),
            Directive::Dir => return Ok(Some(self.string_token(&self.absolute_folder()))),
            Directive::FileName => {
                let path = self.path();
                let name = Path::new(&path)
                    .file_name()
                    .map_or(String::new(), |name| name.to_string_lossy().into_owned());
                return Ok(Some(self.string_token(&name)));
            }
            Directive::Deprecated => self.deprecated_script(),
            Directive::Pragma => self.pragma()?,
            Directive::Debug => {
                self.next_token = Some(super::NextToken { token: Token::Bad, span });
                return Err(self.syntax_error());
            }
        }
        Ok(None)
    }

    /// Opens the next input; false if none remains.
    pub(super) fn open_next(&mut self) -> Parsed<bool> {
        loop {
            let Some(input) = self.inputs.pop_front() else { return Ok(false) };
            self.module = self.global_module;
            match input {
                Input::File(name) => self.load(&name)?,
                Input::OptionalFile(name) => {
                    if find::script(&name, "", &self.search_path).is_some() {
                        self.load(&name)?;
                    }
                }
                Input::Text { name, code } => self.open_text(&name, "", code, 0)?,
                Input::Signatures(name) => self.command_signatures(&name),
                Input::Prefixes => self.load_prefixes(),
                Input::Checkpoint => self.checkpoint(),
                Input::Redef { name, value } => self.redef_text(&name, &value)?,
            }
            if !self.open_files.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Closes the current file.
    pub(super) fn close_file(&mut self) -> Parsed<()> {
        let Some(open) = self.open_files.pop() else { return Ok(()) };
        self.last_file = Some(open.file);
        if !open.conditions.is_empty() {
            let line = open.lexer.line();
            let span = Span { file: open.file, first: line, last: line, start: 0, end: 0 };
            self.program.report(Severity::Fatal, span, "unbalanced @if... @endif");
            return Err(ParseEnd::Fatal);
        }
        if !open.pragmas.is_empty() {
            let line = open.lexer.line();
            let span = Span { file: open.file, first: line, last: line, start: 0, end: 0 };
            let text = "unbalanced @pragma push pop in file";
            self.program.report(Severity::Fatal, span, text);
            return Err(ParseEnd::Fatal);
        }
        self.ignore_deprecations = self.ignore_deprecations.saturating_sub(open.pragmas.len());
        self.module = open.module;
        if self.stops_at_errors && self.program.diagnostics.errors > 0 {
            self.open_files.clear();
            self.inputs.clear();
        }
        Ok(())
    }

    /// The canonical path of a file. Canonical folders are cached, because many files share a folder.
    fn canonical(&mut self, path: &Path) -> PathBuf {
        let whole = || std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return whole() };
        if !std::fs::symlink_metadata(path).is_ok_and(|data| data.is_file()) {
            return whole();
        }
        if let Some(known) = self.folders.get(folder) {
            return known.join(name);
        }
        let Ok(known) = std::fs::canonicalize(folder) else { return whole() };
        let path = known.join(name);
        self.folders.insert(folder.to_owned(), known);
        path
    }

    /// Opens the file `name`, unless it was loaded before.
    pub(super) fn load(&mut self, name: &str) -> Parsed<()> {
        if self.open_files.len() >= MAX_LOADS {
            return Err(self.fatal_here("too many nested @load directives"));
        }
        if name == "-" {
            let mut text = Vec::new();
            let _ = std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut text);
            return self.open_text("<stdin>", "", text, 0);
        }
        let found = find::script(name, &self.folder(), &self.search_path);
        let Some(path) = found.or_else(|| self.unsaved(name)) else {
            return Err(self.cannot_open("can't find", name));
        };
        let known = self.canonical(&path);
        let text = self.overlay.get(&known).map(|text| text.to_vec());
        if !self.loaded_paths.insert(known) {
            return Ok(());
        }
        let Some(text) = text.or_else(|| crate::cache::probe::read(&path).ok()) else {
            return Err(self.cannot_open("can't open", name));
        };
        let shown = path.to_string_lossy().into_owned();
        let folder =
            path.parent().map_or(".".to_owned(), |folder| folder.to_string_lossy().into_owned());
        let depth = self.open_files.len();
        self.open_text(&shown, &folder, text, depth)
    }

    /// The path of an unsaved text in an editor that has no file yet.
    fn unsaved(&self, name: &str) -> Option<PathBuf> {
        let beside = Path::new(&self.folder()).join(name);
        let mut with_suffix = beside.clone().into_os_string();
        with_suffix.push(".zeek");
        let paths = [PathBuf::from(name), beside, PathBuf::from(with_suffix)];
        paths.into_iter().find(|path| self.overlay.contains_key(path))
    }

    fn cannot_open(&mut self, message: &str, name: &str) -> ParseEnd {
        let message = format!("{message} {name}");
        if self.open_files.is_empty() {
            self.program.report(Severity::Fatal, Span::NOWHERE, message);
            return ParseEnd::Fatal;
        }
        self.fatal_here(&message)
    }

    fn open_text(&mut self, path: &str, folder: &str, text: Vec<u8>, depth: usize) -> Parsed<()> {
        let text: Rc<[u8]> = text.into();
        let loaded_from = self.open_files.last().map(|open| (open.file, open.lexer.line()));
        let file = self.program.sources.files.push(SourceFile {
            path: path.into(),
            folder: folder.into(),
            text: text.clone(),
            loaded_from,
            depth: u32::try_from(depth).unwrap_or(u32::MAX),
        });
        self.open_files.push(OpenFile {
            lexer: Lexer::new(text),
            file,
            module: self.module,
            conditions: Vec::new(),
            pragmas: Vec::new(),
        });
        Ok(())
    }

    fn redef_text(&mut self, name: &str, value: &str) -> Parsed<()> {
        let (name, op) = match name.strip_suffix(['+', '-']) {
            Some(plain) => (plain.trim_end(), &name[plain.len()..]),
            None => (name, ""),
        };
        let symbol = self.program.names.intern(name);
        let Some(global) = self.program.globals.find(symbol) else {
            let text = format!("unknown identifier '{name}' in command-line options");
            self.program.report(Severity::Error, Span::NOWHERE, text);
            return Ok(());
        };
        let ty = self.program.globals[global].ty;
        let text = match self.program.types.tag(ty) {
            crate::types::Tag::String => {
                let mut quoted = String::from("\"");
                for letter in value.chars() {
                    if matches!(letter, '"' | '\\') {
                        quoted.push('\\');
                    }
                    quoted.push(letter);
                }
                quoted.push('"');
                quoted
            }
            _ if value.is_empty() => {
                let text =
                    format!("must assign non-empty value to '{name}' in command-line options");
                self.program.report(Severity::Error, Span::NOWHERE, text);
                return Ok(());
            }
            _ => value.to_owned(),
        };
        self.open_text(
            "<command line>",
            "",
            format!("redef {name} {op}= {text};\n").into_bytes(),
            0,
        )
    }

    /// Loads a signature file of `-s`.
    fn command_signatures(&mut self, name: &str) {
        match find::signatures(name, "", &self.search_path) {
            Some(path) => self.program.command_signatures.push(path.to_string_lossy().into()),
            None => {
                let text = format!("failed to find file associated with @load-sigs {name}");
                self.program.report(Severity::Error, Span::NOWHERE, text);
            }
        }
    }

    fn load_signatures(&mut self, name: &str) -> Parsed<()> {
        match find::signatures(name, &self.folder(), &self.search_path) {
            Some(path) => self.program.signature_files.push(path.to_string_lossy().into()),
            None => self.missing_signatures.push(name.to_owned()),
        }
        Ok(())
    }

    fn prefixes(&mut self) {
        let Some(open) = self.open_files.last_mut() else { return };
        let text = open.lexer.rest_of_line();
        let text = text.split('#').next().unwrap_or("").trim();
        let (clear, list) = match text.strip_prefix("+=") {
            Some(list) => (false, list),
            None => (true, text.strip_prefix('=').unwrap_or(text)),
        };
        if clear {
            self.program.prefixes.clear();
        }
        for prefix in list.trim().split(':').filter(|prefix| !prefix.is_empty()) {
            if !self.program.prefixes.iter().any(|known| &**known == prefix) {
                self.program.prefixes.push(prefix.into());
            }
        }
    }

    /// Queues the files that `@prefixes` adds for all files read so far.
    fn load_prefixes(&mut self) {
        let prefixes = self.program.prefixes.clone();
        if prefixes.is_empty() {
            return;
        }
        let mut found = Vec::new();
        for (_, file) in self.program.sources.files.iter() {
            let Some(relative) = self.without_search_path(&file.path) else { continue };
            let relative = relative.strip_suffix(".zeek").unwrap_or(&relative);
            let relative = relative.strip_suffix("/__load__").unwrap_or(relative);
            let flat = relative.replace('/', ".");
            for prefix in prefixes.iter().rev() {
                found.push(format!("{prefix}.{flat}.zeek"));
            }
        }
        for name in found.into_iter().rev() {
            self.inputs.push_front(Input::OptionalFile(name));
        }
    }

    /// The part of a path after the folder of the search path that contains it.
    fn without_search_path(&self, path: &str) -> Option<String> {
        let best = self.search_path.iter().filter_map(|folder| {
            let folder = find::normal(Path::new(folder));
            Path::new(path)
                .strip_prefix(&folder)
                .ok()
                .map(|rest| rest.to_string_lossy().into_owned())
        });
        best.min_by_key(String::len)
    }

    fn condition_if(&mut self) -> Parsed<()> {
        let outer = std::mem::replace(&mut self.in_condition, true);
        self.expect(Op::ParenLeft)?;
        let condition = self.expression()?;
        // The parenthesis must be the last token that is read, because the text after it may have to be
        // skipped.
        self.expect(Op::ParenRight)?;
        self.in_condition = outer;
        let mut locals = Vec::new();
        self.collect_locals(condition, &mut locals);
        for local in &locals {
            self.error_about("referencing a local name in @if", &Object::Expr(*local));
        }
        let value = if locals.is_empty() { self.evaluate(condition)? } else { None };
        let holds = match value {
            Some(Constant::Literal(Literal::Bool(value))) => value,
            Some(Constant::Literal(Literal::Count(value))) => value != 0,
            Some(Constant::Literal(Literal::Int(value))) => value != 0,
            Some(Constant::Literal(Literal::Double(value))) => value != 0.0,
            Some(Constant::Literal(Literal::String(_))) => true,
            _ => {
                self.error_about("invalid expression in @if", &Object::Expr(condition));
                true
            }
        };
        if self.program.conditionals.is_some() {
            let text = crate::describe::expr(self.program, condition);
            let text = format!("@if ( {} )", String::from_utf8_lossy(&text));
            self.record_conditional(text, self.last_lexed, holds);
        }
        self.begin_condition(holds);
        Ok(())
    }

    /// Records a condition for coverage.
    fn record_conditional(&mut self, text: String, span: Span, holds: bool) {
        if let Some(all) = &mut self.program.conditionals {
            all.push(Conditional { span, text, holds });
        }
    }

    fn collect_locals(&self, expr: ExprId, found: &mut Vec<ExprId>) {
        crate::walk::expressions(self.program, expr, &mut |id| {
            if matches!(self.program.exprs[id].kind, ExprKind::Local(..)) {
                found.push(id);
            }
        });
    }

    fn condition_defined(&mut self, expect_defined: bool) -> Parsed<()> {
        self.expect(Op::ParenLeft)?;
        let name = self.identifier()?;
        self.expect(Op::ParenRight)?;
        let defined = self.is_defined(&name);
        let word = if expect_defined { "@ifdef" } else { "@ifndef" };
        self.record_conditional(
            format!("{word} ( {name} )"),
            self.last_lexed,
            defined == expect_defined,
        );
        self.begin_condition(defined == expect_defined);
        Ok(())
    }

    fn begin_condition(&mut self, holds: bool) {
        let Some(open) = self.open_files.last_mut() else { return };
        if holds {
            open.conditions.push(false);
            return;
        }
        let found = open.lexer.skip_conditional();
        if matches!(found, Some(Directive::Else) | None) {
            open.conditions.push(true);
        }
        if found == Some(Directive::Else) {
            let line = open.lexer.line();
            let span = Span { file: open.file, first: line, last: line, start: 0, end: 0 };
            self.record_conditional("@else".to_owned(), span, true);
        }
    }

    fn condition_else(&mut self) {
        let stray = self.open_files.last().is_none_or(|open| open.conditions.is_empty());
        if stray {
            self.error_here("@else without @if...");
        }
        self.record_conditional("@else".to_owned(), self.last_lexed, false);
        let Some(open) = self.open_files.last_mut() else { return };
        let known = open.conditions.pop().is_some();
        let found = open.lexer.skip_conditional();
        if known && matches!(found, Some(Directive::Else) | None) {
            open.conditions.push(true);
        }
        if !known && found == Some(Directive::EndIf) {
            let line = open.lexer.line();
            let span = Span { file: open.file, first: line, last: line, start: 0, end: 0 };
            self.program.report(Severity::Error, span, "unbalanced @if... @endif");
        }
    }

    fn condition_end(&mut self) {
        let Some(open) = self.open_files.last_mut() else { return };
        if open.conditions.pop().is_none() {
            self.error_here("unbalanced @if... @endif");
        }
    }

    fn deprecated_script(&mut self) {
        let Some(open) = self.open_files.last_mut() else { return };
        let text = open.lexer.rest_of_line();
        let loader = self.program.sources.files.find(open.file).and_then(|file| file.loaded_from);
        let by = loader.and_then(|(file, line)| {
            self.program.sources.files.find(file).map(|file| format!("{}:{line}", file.path))
        });
        let by = by.unwrap_or_else(|| "command line arguments".to_owned());
        if self.ignore_deprecations == 0 {
            self.report_here(
                Severity::Warning,
                &format!("deprecated script loaded from {by} {text}"),
            );
        }
    }

    fn pragma(&mut self) -> Parsed<()> {
        let Some(open) = self.open_files.last_mut() else { return Ok(()) };
        let text = open.lexer.rest_of_line();
        let mut words = text.split_whitespace();
        let (action, value) = (words.next(), words.next());
        match (action, value) {
            (None, _) => return Err(self.fatal_here("@pragma without value")),
            (Some("push"), None) => return Err(self.fatal_here("@pragma push without value")),
            (Some("push"), Some(value)) => {
                open.pragmas.push(value.to_owned());
                if value == "ignore-deprecations" {
                    self.ignore_deprecations += 1;
                } else {
                    self.report_here(
                        Severity::Warning,
                        &format!("pushing unknown @pragma value '{value}'"),
                    );
                }
            }
            (Some("pop"), value) => {
                let Some(last) = open.pragmas.pop() else {
                    return Err(self.fatal_here("@pragma pop without active pragma"));
                };
                if last == "ignore-deprecations" {
                    self.ignore_deprecations = self.ignore_deprecations.saturating_sub(1);
                }
                if let Some(value) = value
                    && value != last
                {
                    self.error_here(&format!(
                        "@pragma pop with unexpected '{value}', expected '{last}'"
                    ));
                }
            }
            (Some(other), _) => {
                self.report_here(Severity::Warning, &format!("Ignoring unknown pragma: '{other}'"));
            }
        }
        Ok(())
    }

    fn string_token(&self, text: &str) -> Token {
        Token::Literal(Literal::String(text.as_bytes().into()))
    }

    fn word(&mut self) -> String {
        self.open_files.last_mut().map_or(String::new(), |open| open.lexer.word())
    }

    fn source(&self) -> Option<&SourceFile> {
        let file: FileId = self.open_files.last()?.file;
        self.program.sources.files.find(file)
    }

    fn folder(&self) -> String {
        self.source().map_or(String::new(), |file| file.folder.to_string())
    }

    fn path(&self) -> String {
        self.source().map_or(String::new(), |file| file.path.to_string())
    }

    fn absolute_folder(&self) -> String {
        let folder = self.folder();
        let folder = if folder.is_empty() { ".".to_owned() } else { folder };
        if !Path::new(&folder).is_absolute()
            && let Ok(current) = std::env::current_dir()
        {
            return current.join(&folder).to_string_lossy().into_owned();
        }
        std::fs::canonicalize(&folder).map_or(folder, |path| path.to_string_lossy().into_owned())
    }
}
