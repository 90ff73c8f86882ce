//! What the compiler is, and which `llvm-profdata` goes with it.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use anyhow::bail;

use crate::workspace;

/// An `llvm-profdata` that writes profiles as the compiler reads them.
#[derive(Debug)]
pub(super) struct Profdata(PathBuf);

impl Profdata {
    pub(super) fn command(&self) -> Command {
        Command::new(&self.0)
    }
}

/// The target that the compiler builds for by itself.
pub(super) fn host() -> anyhow::Result<String> {
    line("host: ")
}

/// Looks in `$LLVM_PROFDATA`, the compiler's own tools, and among the system's.
///
/// The format of profiles changes with LLVM: another version than the compiler's is of no use.
pub(super) fn profdata() -> anyhow::Result<Profdata> {
    let version = line("LLVM version: ")?;
    let major = version.split('.').next().unwrap_or_default();
    if let Some(path) = std::env::var_os("LLVM_PROFDATA") {
        return Ok(Profdata(path.into()));
    }
    let own = PathBuf::from(rustc(&["--print", "sysroot"])?)
        .join("lib/rustlib")
        .join(host()?)
        .join("bin/llvm-profdata");
    let places = [
        own,
        PathBuf::from(format!("/usr/lib/llvm-{major}/bin/llvm-profdata")),
        PathBuf::from(format!("llvm-profdata-{major}")),
        PathBuf::from("llvm-profdata"),
    ];
    for place in places {
        if speaks(&place, major) {
            return Ok(Profdata(place));
        }
    }
    bail!(
        "there is no llvm-profdata of LLVM {major}, the compiler's; `rustup component add llvm-tools` \
         installs it, or Debian's package llvm-{major}; $LLVM_PROFDATA names one elsewhere"
    )
}

/// Whether a program is there and of the wanted version of LLVM.
fn speaks(program: &Path, major: &str) -> bool {
    let Ok(output) = Command::new(program).args(["merge", "--version"]).output() else {
        return false;
    };
    is_version(&String::from_utf8_lossy(&output.stdout), major)
}

/// Whether a program's words of itself name a version of LLVM.
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
    fn the_compiler_tells_what_it_is() {
        assert!(host().unwrap().contains('-'));
        assert!(line("LLVM version: ").unwrap().contains('.'));
    }
}
