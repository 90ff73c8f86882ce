//! `cargo xtask update`: regenerates all generated files of the repository.
//!
//! `docs/logs.md` comes from the schemas of rows, `docs/events.md` from the declarations of events, the table of
//! `docs/limits.md` from the limits, the targets of `fuzz/Cargo.toml` and the tests that call them from their sources, the golden logs from the
//! command. Scores have a command of their own, since they may only rise.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use crate::workspace;
use crate::workspace::check;
use crate::workspace::tests_of_command;

pub(crate) fn run() -> anyhow::Result<()> {
    let path = path();
    fs::write(&path, render()).with_context(|| path.display().to_string())?;
    let path = events_path();
    fs::write(&path, render_events()).with_context(|| path.display().to_string())?;
    let path = target_tests_path();
    fs::write(&path, render_target_tests()?).with_context(|| path.display().to_string())?;
    for (path, render) in
        [(limits_path(), render_limits as Render), (targets_path(), render_targets)]
    {
        let name = || path.display().to_string();
        let is = fs::read_to_string(&path).with_context(name)?;
        fs::write(&path, render(&is)?).with_context(name)?;
    }
    check(tests_of_command("golden").env("GANNET_GOLDEN", "write"))
}

fn path() -> PathBuf {
    workspace::root().join("docs/logs.md")
}

fn events_path() -> PathBuf {
    workspace::root().join("docs/events.md")
}

/// A function that returns a file with its generated part updated.
type Render = fn(&str) -> anyhow::Result<String>;

fn limits_path() -> PathBuf {
    workspace::root().join("docs/limits.md")
}

fn targets_path() -> PathBuf {
    workspace::root().join("fuzz/Cargo.toml")
}

fn target_tests_path() -> PathBuf {
    workspace::root().join("crates/fuzz-support/tests/targets/list.rs")
}

/// The page of limits with its table.
fn render_limits(page: &str) -> anyhow::Result<String> {
    const HEAD: &str = "| name | default | what is limited, and what happens beyond | reported by |\n|---|---|---|---|\n";
    let (before, after) = page.split_once(HEAD).context("docs/limits.md has no table of limits")?;
    let (_, after) = after.split_once("\n\n").context("docs/limits.md ends with its table")?;
    let mut table = String::new();
    for limit in gannet_engine::Limits::all() {
        let default = match limit.default {
            gannet_engine::Limits::NONE => "none".to_owned(),
            bytes if limit.bytes && bytes >= 1 << 20 => format!("{}M", bytes >> 20),
            bytes if limit.bytes => format!("{}K", bytes >> 10),
            number => grouped(number),
        };
        let (what, by) = (limit.description, limit.reported_by);
        // Writing to a string does not fail.
        writeln!(table, "| `{}` | {default} | {what} | {by} |", limit.name).unwrap_or_default();
    }
    Ok(format!("{before}{HEAD}{table}\n{after}"))
}

/// A number with commas: `65,536`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let (head, rest) = digits.split_at(first);
    let groups = rest.as_bytes().chunks(3).map(String::from_utf8_lossy);
    let head = (!head.is_empty()).then(|| head.into());
    head.into_iter().chain(groups).collect::<Vec<_>>().join(",")
}

/// The manifest of fuzz targets with a target for each source.
fn render_targets(manifest: &str) -> anyhow::Result<String> {
    let (head, _) = manifest.split_once("\n[[bin]]").context("fuzz/Cargo.toml has no target")?;
    let mut out = head.to_owned();
    for name in targets()? {
        let lines = "test = false\ndoc = false\nbench = false";
        // Writing to a string does not fail.
        writeln!(out, "\n[[bin]]\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n{lines}")
            .unwrap_or_default();
    }
    Ok(out)
}

