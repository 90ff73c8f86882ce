//! `cargo xtask update`: everything in the repository that is generated, written anew.
//!
//! `docs/logs.md` comes from the schemas of rows; the sample capture from the generator of traffic;
//! its golden logs from the command. Scores have a command of their own, since they may only rise.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use crate::workspace;
use crate::workspace::cargo;
use crate::workspace::check;

pub(crate) fn run() -> anyhow::Result<()> {
    let path = path();
    fs::write(&path, render()).with_context(|| path.display().to_string())?;
    let golden = ["test", "--quiet", "--package", "gannet", "--test", "golden"];
    check(cargo(&golden).env("GANNET_GOLDEN", "write"))
}

fn path() -> PathBuf {
    workspace::root().join("docs/logs.md")
}

const HEAD: &str = "\
# The logs and their columns

<!-- Written by `cargo xtask update` from the schemas in the code. -->

Names, order and types are Zeek's. `time` is seconds since 1970 and `interval` seconds, both with six
decimals; `port` is a number; sets and vectors join their elements by commas. What has no value is
`-` in TSV and absent in JSON; what is empty is `(empty)` in TSV. `id.orig_h` and so on are the
connection's originator and responder, and `uid` is its name in all logs.
";

fn render() -> String {
    let mut out = HEAD.to_owned();
    let mut last = "";
    for schema in gannet_engine::schemas() {
        // Two kinds of rows may share one log.
        if schema.path == last {
            continue;
        }
        last = schema.path;
        // Writing to a string does not fail.
        let mut line = |text: &str| writeln!(out, "{text}").unwrap_or_default();
        line(&format!("\n## {}.log\n\n{}\n", schema.path, schema.doc));
        if schema.opt_in {
            line("Written only where `--logs` asks for it.\n");
        }
        line("| column | type | what it is |\n|---|---|---|");
        for field in schema.fields {
            let mut doc = field.doc.trim().replace('|', "\\|");
            if field.optional {
                doc.push_str(" Only with `--columns`.");
            }
            line(&format!("| {} | {} | {doc} |", field.name, field.ty));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_manual_is_up_to_date() {
        let is = fs::read_to_string(path()).unwrap();
        assert!(is == render(), "docs/logs.md is out of date: cargo xtask update");
    }

    #[test]
    fn every_declared_log_has_a_schema() {
        let known: Vec<_> = gannet_engine::schemas().iter().map(|s| s.path).collect();
        let mut seen = 0;
        for path in ["engine", "files", "protocols"] {
            for source in sources(&workspace::root().join("crates").join(path).join("src")) {
                let text = fs::read_to_string(&source).unwrap();
                // Rows that tests make up are no logs.
                let text = text.split("#[cfg(test)]").next().unwrap_or_default();
                for declared in text.split("row! {").skip(1) {
                    let name = declared.split_once("= \"").and_then(|(_, d)| d.split_once('"'));
                    let (name, _) = name.unwrap();
                    assert!(known.contains(&name), "{name}.log of {}", source.display());
                    seen += 1;
                }
            }
        }
        assert!(seen >= known.len(), "{seen} declarations");
    }

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                all.extend(sources(&path));
            } else {
                all.push(path);
            }
        }
        all
    }
}
