//! The output of every stage for given expressions, in readable files: `filetests/STAGE.txt`.
//!
//! A case is one or more lines of expression after `>`, lines of settings after `@` (`link RAW`,
//! `no-optimize`, `scoped`, `snaplen 96`, `netmask ffffff00`, `packet HEX`), and the output of the
//! stage, up to a line of `---`. Text before `>` is a comment. `GANNET_GOLDEN=write` rewrites the
//! outputs; review the changes before committing them.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use gannet_filter::ir::Graph;
use gannet_filter::{Compiled, Dialect, Options, Resolver, compile, dlt};

/// Lists and hosts for the cases.
struct Names;

impl Resolver for Names {
    fn host(&self, name: &str) -> Vec<std::net::IpAddr> {
        match name {
            "both.example" => vec!["192.0.2.7".parse().unwrap(), "2001:db8::7".parse().unwrap()],
            _ => Vec::new(),
        }
    }

    fn list(&self, name: &str) -> Result<String, String> {
        match name {
            "list.txt" => Ok("192.0.2.1 # ours\n198.51.100.0/24\n2001:db8::/32\n".to_owned()),
            _ => Err("no such list".to_owned()),
        }
    }
}

#[derive(Debug, Default)]
struct Case {
    /// The comment.
    before: String,
    text: Vec<String>,
    settings: Vec<String>,
    expected: String,
}

fn cases(text: &str) -> Vec<Case> {
    let mut all = Vec::new();
    let mut case = Case::default();
    for line in text.lines() {
        if line == "---" {
            all.push(std::mem::take(&mut case));
        } else if let Some(expression) = line.strip_prefix('>') {
            case.text.push(expression.strip_prefix(' ').unwrap_or(expression).to_owned());
        } else if let Some(setting) = line.strip_prefix('@') {
            case.settings.push(setting.trim().to_owned());
        } else {
            let to = if case.text.is_empty() { &mut case.before } else { &mut case.expected };
            to.push_str(line);
            to.push('\n');
        }
    }
    assert!(case.text.is_empty(), "a case does not end in ---");
    all
}

/// The output of a stage.
fn output(stage: &str, case: &Case) -> String {
    let mut options = Options::default();
    let mut link = dlt::by_name("EN10MB").unwrap();
    let mut packet = Vec::new();
    for setting in &case.settings {
        match setting.split_once(' ').unwrap_or((setting, "")) {
            ("link", name) => link = dlt::by_name(name).unwrap(),
            ("no-optimize", _) => options.optimize = false,
            ("scoped", _) => options.dialect = Dialect::Scoped,
            ("snaplen", n) => options.snaplen = n.parse().unwrap(),
            ("netmask", n) => options.netmask = Some(u32::from_str_radix(n, 16).unwrap()),
            ("packet", hex) => {
                let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
                packet.extend(digits.chunks(2).map(|pair| {
                    u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()
                }));
            }
            other => panic!("unknown setting {other:?}"),
        }
    }
    let compiled = match compile(&case.text.join("\n"), link, &options, &Names) {
        Ok(compiled) if stage == "errors" => format!("no error: {}", compiled.program()),
        Ok(compiled) => shown(stage, &compiled, &packet),
        Err(error) => error.to_string(),
    };
    compiled.trim_end().to_owned() + "\n"
}

fn shown(stage: &str, c: &Compiled, packet: &[u8]) -> String {
    let graph = |of: fn(&Graph) -> String| c.graph().map_or_else(|| "accept".to_owned(), of);
    match stage {
        "ast" => c.ast(),
        "predicates" => c.predicates(),
        "ir" => graph(ToString::to_string),
        "passes" => c.passes_listed(),
        "bpf" => c.program().to_string(),
        "c" => c.program().to_c_function("filter"),
        "dot" => graph(Graph::to_dot),
        "svg" => graph(Graph::to_svg),
        "explain" => c.explain(),
        // The verdicts as the packet is truncated further.
        "run" => {
            let wire = packet.len() as u32;
            let mut out = String::new();
            let mut last = None;
            for length in (0..=packet.len()).rev() {
                let keep = c.program().run(&packet[..length], wire);
                if last != Some(keep) {
                    let _ = writeln!(out, "{length} bytes: {keep}");
                }
                last = Some(keep);
            }
            out
        }
        other => panic!("unknown stage {other}"),
    }
}

#[test]
fn outputs_of_stages_match_the_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let write = std::env::var_os("GANNET_GOLDEN").is_some_and(|v| v == "write");
    let (mut files, mut wrong) = (0, 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stage = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut out = String::new();
        for case in cases(&fs::read_to_string(&path).unwrap()) {
            let output = output(&stage, &case);
            out.push_str(&case.before);
            for (mark, lines) in [(">", &case.text), ("@", &case.settings)] {
                for line in lines {
                    let _ = writeln!(out, "{}", format!("{mark} {line}").trim_end());
                }
            }
            out.push_str(&output);
            out.push_str("---\n");
            if !write && output != case.expected {
                wrong += 1;
                let text = case.text.join("\n");
                eprintln!("{stage}: {text}\nexpected:\n{}said:\n{output}", case.expected);
            }
        }
        if write {
            fs::write(&path, out).unwrap();
        }
        files += 1;
    }
    assert!(files >= 11, "{files} files");
    assert_eq!(wrong, 0, "cases differ: see above; GANNET_GOLDEN=write keeps what is said");
}
