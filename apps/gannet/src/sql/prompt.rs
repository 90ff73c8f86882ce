//! The prompt of `gannet sql`: lines with history and completion.

use std::io;
use std::io::Write as _;

use anyhow::Context as _;
use gannet_query::Session;
use rustyline::Config;
use rustyline::Editor;
use rustyline::Helper;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::ValidationContext;
use rustyline::validate::ValidationResult;
use rustyline::validate::Validator;

use super::Args;
use super::functions;
use super::help;
use super::history;
use super::with_folder;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// SQL keywords for completion.
const KEYWORDS: [&str; 24] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "DESC",
    "AND",
    "OR",
    "NOT",
    "IN",
    "LIKE",
    "BETWEEN",
    "IS NULL",
    "JOIN",
    "ON",
    "USING",
    "AS",
    "COUNT(*)",
    "DISTINCT",
    "HAVING",
    "WITH",
    "CASE WHEN",
    "INTERVAL",
];

/// Reads and runs queries until the end of input.
pub(super) fn run(args: &Args, session: &Session, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let stop = session.stop();
    // Ctrl-C is a key while a line is edited, and a signal while a query runs.
    signal_hook::flag::register(signal_hook::consts::SIGINT, stop).context("signals")?;
    let config = Config::builder().auto_add_history(true).build();
    let mut editor: Editor<Completions, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Completions::for_session(session)));
    let history = history();
    if let Some(path) = &history {
        // The prompt works without a history.
        let _ = with_folder(path).map(|()| editor.load_history(path));
    }
    let tables = session.tables().len();
    terminal.print_lines(&format_args!("{tables} tables; .help shows more"));
    loop {
        match editor.readline("gannet> ") {
            Ok(line) => {
                if line.trim_start().starts_with('.') {
                    if command(line.trim(), session, terminal)?.is_none() {
                        break;
                    }
                    continue;
                }
                if let Some(command) = word(&line) {
                    if self::command(command, session, terminal)?.is_none() {
                        break;
                    }
                    continue;
                }
                let (queries, rest) = statements(&line);
                let rest = Some(rest).filter(|rest| !rest.is_empty());
                for sql in queries.into_iter().chain(rest) {
                    args.answer(session, &sql, terminal)?;
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(anyhow::Error::from(error).context("the prompt")),
        }
        if let Some(path) = &history {
            let _ = editor.append_history(path);
        }
    }
    Ok(Outcome::Done)
}

/// The command for a line that other SQL programs accept without a dot.
fn word(line: &str) -> Option<&'static str> {
    match line.trim().trim_end_matches(';').trim_end().to_ascii_lowercase().as_str() {
        "exit" | "quit" | "\\q" => Some(".quit"),
        "help" | "?" | "\\?" | "\\h" => Some(".help"),
        "\\d" | "\\dt" => Some(".tables"),
        _ => None,
    }
}

/// Runs a command that starts with a dot and returns its outcome; `None` ends the prompt.
pub(super) fn command(
    line: &str,
    session: &Session,
    terminal: &Terminal,
) -> io::Result<Option<Outcome>> {
    let line = line.trim_end_matches(';').trim_end();
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let mut out = io::stdout().lock();
    let mut outcome = Outcome::Done;
    match name {
        ".quit" | ".exit" | ".q" => return Ok(None),
        ".help" => out.write_all(help().as_bytes())?,
        ".functions" => out.write_all(functions().as_bytes())?,
        ".tables" => out.write_all(tables(session, terminal).as_bytes())?,
        ".schema" => match session.columns(argument.trim()) {
            Ok(schema) => {
                for field in schema.fields() {
                    let zeek = field.metadata().get(gannet_columns::TYPE);
                    let ty = zeek.cloned().unwrap_or_else(|| field.data_type().to_string());
                    writeln!(out, "{:<24}  {ty}", field.name())?;
                }
            }
            Err(error) => {
                outcome = super::report(&error, terminal);
            }
        },
        _ => {
            terminal.error(&format_args!("no command is named '{name}'"));
            terminal.hint(&".help shows all");
            outcome = Outcome::NoCapture;
        }
    }
    out.flush()?;
    Ok(Some(outcome))
}

