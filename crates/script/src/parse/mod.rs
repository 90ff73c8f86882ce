//! The parser: tokens to a typed, resolved program, in one pass.
//!
//! A [`Parser`] reads files one after another ([`Parser::run`]); `@load` inserts the tokens of a file. Its
//! modules:
//!
//! | module | purpose |
//! |---|---|
//! | `tokens` | the next token, spans, syntax errors |
//! | `directive` | `@load`, `@if` and so on, which take effect between two tokens |
//! | `find` | file lookup |
//! | `scope` | name resolution |
//! | `declare`, `function`, `types`, `attributes`, `statement`, `expression` | the grammar |
//! | `check_*` | the types of expressions: Zeek's rules, conversions and messages |
//!
//! Semantic errors are reported and parsing continues; the expression gets the type `error`, which silences
//! follow-up errors. The first syntax error ends parsing ([`ParseEnd`]).

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

/// Maximum nesting depth of constructs.
const MAX_NESTING: usize = 3_000;

/// The reason why parsing ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseEnd {
    /// A syntax error, already reported.
    Syntax,
    /// A fatal error, already reported.
    Fatal,
    /// A script called `exit` while it was parsed.
    Exit(i32),
}

/// Result of the parser's functions.
type Parsed<T> = Result<T, ParseEnd>;

/// An input of the parser.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file that is looked up like that of an `@load`.
    File(String),
    /// A file that is read only if it exists.
    OptionalFile(String),
    /// Code with a name: that of `-e` is `<command line>`.
    Text {
        /// The name that messages show.
        name: String,
        /// The code.
        code: Vec<u8>,
    },
    /// The `@prefixes` files for all files read so far.
    Prefixes,
    /// No input: stores the parser's state and the program in the cache.
    Checkpoint,
    /// A signature file that is looked up like that of an `@load-sigs`.
    Signatures(String),
    /// `NAME=VALUE` of the command line.
    Redef {
        /// The variable.
        name: String,
        /// The text of its value.
        value: String,
    },
}

/// The parser. It adds to a program.
pub struct Parser<'a> {
    /// The program under construction.
    pub program: &'a mut Program,
    /// Evaluates initializers.
    engine: &'a mut dyn Evaluate,
    /// Search path of files, in order.
    search_path: Vec<String>,
    inputs: VecDeque<Input>,
    /// Stack of open files; the last one is being read.
    open_files: Vec<OpenFile>,
    /// Canonical paths of files that were loaded or unloaded.
    loaded_paths: HashSet<PathBuf>,
    next_token: Option<NextToken>,
    /// OpenFile brackets, the innermost last.
    brackets: Vec<Span>,
    /// The assignments of record constructors without a type, for [`Program::uses`].
    constructors: HashMap<ExprId, Vec<ExprId>>,
    /// The value whose type was merged last, for an error about it.
    merged_span: Span,
    /// The span of the last token from the lexer, which may be the lookahead.
    last_lexed: Span,
    /// The span of the last consumed token.
    previous: Span,
    /// The span of new nodes, computed as in Zeek's grammar.
    node_span: Span,
    module: Name,
    global_module: Name,
    exporting: bool,
    scopes: Vec<Scope>,
    main: Vec<StmtId>,
    nesting: usize,
    /// Whether the parser is in the parentheses of an `@if`.
    in_condition: bool,
    /// Whether the parser is in the condition of a `when`.
    in_when_condition: bool,
    /// Number of enclosing `{ … }` of initializers.
    in_initializer: usize,
    /// Whether `_` may stand for a value.
    blank_allowed: bool,
    /// Whether the parser is in a `hook` call.
    hook_call: bool,
    /// Whether the last function type declares a result.
    result_written: bool,
    /// Whether the parameters of the last event were followed by a result type, which events do not have.
    event_result: bool,
    /// Whether the function that is being defined already has a body.
    invalid_definition: bool,
    /// The name that the current `type` declaration gives to its type.
    type_name: Option<Name>,
    /// Copies of named records and enums under other names; they are extended together.
    aliases: IdMap<Name, Vec<TypeId>>,
    /// Number of open `@pragma push ignore-deprecations`. Deprecations are reported only if it is 0.
    ignore_deprecations: usize,
    /// Bodies that are checked at the end.
    unchecked: Vec<(BodyId, Flavor)>,
    /// An empty statement, for bodies that are not parsed yet.
    null: StmtId,
    /// Number of conditions so far.
    directives: usize,
    /// Span of the last condition, after the text that it skipped.
    directive_line: Span,
    /// Whether the last condition was an opening one, such as `@if`.
    directive_begins: bool,
    /// Globals that bodies refer to.
    references: IdMap<BodyId, Vec<GlobalId>>,
    /// Events that have handlers but no declaration.
    undeclared_events: IdSet<GlobalId>,
    /// Whether unreachable functions and handlers are reported.
    pub warn_unused: bool,
    /// Whether uses of unset locals are reported.
    pub warn_usage: bool,
    /// Whether parsing stops after the first file with an error, as in Zeek.
    pub stops_at_errors: bool,
    /// Whether assignments to locals that are never read are reported as well.
    pub warn_unread: bool,
    /// Lists with a trailing comma.
    trailing_comma_lists: IdSet<ExprId>,
    /// Whether the parser is inside `|…|`.
    in_size: bool,
    /// Whether an attribute was rejected.
    attr_failed: bool,
    /// Span of the last of the attributes that are being checked.
    attrs_span: Span,

    /// Records that `type X: record {};` declared empty before their definition.
    empty_records: IdSet<TypeId>,
    /// The file at whose end the input ended, for messages.
    last_file: Option<FileId>,
    /// Signature files that do not exist.
    missing_signatures: Vec<String>,
    /// Whether a file-level statement was parsed: declarations after it are syntax errors.
    in_statements: bool,
    last_token_file: Option<FileId>,
    /// The missing token of the next syntax error.
    expected_token: Option<&'static str>,
    /// Contents that replace files, by canonical path: unsaved texts of an editor.
    pub overlay: HashMap<PathBuf, Rc<[u8]>>,
    /// Canonical folders, by the paths that refer to them.
    folders: HashMap<PathBuf, PathBuf>,
    /// Whether the parser is between two declarations.
    between_declarations: bool,
    /// The cache to store the state in.
    pub(crate) cache: Option<Cache>,
}

