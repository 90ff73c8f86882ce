//! The captures that tests read in addition to generated traffic: the repository's sample, and a
//! corpus outside the repository.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// The sample, and all files below these folders of the corpus, in the order of their paths. The
/// corpus is in the folder `GANNET_SHARED`, by default `shared` next to the repository; missing
/// folders are reported.
#[expect(clippy::print_stderr, reason = "tests say what they skip")]
pub fn captures(folders: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("GANNET_SHARED").map_or(root.join("../shared"), PathBuf::from);
    let mut all = vec![root.join("examples/sample.pcap")];
    for folder in folders {
        let folder = shared.join(folder);
        if folder.is_dir() {
            add(&folder, &mut all);
        } else {
            eprintln!("skipped: no captures in {}: GANNET_SHARED names another", folder.display());
        }
    }
    all
}

fn add(folder: &Path, all: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() { add(&path, all) } else { all.push(path) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_always_exists() {
        let all = captures(&["no/such/folder"]);
        assert!(all.len() == 1 && all.iter().all(|path| path.is_file()), "{all:?}");
    }
}
