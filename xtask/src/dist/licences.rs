//! The licences of all libraries in the command.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use anyhow::ensure;
use serde_json::Value;

use super::Dist;
use super::Libc;
use crate::workspace::cargo;
use crate::workspace::root;

/// A library in the command.
pub(super) struct Library {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) licence: String,
    pub(super) repository: String,
    /// Texts of its licence files.
    pub(super) texts: Vec<String>,
}

/// All libraries that a package links, by name: the command, with these features, and the module for Python.
pub(super) fn libraries(features: &str, has_module: bool) -> anyhow::Result<Vec<Library>> {
    let mut linked = tree(features, has_module, "normal,no-proc-macro")?;
    // Including build dependencies: a crate such as luajit-src contains only sources, which are
    // compiled and linked.
    let sources = tree(features, has_module, "normal,build")?;
    linked.extend(sources.into_iter().filter(|(name, _)| name.ends_with("-src")));
    // All features: otherwise the metadata lacks libraries that only non-default features of a
    // member need.
    let metadata = ["metadata", "--locked", "--all-features", "--format-version", "1"];
    let output = cargo(&metadata).output()?;
    ensure!(output.status.success(), "cargo metadata: {}", output.status);
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let mut all = BTreeMap::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        let is_ours = package["source"].is_null();
        if is_ours || !linked.contains(&(name.clone(), version.clone())) {
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

/// Names and versions of the crates reachable by these kinds of dependencies.
fn tree(features: &str, has_module: bool, edges: &str) -> anyhow::Result<Vec<(String, String)>> {
    let features: Vec<_> = features.split(',').map(|name| format!("gannet/{name}")).collect();
    let mut command = cargo(&["tree", "--locked", "--package", "gannet", "--prefix", "none"]);
    command.args(["--format", "{p}", "--features", &features.join(","), "--edges", edges]);
    if has_module {
        command.args(["--package", "gannet-python"]);
    }
    let output = command.output().context("cargo tree")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    // `name v1.2.3 (…)`
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    Ok(String::from_utf8(output.stdout)?.lines().filter_map(of_line).collect())
}

/// The licence files of a folder, and of the C sources in the folders below.
fn texts(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            found.extend(texts(&path)?);
        } else if is_licence(&entry.file_name().to_string_lossy()) {
            let text = String::from_utf8_lossy(&fs::read(&path)?).replace('\r', "");
            if !is_gpl(&text) {
                found.push(text);
            }
        }
    }
    Ok(found)
}

fn is_licence(name: &str) -> bool {
    let starts = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
    let is_program = [".sh", ".py", ".rs", ".c", ".h"].iter().any(|end| name.ends_with(end));
    let name = name.to_uppercase();
    starts.iter().any(|start| name.starts_with(start)) && !is_program
}

/// Whether a text is that of the GPL or LGPL: sources that contain it are dual-licensed, or it
/// applies to programs that are not linked.
fn is_gpl(text: &str) -> bool {
    let title = text.trim_start().get(..40).unwrap_or_default();
    ["GNU GENERAL PUBLIC", "GNU LESSER GENERAL"].iter().any(|start| title.starts_with(start))
}

/// The licences of all libraries as one text: each licence once, with the libraries that it covers.
pub(super) fn text(dist: &Dist, has_module: bool) -> anyhow::Result<String> {
    let mut libraries = libraries(&dist.features, has_module)?;
    libraries.extend(runtime(dist)?);
    let mut out = String::from("gannet contains these libraries:\n\n");
    let mut by_text: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for library in &libraries {
        let Library { name, version, licence, repository, texts } = library;
        out.push_str(&format!("{name} {version}: {licence} {repository}\n"));
        for text in texts {
            let names = by_text.entry(text.trim()).or_default();
            let name = format!("{name} {version}");
            if names.last() != Some(&name) {
                names.push(name);
            }
        }
    }
    for (text, names) in by_text {
        out.push_str(&format!("\n{}\n{}\n\n{text}\n", "-".repeat(72), names.join(", ")));
    }
    Ok(out)
}

/// The libraries that every Rust program links: Rust's standard library, and the C library.
pub(super) fn runtime(dist: &Dist) -> anyhow::Result<Vec<Library>> {
    let library = |name: &str, version: &str, licence: &str, repository: &str| Library {
        name: name.to_owned(),
        version: version.to_owned(),
        licence: licence.to_owned(),
        repository: repository.to_owned(),
        texts: Vec::new(),
    };
    let rust = include_str!("../../../rust-toolchain.toml");
    let rust = rust.split("channel = \"").nth(1).and_then(|rest| rest.split('"').next());
    let rust = rust.context("rust-toolchain.toml names no channel")?;
    let std = library("rust-std", rust, "MIT OR Apache-2.0", "https://github.com/rust-lang/rust");
    let libc = match dist.libc {
        // It is part of Rust's target, so Rust's version determines its version.
        Libc::Musl => Library {
            texts: vec![fs::read_to_string(root().join("packaging/licences/musl"))?],
            ..library("musl", MUSL, "MIT", "https://musl.libc.org")
        },
        Libc::Crt => {
            library("glibc", &glibc()?, "LGPL-2.1-or-later", "https://sourceware.org/glibc/")
        }
    };
    Ok(vec![std, libc])
}

/// The version of musl in Rust's target, from src/ci/docker/scripts/musl.sh in Rust's sources.
const MUSL: &str = "1.2.5";

/// The version of this system's C library: `ldd (GLIBC) 2.36` is the first line.
fn glibc() -> anyhow::Result<String> {
    let output = Command::new("ldd").arg("--version").output().context("ldd")?;
    let text = String::from_utf8(output.stdout)?;
    let version = text.lines().next().and_then(|line| line.split_whitespace().last());
    Ok(version.context("ldd says no version")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_sources_in_the_crates_are_listed_with_their_licences() {
        let all = libraries("full", false).unwrap();
        let with_module = libraries("full", true).unwrap();
        let has = |all: &[Library], name: &str| all.iter().any(|l| l.name == name);
        assert!(has(&with_module, "pyo3") && !has(&all, "pyo3"));
        assert!(has(&all, "rskafka"), "a feature that is not usual needs it");
        let texts = |name: &str| all.iter().find(|l| l.name == name).unwrap().texts.concat();
        assert!(texts("luajit-src").contains("Mike Pall"));
        assert!(texts("libmimalloc-sys").contains("Daan Leijen"));
        let zstd = texts("zstd-sys");
        assert!(zstd.contains("Meta Platforms") && !zstd.contains("GNU GENERAL PUBLIC LICENSE\n"));
        assert!(!has(&all, "cc") && !has(&all, "syn"), "they build and are not linked");
    }

    #[test]
    fn scripts_are_no_licences() {
        assert!(is_licence("LICENSE-MIT") && is_licence("Copyright") && is_licence("COPYING.0BSD"));
        assert!(!is_licence("license-check.sh") && !is_licence("readme.md"));
    }
}