/// An open file.
struct OpenFile {
    lexer: Lexer,
    file: FileId,
    /// The module to restore after the file.
    module: Name,
    /// OpenFile conditions: for each whether its `@else` was read.
    conditions: Vec<bool>,
    /// Operands of open `@pragma push`es.
    pragmas: Vec<String>,
}

/// The lookahead token.
#[derive(Clone, Debug)]
struct NextToken {
    token: Token,
    span: Span,
}

impl<'a> Parser<'a> {
    /// A parser that adds to `program` and looks up files in `search_path`.
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

    /// A parser that adds to a program with the empty statement `null` and the scope of statements at file
    /// level.
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
            open_files: Vec::new(),
            loaded_paths: HashSet::new(),
            next_token: None,
            brackets: Vec::new(),
            constructors: HashMap::new(),
            merged_span: Span::NOWHERE,
            last_lexed: Span::NOWHERE,
            previous: Span::NOWHERE,
            node_span: Span::NOWHERE,
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
            type_name: None,
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
            trailing_comma_lists: IdSet::default(),
            in_size: false,
            attr_failed: false,
            attrs_span: Span::NOWHERE,
            empty_records: IdSet::default(),
            last_file: None,
            missing_signatures: Vec::new(),
            in_statements: false,
            last_token_file: None,
            expected_token: None,
            overlay: HashMap::new(),
            folders: HashMap::new(),
            between_declarations: false,
            cache: None,
        }
    }

    /// Parses `inputs` one after another, to the end.
    ///
    /// # Errors
    /// [`ParseEnd`] if parsing ended early; the cause was reported.
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

    /// Number of input files that were not read.
    #[must_use]
    pub fn unread_files(&self) -> usize {
        self.inputs.iter().filter(|input| matches!(input, Input::File(_))).count()
    }

    fn declarations(&mut self) -> Parsed<()> {
        loop {
            self.between_declarations = true;
            let at_end = *self.peek()? == Token::End;
            self.between_declarations = false;
            if at_end {
                return Ok(());
            }
            self.declaration()?;
        }
    }

    /// Parses one nesting level deeper; ends parsing at [`MAX_NESTING`].
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
