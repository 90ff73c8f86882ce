//! The licences of all libraries in the command.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use anyhow::ensure;
use serde_json::Value;

use crate::workspace::cargo;

/// A library in the command.
pub(super) struct Library {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) licence: String,
    pub(super) repository: String,
    /// Texts of its licence files.
    pub(super) texts: Vec<String>,
}

/// All libraries that the command links, by name.
pub(super) fn libraries(features: &str) -> anyhow::Result<Vec<Library>> {
    let tree = cargo(&[
        "tree",
        "--locked",
        "--package",
        "gannet",
        "--features",
        features,
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ])
    .output()
    .context("cargo tree")?;
    ensure!(tree.status.success(), "cargo tree: {}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout)?;
    // `name v1.2.3 (…)`
    let linked: Vec<_> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect();
    let output = cargo(&["metadata", "--locked", "--format-version", "1"]).output()?;
    ensure!(output.status.success(), "cargo metadata: {}", output.status);
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let mut all = BTreeMap::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        let is_ours = package["source"].is_null();
        if is_ours || !linked.contains(&(&*name, &*version)) {
            continue;
        }
        let manifest = text("manifest_path");
        let folder = Path::new(&manifest).parent().unwrap_or(Path::new("."));
        let licence = match (text("license"), text("license_file")) {
            (licence, _) if !licence.is_empty() => licence,
            (_, file) => format!("see {file}"),
        };
        let library = Library {
            texts: texts(folder)?,
            repository: text("repository"),
            licence,
            name: name.clone(),
            version: version.clone(),
        };
        all.insert((name, version), library);
    }
    Ok(all.into_values().collect())
}

/// The licence files of a folder.
fn texts(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names: Vec<_> = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    names.sort_by_key(fs::DirEntry::file_name);
    let mut texts = Vec::new();
    for entry in names {
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_licence = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|start| name.starts_with(start));
        if is_licence && entry.path().is_file() {
            texts.push(String::from_utf8_lossy(&fs::read(entry.path())?).replace('\r', ""));
        }
    }
    Ok(texts)
}

/// The licences of all libraries as one text: each text once, with the libraries that it is of.
pub(super) fn text() -> anyhow::Result<String> {
    let libraries = libraries("full")?;
    let mut out = String::from("gannet contains these libraries:\n\n");
    let mut by_text: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for library in &libraries {
        let Library { name, version, licence, repository, texts } = library;
        out.push_str(&format!("{name} {version}: {licence} {repository}\n"));
        for text in texts {
            by_text.entry(text.trim()).or_default().push(format!("{name} {version}"));
        }
    }
    for (text, names) in by_text {
        out.push_str(&format!("\n{}\n{}\n\n{text}\n", "-".repeat(72), names.join(", ")));
    }
    Ok(out)
}