/// Maximum number of paths in a line of `.tables`.
const MAX_PATHS: usize = 3;

/// The tables, each with the files of its rows. Captures, which provide every log, are listed once.
fn tables(session: &Session, terminal: &Terminal) -> String {
    let all = session.files_of_tables();
    let captures = session.captures();
    let has_logs = all.iter().any(|(_, logs)| !logs.is_empty());
    let mut text = String::new();
    for (table, logs) in &all {
        text.push_str(table);
        if has_logs {
            let mut names: Vec<_> =
                logs.iter().take(MAX_PATHS).map(|path| path.display().to_string()).collect();
            if logs.len() > MAX_PATHS {
                names.push(format!("and {} more", logs.len() - MAX_PATHS));
            }
            if !captures.is_empty() {
                names.push("captures".to_owned());
            }
            let pad = 20_usize.saturating_sub(table.len());
            text.push_str(&format!("{:pad$}  {}", "", names.join(", ")));
        }
        text.push('\n');
    }
    if let Some(first) = captures.first() {
        let more = match captures.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let names = format!("{}{more}", first.display());
        terminal.note(&format_args!("these logs can be read from captures: {names}"));
    }
    if all.is_empty() {
        terminal.note(&"no capture or log is given; name one in a query: FROM 'trace.pcap'");
    }
    text
}

/// Whether a text is a command, known or unknown: a dot and a word.
pub(super) fn is_command(text: &str) -> bool {
    let word = text.strip_prefix('.').unwrap_or_default();
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Splits a text into queries and commands. A command is a line outside of a query.
pub(super) fn lines(text: &str) -> Vec<String> {
    let (mut all, mut pending) = (Vec::new(), String::new());
    for line in text.lines() {
        if pending.trim().is_empty() && line.trim_start().starts_with('.') {
            all.push(line.trim().to_owned());
            continue;
        }
        pending.push_str(line);
        pending.push('\n');
        let (queries, rest) = statements(&pending);
        if rest.is_empty() {
            all.extend(queries);
            pending.clear();
        }
    }
    let (queries, rest) = statements(&pending);
    all.extend(queries);
    all.extend(Some(rest).filter(|rest| !rest.is_empty()));
    all
}

/// The lexical context of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LexicalContext {
    Query,
    /// Inside quotes of this kind.
    Quotes(char),
    /// Inside a comment to the end of the line.
    LineComment,
    /// Inside a comment between `/*` and `*/`.
    BlockComment,
}

/// Splits text at semicolons outside of quotes and comments. Returns the complete queries, and the text after the last
/// semicolon.
pub(super) fn statements(text: &str) -> (Vec<String>, String) {
    let (mut queries, mut current) = (Vec::new(), String::new());
    let mut inside = LexicalContext::Query;
    for c in text.chars() {
        let ends = c == ';' && inside == LexicalContext::Query;
        inside = match (inside, c) {
            (LexicalContext::Query, '\'' | '"') => LexicalContext::Quotes(c),
            (LexicalContext::Query, '-') if current.ends_with('-') => LexicalContext::LineComment,
            (LexicalContext::Query, '*') if current.ends_with('/') => LexicalContext::BlockComment,
            (LexicalContext::Quotes(open), c) if open == c => LexicalContext::Query,
            (LexicalContext::LineComment, '\n') => LexicalContext::Query,
            (LexicalContext::BlockComment, '/') if current.ends_with('*') => LexicalContext::Query,
            (inside, _) => inside,
        };
        if !ends {
            current.push(c);
        } else if is_comment(&current) {
            current.clear();
        } else {
            queries.push(std::mem::take(&mut current).trim().to_owned());
        }
    }
    // Text that has only comments is not a query.
    let rest = if is_comment(&current) { String::new() } else { current.trim().to_owned() };
    (queries, rest)
}

/// Whether a text consists of blanks and line comments only.
fn is_comment(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with("--"))
}

/// Whether a text can be run: a query ends with a semicolon, a command with its line.
fn is_complete(text: &str) -> bool {
    let (_, rest) = statements(text);
    rest.is_empty() || text.trim_start().starts_with('.') || word(text).is_some()
}

