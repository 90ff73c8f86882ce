//! The parser: tokens to a typed, resolved program, in one pass.
//!
//! A [`Parser`] reads files one after another ([`Parser::run`]); `@load` puts a file's tokens in its place. Its parts:
//!
//! | module | duty |
//! |---|---|
//! | `tokens` | the token ahead, places, syntax errors |
//! | `directive` | `@load`, `@if` and so on: they take effect between two tokens |
//! | `find` | where files are found |
//! | `scope` | what names stand for |
//! | `declare`, `function`, `types`, `attributes`, `statement`, `expression` | the grammar |
//! | `check_*` | the types of expressions: Zeek's rules, conversions and messages |
//!
//! Semantic errors are reported and parsing continues; the expression gets the type `error`, which
//! silences follow-up errors. The first syntax error ends it ([`ParseEnd`]).

mod attributes;
mod check_assign;
mod check_call;
mod check_construct;
mod check_convert;
mod check_operator;
mod declare;
mod directive;
mod expression;
pub(crate) use position::Position;
pub(crate) use unused::signature_file;

mod find;
mod function;
mod infer;
mod lambda;
mod position;
mod scope;
mod statement;
mod switch;
#[cfg(test)]
mod tests;
mod tokens;
mod types;
mod unused;
mod usage;
mod validate;
mod when;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use crate::ast::{Body, Stmt, StmtKind};
use crate::cache::Cache;
use crate::diagnostics::Severity;
use crate::evaluate::{Evaluate, Stop};
use crate::ids::{Arena, BodyId, ExprId, FileId, GlobalId, IdMap, IdSet, Name, StmtId, TypeId};
use crate::lexer::{Lexer, Token};
use crate::program::Program;
use crate::source::Span;
use crate::types::Flavor;
use scope::Scope;

/// How deep constructs may be nested.
const MAX_NESTING: usize = 3_000;

/// Why parsing ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseEnd {
    /// A syntax error, which was reported.
    Syntax,
    /// A fatal error, which was reported.
    Fatal,
    /// A script called `exit` while it was parsed.
    Exit(i32),
}

/// The result of a part of the grammar.
type Parsed<T> = Result<T, ParseEnd>;

/// An input of the parser.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file that is searched for as `@load` does.
    File(String),
    /// A file that is only read where it is found.
    OptionalFile(String),
    /// Code under a name: that of `-e` is `<command line>`.
    Text {
        /// The name that messages show.
        name: String,
        /// The code.
        code: Vec<u8>,
    },
    /// Files of `@prefixes` for all files that were read so far.
    Prefixes,
    /// No input: what was parsed so far is stored in the cache.
    Checkpoint,
    /// A signature file that is searched for as `@load-sigs` does.
    Signatures(String),
    /// `NAME=VALUE` of the command line.
    Redef {
        /// The variable.
        name: String,
        /// The text of its value.
        value: String,
    },
}

