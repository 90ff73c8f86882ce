//! The state of a parser between two inputs, as a cache stores it.

use std::path::PathBuf;

use super::Parser;
use super::scope::Scope;
use crate::cache::{Codec, Damaged, DecodeResult, Reader, Writer, fields};
use crate::evaluate::Evaluate;
use crate::ids::{BodyId, FileId, GlobalId, Id as _, IdMap, IdSet, LocalId, Name, StmtId, TypeId};
use crate::program::Program;
use crate::source::Span;

/// The state of a parser between two inputs, except the program.
#[derive(Debug)]
pub(crate) struct Position {
    loaded_paths: Vec<Box<str>>,
    last_lexed: Span,
    previous: Span,
    node_span: Span,
    main: Vec<StmtId>,
    names: IdMap<Name, LocalId>,
    hidden: IdSet<LocalId>,
    globals: Vec<GlobalId>,
    aliases: IdMap<Name, Vec<TypeId>>,
    ignore_deprecations: usize,
    null: StmtId,
    directives: usize,
    directive_line: Span,
    references: IdMap<BodyId, Vec<GlobalId>>,
    undeclared_events: IdSet<GlobalId>,
    empty_records: IdSet<TypeId>,
    last_file: Option<FileId>,
    in_statements: bool,
    last_token_file: Option<FileId>,
}

fields! {
    Position {
        loaded_paths, last_lexed, previous, node_span, main, names, hidden, globals, aliases, ignore_deprecations, null, directives,
        directive_line, references, undeclared_events, empty_records, last_file, last_token_file,
        in_statements,
    }
}

impl Position {
    /// Checks that its ids exist in the program.
    pub(crate) fn check(&self, program: &Program) -> DecodeResult<()> {
        let fits = program.main.is_some_and(|main| program.bodies.find(main).is_some())
            && program.stmts.find(self.null).is_some()
            && self.main.iter().all(|stmt| program.stmts.find(*stmt).is_some())
            && self.globals.iter().all(|global| program.globals.arena.find(*global).is_some());
        if fits { Ok(()) } else { Err(Damaged) }
    }
}

impl Parser<'_> {
    /// Stores the state in the cache, if requested and possible.
    pub(super) fn checkpoint(&mut self) {
        if !self.between_declarations
            || self.nesting > 0
            || self.scopes.len() != 1
            || !self.open_files.is_empty()
        {
            return;
        }
        self.validate_all();
        let state = self.engine.checkpoint();
        let Some(cache) = self.cache.take() else { return };
        if self.program.diagnostics.emitted || self.program.uses.is_some() {
            return;
        }
        if let (Some((state, recorder)), Some(position)) = (state, self.position()) {
            cache.store(self.program, &position, &state, &recorder);
        }
    }

    fn position(&self) -> Option<Position> {
        let scope = self.scopes.first()?;
        let is_plain = scope.blocks.len() <= 1
            && scope.blocks.iter().all(Vec::is_empty)
            && scope.captures.is_empty()
            && scope.missing.is_empty()
            && !scope.returns_value
            && self.type_name.is_none()
            && self.overlay.is_empty();
        if !is_plain {
            return None;
        }
        let loaded_paths: Option<Vec<Box<str>>> =
            self.loaded_paths.iter().map(|path| path.to_str().map(Box::from)).collect();
        Some(Position {
            loaded_paths: loaded_paths?,
            last_lexed: self.last_lexed,
            previous: self.previous,
            node_span: self.node_span,
            main: self.main.clone(),
            names: scope.names.clone(),
            hidden: scope.hidden.clone(),
            globals: scope.globals.clone(),
            aliases: self.aliases.clone(),
            ignore_deprecations: self.ignore_deprecations,
            null: self.null,
            directives: self.directives,
            directive_line: self.directive_line,
            references: self.references.clone(),
            undeclared_events: self.undeclared_events.clone(),
            empty_records: self.empty_records.clone(),
            last_file: self.last_file,
            in_statements: self.in_statements,
            last_token_file: self.last_token_file,
        })
    }
}

impl<'a> Parser<'a> {
    /// A parser that continues from a position in `program`.
    pub(crate) fn resume(
        program: &'a mut Program,
        engine: &'a mut dyn Evaluate,
        search_path: Vec<String>,
        position: Position,
    ) -> Self {
        let main = program.main.unwrap_or(BodyId::from_index(0));
        let mut scope = Scope::main(main);
        scope.names = position.names;
        scope.hidden = position.hidden;
        scope.globals = position.globals;
        let mut parser = Self::with_scope(program, engine, search_path, position.null, scope);
        parser.loaded_paths =
            position.loaded_paths.iter().map(|path| PathBuf::from(&**path)).collect();
        parser.last_lexed = position.last_lexed;
        parser.previous = position.previous;
        parser.node_span = position.node_span;
        parser.main = position.main;
        parser.aliases = position.aliases;
        parser.ignore_deprecations = position.ignore_deprecations;
        parser.directives = position.directives;
        parser.directive_line = position.directive_line;
        parser.references = position.references;
        parser.undeclared_events = position.undeclared_events;
        parser.empty_records = position.empty_records;
        parser.last_file = position.last_file;
        parser.in_statements = position.in_statements;
        parser.last_token_file = position.last_token_file;
        parser
    }
}