/// The tests that call the fuzz targets.
fn render_target_tests() -> anyhow::Result<String> {
    let mut out = String::from(
        "//! A test for each fuzz target, made by `cargo xtask update` from their sources.\n",
    );
    for name in targets()? {
        // Writing to a string does not fail.
        write!(
            out,
            "\n#[path = \"../../../../fuzz/fuzz_targets/{name}.rs\"]\nmod {name};\n\n\
             #[test]\nfn {name}() {{\n    crate::run({name}::target);\n}}\n"
        )
        .unwrap_or_default();
    }
    Ok(out)
}

/// The names of fuzz targets, which are those of their sources.
fn targets() -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(workspace::root().join("fuzz/fuzz_targets"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        all.extend(name.strip_suffix(".rs").map(str::to_owned));
    }
    all.sort();
    Ok(all)
}

const EVENTS_HEAD: &str = "\
# The events and their parameters

<!-- Written by `cargo xtask update` from the declarations in the code. -->

`gannet events trace.pcap` prints the events of a capture, one JSON object per line:

```sh
gannet events --only dns_request trace.pcap
```

```json
{\"ts\":1300475167.096535,\"event\":\"dns_request\",\"args\":{\"c\":{...},\"query\":\"example.com\",...}}
```

Names, parameters and types are Zeek's. A `connection` is shown as it is when the packet that raised the event
is done, and events of one packet come in the order in which they were raised. Events marked with * are
printed only if `--only` names them, or with `--all`. Checksums are not verified unless `--checksums`
is given.
";

fn render_events() -> String {
    let mut all: Vec<_> = gannet_engine::events().collect();
    all.sort_by_key(|decl| decl.name);
    let mut out = EVENTS_HEAD.to_owned();
    for decl in all {
        let star = if decl.opt_in { " *" } else { "" };
        // Writing to a string does not fail.
        let mut line = |text: &str| writeln!(out, "{text}").unwrap_or_default();
        line(&format!("\n## {}{star}\n\n{}", decl.name, decl.doc.trim()));
        if !decl.params.is_empty() {
            line("\n| parameter | type | description |\n|---|---|---|");
        }
        for param in decl.params {
            let doc = param.doc.trim().replace('|', "\\|").replace('\n', "");
            line(&format!("| {} | {} | {doc} |", param.name, param.ty));
        }
    }
    out
}

const HEAD: &str = "\
# The logs and their columns

<!-- Written by `cargo xtask update` from the schemas in the code. -->

Names, order and types are Zeek's. `time` is seconds since 1970 and `interval` seconds, both with six
decimals; `port` is a number; sets and vectors join their elements by commas. An unset value is
`-` in TSV and absent in JSON; an empty one is `(empty)` in TSV. `id.orig_h`, `id.orig_p`, `id.resp_h` and `id.resp_p`
are the connection's endpoints, and `uid` identifies the connection in all logs.
";

/// The values of two columns of conn.log.
const CONN: &str = "
### conn_state

| state | meaning |
|---|---|
| `S0` | Connection attempt without an answer. |
| `S1` | Established, and still open at the end of the capture or at the timeout. |
| `SF` | Established, and closed by both sides. Also for UDP and ICMP with an answer. |
| `REJ` | Connection attempt that the responder rejected with a reset. |
| `S2` | Established; the originator closed its side, the responder did not. |
| `S3` | Established; the responder closed its side, the originator did not. |
| `RSTO` | Established, and reset by the originator. |
| `RSTR` | Reset by the responder. |
| `RSTOS0` | The originator sent a SYN and then a reset; the responder never answered. |
| `RSTRH` | The responder sent a SYN-ACK and then a reset; the originator was never seen. |
| `SH` | The originator sent a SYN and then a FIN; the responder never answered: the connection is half open. |
| `SHR` | The responder sent a SYN-ACK and then a FIN; the originator was never seen. For UDP: only the responder sent data. |
| `OTH` | The beginning was not captured. |

### history

One letter for each event, in order: upper case for the originator, lower case for the responder.