/// Candidates for completion.
struct Completions {
    words: Vec<String>,
    /// Candidates after FROM and JOIN.
    tables: Vec<String>,
}

impl Completions {
    fn for_session(session: &Session) -> Self {
        let mut words: Vec<String> = KEYWORDS.iter().map(|&word| word.to_owned()).collect();
        for table in session.tables() {
            if let Ok(schema) = session.columns(&table) {
                words.extend(schema.fields().iter().map(|field| field.name().clone()));
            }
            words.push(table);
        }
        words.extend(session.functions().into_iter().map(|name| format!("{name}(")));
        words.extend([".tables", ".schema ", ".functions", ".help", ".quit"].map(str::to_owned));
        words.sort();
        words.dedup();
        Self { words, tables: session.tables() }
    }
}

impl Helper for Completions {}
impl Highlighter for Completions {}

impl Hinter for Completions {
    type Hint = String;
}

impl Validator for Completions {
    /// A query ends with a semicolon, a command with its line.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let is_complete = is_complete(context.input());
        Ok(if is_complete { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Completions {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..position).unwrap_or_default();
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let start = before.rfind(|c| !is_word(c)).map_or(0, |at| at + 1);
        let start = (start..=position).find(|at| before.is_char_boundary(*at)).unwrap_or(position);
        let word = before.get(start..).unwrap_or_default().to_lowercase();
        let begins = |candidate: &&String| candidate.to_lowercase().starts_with(&word);
        let previous = before.get(..start).unwrap_or_default().split_whitespace().next_back();
        let is_table = previous.is_some_and(|word| {
            ["from", "join"].iter().any(|from| from.eq_ignore_ascii_case(word))
        });
        let words = if is_table { &self.tables } else { &self.words };
        Ok((start, words.iter().filter(begins).cloned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_end_with_semicolons_outside_of_quotes() {
        let (queries, rest) = statements("SELECT ';' ; -- a; b\nSELECT \"a;b\";; select 1");
        assert_eq!(queries, ["SELECT ';'", "-- a; b\nSELECT \"a;b\""]);
        assert_eq!(rest, "select 1");
        assert_eq!(statements(" ; "), (vec![], String::new()));
        let (queries, rest) = statements("-- first\n;\nSELECT 1; -- done\n  -- really");
        assert_eq!((queries, rest.as_str()), (vec!["SELECT 1".to_owned()], ""));
        let both = lines(".tables\nSELECT\n.5; SELECT 2;\n.quit");
        assert_eq!(both, [".tables", "SELECT\n.5", "SELECT 2", ".quit"]);
        let (queries, rest) = statements("SELECT /* a; 'b */ 1; SELECT 2");
        assert_eq!((queries, rest.as_str()), (vec!["SELECT /* a; 'b */ 1".to_owned()], "SELECT 2"));
    }

    #[test]
    fn lines_continue_up_to_the_semicolon() {
        for pending in ["SELECT 1", "SELECT ';", "SELECT 1; SELECT 2", "SELECT /* ;", "exit now"] {
            assert!(!is_complete(pending), "{pending}");
        }
        for complete in
            ["", "SELECT 1;", "SELECT\n1\n;", ".tables", "exit", "-- nothing", "SELECT 1; -- one"]
        {
            assert!(is_complete(complete), "{complete}");
        }
    }

    #[test]
    fn commands_without_a_dot_are_known() {
        assert_eq!(word(" EXIT; "), Some(".quit"));
        assert_eq!(word("\\dt"), Some(".tables"));
        assert_eq!(word("exit now"), None);
    }

    #[test]
    fn words_are_completed_without_case() {
        let words = Completions {
            words: vec!["COUNT(*)".into(), "conn".into(), "id.orig_h".into(), "SELECT".into()],
            tables: vec!["conn".into()],
        };
        let history = FileHistory::new();
        let complete = |line: &str| {
            words.complete(line, line.len(), &rustyline::Context::new(&history)).unwrap()
        };
        assert_eq!(complete("sel"), (0, vec!["SELECT".to_owned()]));
        assert_eq!(complete("SELECT id.o"), (7, vec!["id.orig_h".to_owned()]));
        assert_eq!(complete("SELECT * from co"), (14, vec!["conn".to_owned()]));
    }
}
