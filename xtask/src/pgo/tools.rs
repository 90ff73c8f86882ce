//! The compiler's version, and the matching tools of LLVM.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::workspace;

/// An `llvm-profdata` that writes profiles in the format of the compiler.
#[derive(Debug)]
pub(super) struct Profdata(PathBuf);

impl Profdata {
    pub(super) fn command(&self) -> Command {
        Command::new(&self.0)
    }
}

/// The program `llvm-bolt`, with `merge-fdata` next to it.
#[derive(Debug)]
pub(super) struct Bolt(PathBuf);

impl Bolt {
    pub(super) fn command(&self) -> Command {
        Command::new(&self.0)
    }

    /// The program that merges counts: next to `llvm-bolt`, with the same suffix.
    pub(super) fn merge(&self) -> Command {
        let name = self.0.file_name().unwrap_or_default().to_string_lossy();
        Command::new(self.0.with_file_name(name.replacen("llvm-bolt", "merge-fdata", 1)))
    }
}

/// The host target of the compiler.
pub(super) fn host() -> anyhow::Result<String> {
    line("host: ")
}

/// Searches `$LLVM_PROFDATA`, the compiler's own tools, and the system's.
///
/// The format of profiles changes with LLVM: only the compiler's version is usable.
pub(super) fn profdata() -> anyhow::Result<Profdata> {
    let major = major()?;
    let found = find("llvm-profdata", "LLVM_PROFDATA", &["merge", "--version"], &major)?;
    found.map(Profdata).with_context(|| {
        format!(
            "there is no llvm-profdata of LLVM {major}, the compiler's; `rustup component add llvm-tools` \
             installs it, or Debian's package llvm-{major}; $LLVM_PROFDATA names one elsewhere"
        )
    })
}

/// Searches for BOLT in the same way, with `$LLVM_BOLT`. It must support the code and debug
/// information of the compiler's LLVM.
pub(super) fn bolt() -> anyhow::Result<Bolt> {
    let major = major()?;
    let found = find("llvm-bolt", "LLVM_BOLT", &["--version"], &major)?;
    found.map(Bolt).with_context(|| {
        format!(
            "there is no llvm-bolt of LLVM {major}, the compiler's; Debian's package bolt-{major} installs \
             it; $LLVM_BOLT names one elsewhere"
        )
    })
}

/// The version of LLVM in the compiler.
fn major() -> anyhow::Result<String> {
    Ok(line("LLVM version: ")?.split('.').next().unwrap_or_default().to_owned())
}

/// The program in the environment variable `variable`, or else the first one with the required
/// version.
fn find(name: &str, variable: &str, says: &[&str], major: &str) -> anyhow::Result<Option<PathBuf>> {
    if let Some(path) = std::env::var_os(variable) {
        return Ok(Some(path.into()));
    }
    let own = PathBuf::from(rustc(&["--print", "sysroot"])?)
        .join("lib/rustlib")
        .join(host()?)
        .join("bin")
        .join(name);
    let places = [
        own,
        PathBuf::from(format!("/usr/lib/llvm-{major}/bin/{name}")),
        PathBuf::from(format!("{name}-{major}")),
        PathBuf::from(name),
    ];
    Ok(places.into_iter().find(|place| has_version(place, says, major)))
}

/// Whether a program exists and has the required version of LLVM.
fn has_version(program: &Path, says: &[&str], major: &str) -> bool {
    let Ok(output) = Command::new(program).args(says).output() else {
        return false;
    };
    is_version(&String::from_utf8_lossy(&output.stdout), major)
}

/// Whether the version output of a program has this version of LLVM.
fn is_version(said: &str, major: &str) -> bool {
    let mut words = said.split_whitespace();
    words.any(|w| w == "version")
        && words.next().is_some_and(|v| v.split('.').next() == Some(major))
}

fn line(name: &str) -> anyhow::Result<String> {
    let said = rustc(&["-vV"])?;
    let value = said.lines().find_map(|l| l.strip_prefix(name));
    value.map(str::to_owned).with_context(|| format!("rustc -vV says no '{name}'"))
}

fn rustc(args: &[&str]) -> anyhow::Result<String> {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(program).args(args).current_dir(workspace::root()).output();
    let output = output.context("rustc")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let said = "LLVM (http://llvm.org/):\n  LLVM version 22.1.2-rust-1.95.0-stable\n";
        assert!(is_version(said, "22"));
        assert!(!is_version(said, "2"));
        assert!(!is_version("llvm-profdata: Unknown command!\nUSAGE: llvm-profdata <merge>", "22"));
        assert!(is_version("Debian LLVM version 22.1.8", "22"));
    }

    #[test]
    fn sums_are_counted_separately() {
        let merge = |path: &str| Bolt(path.into()).merge().get_program().to_owned();
        assert_eq!(merge("/usr/lib/llvm-22/bin/llvm-bolt"), "/usr/lib/llvm-22/bin/merge-fdata");
        assert_eq!(merge("llvm-bolt-22"), "merge-fdata-22");
    }

    #[test]
    fn the_compiler_reports_its_version() {
        assert!(host().unwrap().contains('-'));
        assert!(line("LLVM version: ").unwrap().contains('.'));
    }
}
