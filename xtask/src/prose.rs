//! `cargo xtask prose`: finds words in comments and pages that readers of Zeek's, Wireshark's and
//! Rust's documentation would not expect.
//!
//! [`words`] lists these words, each with a reason and a replacement; [`text`] extracts the prose of a
//! file. `xtask/prose.json` holds the number of findings by crate. A number may fall and never rise:
//! a change that adds such words fails here, and `--update` keeps today's numbers.

mod text;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::bail;

use self::words::Word;
use crate::workspace;
use crate::workspace::print;
use crate::workspace::say;

/// List comments and docs with words that plain English has a better one for.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Keep today's counts in xtask/prose.json
    #[arg(long)]
    update: bool,
    /// Print the counts, and the findings only of crates whose count rose
    #[arg(long)]
    counts: bool,
    /// Print the words to avoid, their replacements and the reasons
    #[arg(long)]
    words: bool,
    /// Only files whose path begins with one of these
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

impl Args {
    /// Checks the counts and prints the findings only of crates whose count rose.
    pub(crate) fn check() -> Self {
        Self { counts: true, ..Self::default() }
    }
}

/// Generated pages: their sentences are the comments of declarations in crates.
const GENERATED: [&str; 2] = ["docs/logs.md", "docs/events.md"];

/// A word to avoid in a file.
#[derive(Debug, PartialEq)]
struct Finding {
    path: String,
    line: usize,
    /// The words as spelled in the file.
    found: String,
    word: &'static Word,
}

/// Number of findings by crate.
type Counts = BTreeMap<String, u64>;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.words {
        for word in words::WORDS {
            print(&format!(
                "{:<40} {}; {}",
                word.patterns.join(", "),
                word.replacement,
                word.reason
            ));
        }
        return Ok(());
    }
    let root = workspace::root();
    let mut findings: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for path in files(&root)? {
        let file = root.join(&path);
        let source = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        findings.entry(group(&path)).or_default().extend(check(&path, &source));
    }
    let counts: Counts = findings.iter().map(|(name, f)| (name.clone(), f.len() as u64)).collect();
    let committed_path = root.join("xtask/prose.json");
    let text = fs::read_to_string(&committed_path).unwrap_or_else(|_| "{}".to_owned());
    let committed: Counts =
        serde_json::from_str(&text).with_context(|| committed_path.display().to_string())?;
    let increased = increased(&counts, &committed);
    for (name, findings) in &findings {
        if args.counts && !increased.contains(name) {
            continue;
        }
        for finding in findings.iter().filter(|f| args.selects(&f.path)) {
            let Finding { path, line, found, word } = finding;
            print(&format!("{path}:{line}: '{found}': {}", word.replacement));
        }
    }
    print_counts(&counts, &committed);
    if args.update {
        let text = serde_json::to_string_pretty(&counts)? + "\n";
        fs::write(&committed_path, text).with_context(|| committed_path.display().to_string())?;
        say(&format!("kept in {}", committed_path.display()));
        return Ok(());
    }
    if !increased.is_empty() {
        bail!(
            "more words to avoid than before in {}; `cargo xtask prose --words` lists them with reasons",
            increased.join(", ")
        );
    }
    Ok(())
}

impl Args {
    fn selects(&self, path: &str) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|p| path.starts_with(p.as_str()))
    }
}

/// The crates with more findings than committed.
fn increased(counts: &Counts, committed: &Counts) -> Vec<String> {
    let ceiling = |name: &String| committed.get(name).copied().unwrap_or(0);
    counts
        .iter()
        .filter(|(name, count)| **count > ceiling(name))
        .map(|(name, _)| name.clone())
        .collect()
}

fn print_counts(counts: &Counts, committed: &Counts) {
    for (name, &count) in counts {
        let ceiling = committed.get(name).copied().unwrap_or(0);
        if count == 0 && ceiling == 0 {
            continue;
        }
        let verdict = match count.cmp(&ceiling) {
            std::cmp::Ordering::Less => "  fell: keep it with --update",
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Greater => "  ROSE",
        };
        print(&format!("{count:>6} of {ceiling:>6}  {name}{verdict}"));
    }
    print(&format!(
        "{:>6} of {:>6}  all",
        counts.values().sum::<u64>(),
        committed.values().sum::<u64>()
    ));
}