/// Parses into a program.
pub struct Parser<'a> {
    /// The program that is being built.
    pub program: &'a mut Program,
    /// What evaluates initializers.
    engine: &'a mut dyn Evaluate,
    /// Where files are searched, in order.
    search_path: Vec<String>,
    inputs: VecDeque<Input>,
    /// Files that are being read; the last one is read now.
    open: Vec<Open>,
    /// Canonical paths of files that were loaded or unloaded.
    seen: HashSet<PathBuf>,
    next_token: Option<NextToken>,
    /// Brackets that are open, the innermost last.
    brackets: Vec<Span>,
    /// The assignments of record constructors without a type, for those who ask what names mean.
    constructors: HashMap<ExprId, Vec<ExprId>>,
    /// The value whose type joins those of others, for an error about it.
    joining: Span,
    /// The place of the token that was read last, the one ahead among them.
    lexed: Span,
    /// The place of the token that was taken last.
    previous: Span,
    /// The place that new objects get, as Zeek's grammar sets it.
    here: Span,
    module: Name,
    global_module: Name,
    exporting: bool,
    scopes: Vec<Scope>,
    main: Vec<StmtId>,
    nesting: usize,
    /// Inside `@if ( … )`.
    in_condition: bool,
    /// Inside the condition of a `when`.
    in_when_condition: bool,
    /// Inside `{ … }` of an initializer.
    in_initializer: usize,
    /// Whether `_` may stand for a value.
    blank_allowed: bool,
    /// Inside a `hook` call.
    hook_call: bool,
    /// Whether the function type that was parsed last says what it returns.
    result_written: bool,
    /// Whether the event whose parameters were read last was written with a result, which events do not have.
    event_result: bool,
    /// Whether the function that is being defined has a body already.
    invalid_definition: bool,
    /// The name that a `type` declaration gives to the type that is being parsed.
    naming: Option<Name>,
    /// Copies of named records and enums under other names: they are enlarged together.
    aliases: IdMap<Name, Vec<TypeId>>,
    /// Whether deprecations are reported.
    ignore_deprecations: usize,
    /// Bodies whose checks wait for the end.
    unchecked: Vec<(BodyId, Flavor)>,
    /// A statement that does nothing, for bodies that are not parsed yet.
    null: StmtId,
    /// How many conditions were met.
    directives: usize,
    /// Where the last one was, behind what it skipped.
    directive_line: Span,
    /// Whether that was the beginning of a condition.
    directive_begins: bool,
    /// Globals that bodies refer to.
    references: IdMap<BodyId, Vec<GlobalId>>,
    /// Events that have handlers and no declaration.
    undeclared_events: IdSet<GlobalId>,
    /// Whether what nothing can run is reported.
    pub warn_unused: bool,
    /// Whether uses of locals that have no value are reported.
    pub warn_usage: bool,
    /// Whether the first file with an error is the last one that is read, as in Zeek.
    pub stops_at_errors: bool,
    /// Whether assignments to locals that nothing reads are reported as well.
    pub warn_unread: bool,
    /// Lists that end in a comma.
    trailing: IdSet<ExprId>,
    /// Inside `|…|`.
    in_size: bool,
    /// Whether an attribute was refused.
    attr_failed: bool,
    /// Where the attributes that are checked end.
    attr_place: Span,

    /// Records that `type X: record {};` declared empty ahead of their definition.
    empty_records: IdSet<TypeId>,
    /// The file that the end of input was met behind, for messages.
    last_file: Option<FileId>,
    /// Signature files that were not found.
    missing_signatures: Vec<String>,
    /// Whether a file-level statement was parsed: declarations after it are syntax errors.
    in_statements: bool,
    last_token_file: Option<FileId>,
    /// What a syntax error that is reported next lacks.
    wanted: Option<&'static str>,
    /// Texts that stand for files, by canonical path: what an editor has not saved.
    pub overlay: HashMap<PathBuf, Rc<[u8]>>,
    /// Folders without links, by the paths that lead to them.
    folders: HashMap<PathBuf, PathBuf>,
    /// Whether the token that is read next begins a declaration.
    between: bool,
    /// Where what was parsed is stored.
    pub(crate) cache: Option<Cache>,
}

/// A file that is being read.
struct Open {
    lexer: Lexer,
    file: FileId,
    /// The module to return to behind it.
    module: Name,
    /// Open conditions: for each whether `@else` was met.
    conditions: Vec<bool>,
    /// Open `@pragma push`es.
    pragmas: Vec<String>,
}

/// The token ahead.
#[derive(Clone, Debug)]
struct NextToken {
    token: Token,
    span: Span,
}

impl<'a> Parser<'a> {
    /// A parser into `program` that searches files in `search_path`.
    #[must_use]
    pub fn new(
        program: &'a mut Program,
        engine: &'a mut dyn Evaluate,
        search_path: Vec<String>,
    ) -> Self {
        let global_module = program.names.intern("GLOBAL");
        let null = program.stmts.push(Stmt { kind: StmtKind::Null, span: Span::NOWHERE });
        let main = program.bodies.push(Body {
            func: None,
            locals: Arena::new(),
            params: Vec::new(),
            inits: Vec::new(),
            stmt: null,

            priority: 0,
            groups: Vec::new(),
            module: global_module,
            span: Span::NOWHERE,
            attrs: Vec::new(),
        });
        program.main = Some(main);
        Self::with_scope(program, engine, search_path, null, Scope::main(main))
    }

