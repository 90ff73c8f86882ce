//! Paths of the workspace, and functions to run other programs.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use anyhow::ensure;

/// The root folder of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The folder with captures to compare with: `$GANNET_SHARED`, otherwise `shared` next to the
/// repository.
pub(crate) fn shared() -> Option<PathBuf> {
    let beside = || root().parent().map(|p| p.join("shared"));
    let path = std::env::var_os("GANNET_SHARED").map(PathBuf::from).or_else(beside)?;
    path.is_dir().then_some(path)
}

/// Appends the files of a folder and its subfolders to `files`.
pub(crate) fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Prints a message for the developer.
pub(crate) fn say(text: &str) {
    // If standard error is closed, there is no one to report to.
    writeln!(std::io::stderr(), "{text}").unwrap_or_default();
}

/// Prints a line of a result.
pub(crate) fn print(text: &str) {
    // As above.
    writeln!(std::io::stdout(), "{text}").unwrap_or_default();
}

/// Cargo, in the repository.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    command
}

/// The tests of the command in one module of `apps/gannet/tests/main.rs`.
pub(crate) fn tests_of_command(module: &str) -> Command {
    let tests = root().join("apps/gannet/tests").join(module).with_extension("rs");
    assert!(tests.is_file(), "there is no {}", tests.display());
    cargo(&["test", "--quiet", "--package", "gannet", "--test", "main", &format!("{module}::")])
}

/// Runs a command to its end; a failure is an error.
pub(crate) fn check(command: &mut Command) -> anyhow::Result<()> {
    let shown = shown(command);
    say(&format!("$ {shown}"));
    let status = command.status().with_context(|| shown.clone())?;
    ensure!(status.success(), "{shown}: {status}");
    Ok(())
}

/// A build of the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    /// What `cargo run --release` builds: ready within minutes, for what does not measure
    #[default]
    Release,
    /// What packages hold, with link-time optimization: for times and counts
    Dist,
}

impl Profile {
    /// The name of the profile and of its folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Dist => "dist",
        }
    }

    /// Builds the command; returns its path.
    pub(crate) fn build(self) -> anyhow::Result<PathBuf> {
        self.build_with("default")
    }

    /// Builds the command with these features; returns its path.
    pub(crate) fn build_with(self, features: &str) -> anyhow::Result<PathBuf> {
        let name = self.name();
        check(&mut cargo(&[
            "build",
            "--profile",
            name,
            "--package",
            "gannet",
            "--features",
            features,
        ]))?;
        Ok(target().join(name).join("gannet"))
    }
}

/// A command in the form that messages show.
pub(crate) fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_the_command_s_tests_are_known() {
        let main = root().join("apps/gannet/tests/main.rs");
        let main = fs::read_to_string(main).expect("the modules");
        for module in ["golden", "left_out"] {
            assert!(main.contains(&format!("\nmod {module};")), "{module}");
            tests_of_command(module);
        }
    }
}
