//! `gannet script check`: errors and warnings of scripts, which are not run.

use std::io::Write as _;

use anyhow::anyhow;
use gannet_script::source::Sources;
use gannet_script::tools::finding::Finding;
use gannet_script::tools::finding::Label;
use gannet_script::tools::render;
use gannet_script::tools::session;
use gannet_script::tools::warn;
use serde_json::Value;
use serde_json::json;

use super::Load;
use crate::out;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Report errors and warnings of scripts without running them
///
/// Scripts are read with what they load, as zeek -a does, in the sandbox. Reports Zeek's
/// errors and warnings, and warnings that Zeek lacks; a comment `# gannet: allow(CODE)` in the line
/// or the line above silences one. Files after one with a syntax error are checked, too.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes:\n  0  no errors\n  1  errors, or warnings with --deny-warnings"
)]
pub(crate) struct Args {
    /// Scripts
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    load: Load,
    /// The form of messages: Zeek's line, or with source lines, carets and hints
    #[arg(long, value_name = "FORM", default_value = "zeek")]
    diagnostics: Form,
    /// Which warnings that Zeek lacks are reported
    #[arg(short = 'W', long, value_name = "WHICH", default_value = "default")]
    warnings: Warnings,
    /// Report warnings about loaded files and Zeek's own scripts as well
    #[arg(long)]
    loaded: bool,
    /// Warnings make the exit code 1
    #[arg(long)]
    deny_warnings: bool,
    /// Write findings as JSON to standard output, one a line
    #[arg(long)]
    json: bool,
}

/// The form of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// Zeek's line
    Zeek,
    /// Source lines with carets, what was expected and found, a hint; no follow-up errors
    Rich,
}

/// Which warnings are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Warnings {
    /// Only those of Zeek itself
    None,
    /// Those that are rarely wrong
    Default,
    /// All, also about optional fields and unordered output
    All,
}

/// The result of a check, as text.
#[derive(Default)]
struct Report {
    text: Vec<u8>,
    json: Vec<u8>,
    errors: usize,
    warnings: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut settings = args.load.settings(&args.files);
    settings.warnings = match args.warnings {
        Warnings::None => warn::Level::None,
        Warnings::Default => warn::Level::Default,
        Warnings::All => warn::Level::All,
    };
    settings.warn_loaded = args.loaded;
    let (form, as_json) = (args.diagnostics, args.json);
    let report = session::on_large_stack(move || {
        let mut report = Report::default();
        for session in session::read_all(&settings) {
            // `lines` has all of Zeek's errors; `findings` omits follow-up errors.
            let rich = form == Form::Rich || as_json;
            let findings = if rich { &session.findings } else { &session.lines };
            for finding in findings {
                report.add(&session.program.sources, finding, rich, as_json);
            }
        }
        report
    });
    let report = report.ok_or_else(|| anyhow!("the scripts could not be read"))?;
    std::io::stderr().write_all(&report.text).unwrap_or_default();
    if args.json {
        out::write(&report.json)?;
    } else if report.errors + report.warnings > 0 && args.diagnostics == Form::Rich {
        let number = |n: usize, what| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let summary =
            [number(report.errors, "error"), number(report.warnings, "warning")].join(", ");
        Terminal::new(false).note(&summary);
    }
    let failed = report.errors > 0 || (args.deny_warnings && report.warnings > 0);
    Ok(if failed { Outcome::Code(1) } else { Outcome::Done })
}

impl Report {
    fn add(&mut self, sources: &Sources, finding: &Finding, rich: bool, as_json: bool) {
        if finding.severity.is_error() {
            self.errors += 1;
        } else {
            self.warnings += 1;
        }
        if as_json {
            self.json.extend_from_slice(json(sources, finding).to_string().as_bytes());
            self.json.push(b'\n');
        } else if rich {
            self.text.extend_from_slice(render::render(sources, finding).as_bytes());
        } else {
            self.text.extend_from_slice(line(sources, finding).as_bytes());
            self.text.push(b'\n');
            if let Some(cause) = cause(sources, finding) {
                self.text.extend_from_slice(cause.as_bytes());
            }
        }
    }
}

/// The finding in one line: Zeek's own, or one in the same form.
fn line(sources: &Sources, finding: &Finding) -> String {
    finding.zeek.clone().unwrap_or_else(|| {
        let location = finding.span().map_or(String::new(), |span| sources.location(span));
        format!(
            "{} in {location}: {} [{}]",
            finding.severity.prefix(),
            finding.message,
            finding.code
        )
    })
}

/// The location of a syntax error in a file before the one that Zeek's line names.
fn cause(sources: &Sources, finding: &Finding) -> Option<String> {
    let [first, second, ..] = finding.labels.as_slice() else { return None };
    let is_before = finding.code == "syntax" && first.span.file != second.span.file;
    is_before.then(|| format!("note in {}: {}\n", sources.location(first.span), finding.message))
}

fn json(sources: &Sources, finding: &Finding) -> Value {
    let mut value = json!({
        "severity": if finding.severity.is_error() { "error" } else { "warning" },
        "code": finding.code,
        "message": finding.message,
        "zeek": line(sources, finding),
    });
    if let Some(hint) = &finding.hint {
        value["hint"] = json!(hint);
    }
    let mut labels = finding.labels.iter().filter_map(|label| location(sources, label));
    if let Some(Value::Object(first)) = labels.next() {
        for (key, part) in first {
            value[key] = part;
        }
    }
    let more: Vec<Value> = labels.collect();
    if !more.is_empty() {
        value["related"] = Value::Array(more);
    }
    value
}

fn location(sources: &Sources, label: &Label) -> Option<Value> {
    let (from, to) = render::positions(sources, label.span)?;
    let file = sources.files.find(label.span.file)?;
    Some(json!({
        "file": &*file.path, "line": from.line, "column": from.column,
        "end_line": to.line, "end_column": to.column, "label": label.text,
    }))
}
