//! `cargo xtask imports`: cycles of imports between the files of a crate.
//!
//! A file imports another one if a path in it leads to an item there: in a `use`, or in the code.
//! Re-exports are followed to the file that has the item and are not imports themselves, so that a
//! `mod.rs` may re-export the items of its folder. Tests do not count. [`source`] parses a file,
//! [`mod@graph`] resolves its paths and finds the cycles.

mod graph;
mod source;

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context;
use anyhow::ensure;

use self::graph::Graph;
use self::source::Source;
use crate::workspace;
use crate::workspace::print;

/// Find cycles of imports between the files of crates.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Crates, by the names of their folders
    #[arg(value_name = "CRATE", default_values = WITHOUT_CYCLES)]
    crates: Vec<String>,
}

/// Crates that must not have cycles.
const WITHOUT_CYCLES: [&str; 2] = ["engine", "protocols"];

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut count = 0;
    for name in &args.crates {
        for cycle in graph(name)?.cycles() {
            print(&format!("{name}: {cycle}"));
            count += 1;
        }
    }
    ensure!(count == 0, "cycles of imports: {count}");
    Ok(())
}

/// The imports of a crate.
fn graph(name: &str) -> anyhow::Result<Graph> {
    let root = workspace::root().join("crates").join(name).join("src");
    let mut paths = Vec::new();
    workspace::gather(&root, &mut paths)?;
    let mut sources = BTreeMap::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let file = path.strip_prefix(&root).unwrap_or(path).with_extension("");
        let mut module: Vec<_> =
            file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|last| last == "mod" || last == "lib") {
            module.pop();
        }
        sources.insert(module, Source::read(&text));
    }
    Ok(Graph::new(sources))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_and_protocols_have_no_import_cycles() {
        for name in WITHOUT_CYCLES {
            let graph = graph(name).unwrap();
            assert!(graph.imports() > 50, "the sources of {name} were found and read");
            let cycles: Vec<_> = graph.cycles().iter().map(ToString::to_string).collect();
            assert!(cycles.is_empty(), "{name}:\n{}", cycles.join("\n"));
        }
    }

    #[test]
    fn the_registry_imports_every_protocol() {
        let graph = graph("protocols").unwrap();
        for file in ["dns/analyzer", "dns", "tunnel", "detect/detector"] {
            assert!(graph.has("registry", file), "{file}");
        }
        assert!(graph.has("events", "smb/events/v1"), "modules of events are listed as well");
        assert!(!graph.has("tag", "dns"), "the tags are made from the list and import nothing");
    }
}