| letter | event |
|---|---|
| `S` | A SYN without ACK. Once for each side; again for another sequence number. |
| `H` | A SYN with ACK, likewise. |
| `A` | An ACK without data. Once for each side. |
| `D` | Data. Once for each side. |
| `F` | A FIN; again for another position in the stream. |
| `R` | A reset; again for another sequence number. |
| `C` | A wrong checksum: the packet was discarded. The 1st, 10th, 100th, ... of a side. |
| `G` | A gap: data was acknowledged that the capture does not have. The 1st, 10th, 100th, ... of a side. |
| `T` | Retransmitted data. The 1st, 10th, 100th, ... of a side. |
| `W` | A window of zero: the side accepts no more data for now. The 1st, 10th, 100th, ... of a side. |
| `I` | Contradictory flags: FIN and reset in one packet. Once for each side. |
| `Q` | SYN with FIN or reset in one packet. Once for each side. |
| `X` | Analysis of the connection ended at a limit. Always upper case, once. |
| `^` | Originator and responder were exchanged: the first captured packet came from the responder. |

`ShADadFf` is a complete connection: SYN, SYN-ACK, ACK, data of both sides with ACKs, and two FINs.
";

fn render() -> String {
    let mut out = HEAD.to_owned();
    out.push_str(&index());
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
            line("Written only if `--logs` names it.\n");
        }
        line("| column | type | description |\n|---|---|---|");
        for field in schema.fields {
            let mut doc = field.doc.trim().replace('|', "\\|").replace('\n', "");
            if field.optional {
                doc.push_str(" Only with `--columns`.");
            }
            line(&format!("| {} | {} | {doc} |", field.name, field.ty));
        }
        if schema.path == "conn" {
            out.push_str(CONN);
        }
    }
    out
}

/// A table of all logs with links to their sections.
fn index() -> String {
    let mut out = "\n| log | rows |\n|---|---|\n".to_owned();
    let mut last = "";
    for schema in gannet_engine::schemas().iter().filter(|s| !s.path.is_empty()) {
        if schema.path == last {
            continue;
        }
        last = schema.path;
        // The heading is `NAME.log`; links omit the dot.
        let asked = if schema.opt_in { " Only with `--logs`." } else { "" };
        let doc = schema.doc.trim().lines().collect::<Vec<_>>().join(" ");
        // Writing to a string does not fail.
        writeln!(out, "| [{last}](#{last}log) | {doc}{asked} |").unwrap_or_default();
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
    fn the_manual_of_events_is_up_to_date() {
        let is = fs::read_to_string(events_path()).unwrap();
        assert!(is == render_events(), "docs/events.md is out of date: cargo xtask update");
    }

    #[test]
    fn the_table_of_limits_is_up_to_date() {
        let is = fs::read_to_string(limits_path()).unwrap();
        assert!(
            is == render_limits(&is).unwrap(),
            "docs/limits.md is out of date: cargo xtask update"
        );
    }

    #[test]
    fn every_fuzz_target_is_in_the_manifest() {
        let is = fs::read_to_string(targets_path()).unwrap();
        assert!(
            is == render_targets(&is).unwrap(),
            "fuzz/Cargo.toml is out of date: cargo xtask update"
        );
    }

    #[test]
    fn every_fuzz_target_has_a_test() {
        let is = fs::read_to_string(target_tests_path()).unwrap();
        assert!(
            is == render_target_tests().unwrap(),
            "the list of fuzz targets is out of date: cargo xtask update"
        );
    }

    #[test]
    fn numbers_have_commas() {
        let numbers = [4, 50, 100, 1_000, 65_536, 1_000_000].map(grouped);
        assert_eq!(numbers, ["4", "50", "100", "1,000", "65,536", "1,000,000"]);
    }

    #[test]
    fn every_declared_log_has_a_schema() {
        let known: Vec<_> = gannet_engine::schemas().iter().map(|s| s.path).collect();
        let mut seen = 0;
        for path in ["engine", "files", "protocols"] {
            for source in sources(&workspace::root().join("crates").join(path).join("src")) {
                let text = fs::read_to_string(&source).unwrap();
                // Rows defined in tests are not logs.
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