    /// A parser into a program that has the statement `null` and the scope of statements at file level.
    fn with_scope(
        program: &'a mut Program,
        engine: &'a mut dyn Evaluate,
        search_path: Vec<String>,
        null: StmtId,
        scope: Scope,
    ) -> Self {
        let global_module = program.names.intern("GLOBAL");
        Self {
            program,
            engine,
            search_path,
            inputs: VecDeque::new(),
            open: Vec::new(),
            seen: HashSet::new(),
            next_token: None,
            brackets: Vec::new(),
            constructors: HashMap::new(),
            joining: Span::NOWHERE,
            lexed: Span::NOWHERE,
            previous: Span::NOWHERE,
            here: Span::NOWHERE,
            module: global_module,
            global_module,
            exporting: false,
            scopes: vec![scope],
            main: Vec::new(),
            nesting: 0,
            in_condition: false,
            in_when_condition: false,
            in_initializer: 0,
            blank_allowed: false,
            hook_call: false,
            result_written: false,
            event_result: false,
            invalid_definition: false,
            naming: None,
            aliases: IdMap::default(),
            ignore_deprecations: 0,
            unchecked: Vec::new(),
            null,
            directives: 0,
            directive_line: Span::NOWHERE,
            directive_begins: false,
            references: IdMap::default(),
            undeclared_events: IdSet::default(),
            warn_unused: false,
            warn_usage: false,
            warn_unread: false,
            stops_at_errors: false,
            trailing: IdSet::default(),
            in_size: false,
            attr_failed: false,
            attr_place: Span::NOWHERE,
            empty_records: IdSet::default(),
            last_file: None,
            missing_signatures: Vec::new(),
            in_statements: false,
            last_token_file: None,
            wanted: None,
            overlay: HashMap::new(),
            folders: HashMap::new(),
            between: false,
            cache: None,
        }
    }

    /// Parses `inputs` one after another, to the end.
    ///
    /// # Errors
    /// [`ParseEnd`] says why it ended before; whatever was wrong was reported.
    pub fn run(&mut self, inputs: impl IntoIterator<Item = Input>) -> Result<(), ParseEnd> {
        self.inputs.extend(inputs);
        let result = self.declarations();
        let span = Span::NOWHERE;
        let stmt = self
            .program
            .stmts
            .push(Stmt { kind: StmtKind::List(std::mem::take(&mut self.main)), span });
        if let Some(main) = self.program.main {
            self.program.bodies[main].stmt = stmt;
            self.validate(main, Flavor::Function);
        }
        if result.is_ok() && self.program.diagnostics.errors == 0 {
            self.validate_all();
            for name in std::mem::take(&mut self.missing_signatures) {
                let text = format!("failed to find file associated with @load-sigs {name}");
                self.program.report(Severity::Error, Span::NOWHERE, text);
            }
        }
        self.use_signatures();
        if result.is_ok() && self.warn_unused && self.program.diagnostics.errors == 0 {
            self.report_unused();
        }
        if result.is_ok() && self.warn_usage && self.program.diagnostics.errors == 0 {
            usage::report(self.program, self.warn_unread);
        }
        result
    }

    /// How many files that were to be read were not reached.
    #[must_use]
    pub fn unread_files(&self) -> usize {
        self.inputs.iter().filter(|input| matches!(input, Input::File(_))).count()
    }

    fn declarations(&mut self) -> Parsed<()> {
        loop {
            self.between = true;
            let at_end = *self.peek()? == Token::End;
            self.between = false;
            if at_end {
                return Ok(());
            }
            self.declaration()?;
        }
    }

    /// Goes a level deeper; too deep ends parsing.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= MAX_NESTING {
            self.error_here("memory exhausted");
            return Err(ParseEnd::Syntax);
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }
}

impl From<Stop> for Option<ParseEnd> {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Error => None,
            Stop::Fatal => Some(ParseEnd::Fatal),
            Stop::Exit(status) => Some(ParseEnd::Exit(status)),
        }
    }
}
