//! The logs of the sample capture, compared with files in `golden/`.
//!
//! A change of the output changes these files, so that it is visible in review. `cargo xtask
//! update` writes them again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::support::Scratch;
use crate::support::list;
use crate::support::sample;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The capture in the repository, which README shows.
fn capture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap")
}

fn writing() -> bool {
    std::env::var_os("GANNET_GOLDEN").is_some_and(|v| v == "write")
}

#[test]
fn the_capture_is_that_of_synth() {
    if writing() {
        fs::write(capture(), sample()).unwrap();
    }
    assert!(fs::read(capture()).unwrap() == sample(), "examples/sample.pcap is out of date");
}

#[test]
fn the_logs_equal_the_golden_files() {
    let s = Scratch::new("golden");
    for (kind, args) in [("tsv", &[][..]), ("json", &["--json", "--json-times", "iso8601"])] {
        let source = s.file("sample.pcap", &sample());
        s.analyze(kind, args, &source);
        let folder = golden().join(kind);
        if writing() {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            for name in s.list(kind) {
                fs::write(folder.join(&name), s.read(&format!("{kind}/{name}"))).unwrap();
            }
        }
        let names = BTreeSet::from_iter(s.list(kind));
        assert_eq!(names, BTreeSet::from_iter(list(&folder)), "logs of {kind}");
        for name in names {
            let (is, was) =
                (s.read(&format!("{kind}/{name}")), fs::read_to_string(folder.join(&name)));
            let was = was.unwrap();
            assert!(
                is == was,
                "{kind}/{name} differs; is:\n{is}\nwas:\n{was}\n\
                 If that is meant: cargo xtask update"
            );
        }
    }
}