/// Paths of all Rust sources and pages in the repository, relative to it and sorted.
fn files(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let path = folder.join(name);
            let kind = entry.file_type()?;
            if kind.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if kind.is_file() && (name.ends_with(".rs") || name.ends_with(".md")) {
                files.extend(path.to_str().map(str::to_owned));
            }
        }
    }
    files.retain(|f| !GENERATED.contains(&f.as_str()));
    files.sort();
    Ok(files)
}

/// The crate or folder under which the findings of a file are counted; a file in the root folder is
/// its own group.
fn group(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next()) {
        (Some(folder @ ("crates" | "apps" | "bindings")), Some(name)) => format!("{folder}/{name}"),
        (Some(first), _) => first.to_owned(),
        (None, _) => String::new(),
    }
}

/// Findings in one file, in order of lines.
fn check(path: &str, source: &str) -> Vec<Finding> {
    let lines = if path.ends_with(".rs") { text::comments(source) } else { text::page(source) };
    let mut findings = Vec::new();
    for paragraph in text::paragraphs(&lines) {
        for (at, length, word) in words::find(&paragraph.text) {
            let found = paragraph.text.get(at..at + length).unwrap_or_default().to_owned();
            findings.push(Finding { path: path.to_owned(), line: paragraph.line(at), found, word });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line and word of each finding.
    fn found(path: &str, source: &str) -> Vec<(usize, String)> {
        check(path, source).into_iter().map(|f| (f.line, f.found)).collect()
    }

    #[test]
    fn every_kind_of_comment_is_read() {
        let source = "//! Nobody reads it.\n\
                      /// What is left of it.\n\
                      fn f() {} // told twice\n\
                      /* Somebody\n   else */\n";
        let expected = [(1, "Nobody"), (2, "What is left"), (3, "told"), (4, "Somebody")];
        assert_eq!(found("a.rs", source), expected.map(|(l, w)| (l, w.to_owned())));
    }

    #[test]
    fn code_and_strings_are_not_prose() {
        let source = "fn told(nobody: u8) -> &'static str { \"// told\" }\n\
                      const RAW: &str = r#\"a \" // nobody\"#;\n\
                      const C: char = '\"'; // whoever\n\
                      fn f<'a>(x: &'a str) {} // 'told' is not quoted by apostrophes\n\
                      /// `told` and \"nobody\" are quoted.\n\
                      /// ```\n\
                      /// let told = 1;\n\
                      /// ```\n";
        assert_eq!(found("a.rs", source), [(3, "whoever".to_owned()), (4, "told".to_owned())]);
    }

    #[test]
    fn words_may_be_parted_by_a_line_end() {
        let source = "/// One of so\n/// many rows, of which\n/// this is\n/// there.\n";
        let expected = [(1, "so many".to_owned()), (3, "is there".to_owned())];
        assert_eq!(found("a.rs", source), expected);
        // Not across a blank line or code.
        assert_eq!(found("a.rs", "/// so\n\n/// many\n"), []);
        assert_eq!(found("a.rs", "/// so\nfn f() {}\n/// many\n"), []);
    }

    #[test]
    fn pages_are_read_without_their_code() {
        let page = "# Nobody\n\n```sh\necho told\n```\n\nThe `told` [file](told.md) was told.\n";
        assert_eq!(found("docs/a.md", page), [(1, "Nobody".to_owned()), (7, "told".to_owned())]);
    }

    #[test]
    fn findings_count_by_crate() {
        assert_eq!(group("crates/protocols/src/dns/mod.rs"), "crates/protocols");
        assert_eq!(group("apps/gannet/src/main.rs"), "apps/gannet");
        assert_eq!(group("docs/lua.md"), "docs");
        assert_eq!(group("README.md"), "README.md");
    }

    #[test]
    fn a_count_may_fall_and_never_rise() {
        let counts = |list: &[(&str, u64)]| -> Counts {
            list.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let committed = counts(&[("a", 2), ("b", 2), ("c", 2)]);
        assert_eq!(increased(&counts(&[("a", 1), ("b", 2), ("c", 3)]), &committed), ["c"]);
        // The limit of a crate without a committed count is 0.
        assert_eq!(increased(&counts(&[("new", 1), ("clean", 0)]), &committed), ["new"]);
    }
}
