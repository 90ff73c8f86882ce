//! ARCHITECTURE.md agrees with the sources.

// Helpers of tests panic where a test fails.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

/// Whether a source file of this folder has an attribute that allows unsafe code.
fn has_unsafe(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).any(|path| {
        if path.is_dir() {
            return has_unsafe(&path);
        }
        let source = || fs::read_to_string(&path).unwrap();
        path.extension().is_some_and(|e| e == "rs") && source().contains("allow(unsafe_code")
    })
}

#[test]
fn the_law_on_unsafe_code_names_every_crate_that_has_any() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let laws = text.split("\n## Laws").nth(1).unwrap();
    let law = laws.split("\n5. ").nth(1).unwrap().split("\n6. ").next().unwrap();
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|e| e.unwrap().path());
    let apps = fs::read_dir(root.join("apps")).unwrap().map(|e| e.unwrap().path());
    for path in crates.chain(apps) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !path.join("src").is_dir() {
            continue;
        }
        let named = law.contains(&format!("`{name}`")) || law.contains(&format!("`apps/{name}`"));
        assert_eq!(has_unsafe(&path.join("src")), named, "{name}");
    }
}

/// The concatenated sources of a folder except `rows.rs`.
fn other_sources(folder: &Path) -> String {
    let paths = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let others = paths.filter(|path| !path.ends_with("rows.rs") && !path.ends_with("tests.rs"));
    others.map(|path| if path.is_dir() { other_sources(&path) } else { read(&path) }).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn the_rows_of_all_protocols_receive_events() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = read(&root.join("ARCHITECTURE.md"));
    assert!(text.contains("The rows of all protocols receive events"));
    let folders = fs::read_dir(root.join("crates/protocols/src")).unwrap();
    let mut receiving = 0;
    // Weirds belong to no protocol: their reporter writes the rows itself.
    let is_protocol = |path: &Path| path.join("rows.rs").is_file() && !path.ends_with("weird");
    for folder in folders.map(|e| e.unwrap().path()).filter(|path| is_protocol(path)) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        assert!(read(&folder.join("rows.rs")).contains("impl OnEvent<"), "{name}");
        receiving += 1;
        let others = other_sources(&folder);
        // Analyzers refer to rows, not to logs and columns.
        assert!(!others.contains("cx.log(") && !others.contains("Row {"), "{name}");
    }
    assert!(receiving >= 30);
}

#[test]
fn profile_dev_names_every_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = read(&root.join("Cargo.toml"));
    let levels = text.split("\n[profile.dev.package]\n").nth(1).unwrap();
    let levels = levels.split("\n[").next().unwrap();
    for path in fs::read_dir(root.join("crates")).unwrap().map(|e| e.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // A member without its own level would be optimized like a dependency.
        assert!(levels.contains(&format!("gannet-{name} = {{ opt-level = ")), "{name}");
    }
}
