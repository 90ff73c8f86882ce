//! `cargo xtask pgo`: a release build with profile-guided optimization.
//!
//! The compiler first builds an instrumented command ([`Variant::instrumented`]). This command
//! analyses training traffic ([`mod@training`]), and the compiler builds again with the resulting
//! counts. Everything is built for a named target, since flags then do not apply to build scripts,
//! and in a separate folder, since every set of flags is a separate build.
//!
//! If BOLT is installed, it optimises the [layout] of that build with a training of its
//! own.
//!
//! `--table` builds the variants of the published study (plain, link-time optimization, profile,
//! both; for any processor and for this one), and both with BOLT, and measures all on the given
//! traces.

mod layout;
mod table;
mod tools;
mod training;

use std::fs;
use std::hash::DefaultHasher;
use std::hash::Hasher;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::ensure;

use crate::bench;
use crate::workspace;
use crate::workspace::cargo;
use crate::workspace::check;
use crate::workspace::print;
use crate::workspace::say;

/// Build gannet with link-time and profile-guided optimization, and BOLT if it is installed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Train with these captures, too
    #[arg(long, value_name = "CAPTURE")]
    train: Vec<PathBuf>,
    /// For this machine's processor only
    #[arg(long)]
    native: bool,
    /// Build plain, LTO, PGO, PGO+LTO and that with BOLT, each for any and for this processor, and measure
    /// them
    #[arg(long, num_args = 1.., value_name = "TRACE", conflicts_with = "native")]
    table: Vec<PathBuf>,
    /// Only these builds, like plain,pgo+lto-native
    #[arg(long, value_delimiter = ',', value_name = "NAMES", requires = "table")]
    only: Vec<String>,
    /// Reuse existing builds, and training counts
    #[arg(long)]
    reuse: bool,
    /// Runs a build and trace, of which the median counts
    #[arg(long, default_value_t = 7, requires = "table")]
    runs: usize,
    /// Keep the table in benchsuite/pgo.md
    #[arg(long, requires = "table")]
    keep: bool,
}

/// A variant of the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Variant {
    /// Link-time optimization, as in the release; otherwise cargo's default.
    lto: bool,
    /// Whether it is compiled with the profile of the training.
    profile: bool,
    /// Whether its machine code is rearranged after linking.
    layout: bool,
    /// Whether it is compiled for this machine's processor.
    native: bool,
}

impl Variant {
    fn all() -> impl Iterator<Item = Self> {
        let kind = |lto, profile, layout| Self { lto, profile, layout, native: false };
        let kinds = [
            kind(false, false, false),
            kind(true, false, false),
            kind(false, true, false),
            kind(true, true, false),
            kind(true, true, true),
        ];
        [false, true].into_iter().flat_map(move |native| kinds.map(|k| Self { native, ..k }))
    }

    fn name(self) -> String {
        let kind = match (self.lto, self.profile) {
            (false, false) => "plain",
            (true, false) => "lto",
            (false, true) => "pgo",
            (true, true) => "pgo+lto",
        };
        let layout = if self.layout { "+bolt" } else { "" };
        let native = if self.native { "-native" } else { "" };
        format!("{kind}{layout}{native}")
    }

    fn path(self) -> PathBuf {
        folder().join(format!("gannet-{}", self.name()))
    }

    /// The path of its training's counts. A profile contains the compiler's function names, which
    /// differ between builds with and without link-time optimization.
    fn counts(self) -> PathBuf {
        folder().join(if self.lto { "lto.profdata" } else { "plain.profdata" })
    }

    /// Builds the variant and its prerequisites.
    fn build(self, args: &Args) -> anyhow::Result<PathBuf> {
        let path = self.path();
        let (note, commit) = (path.with_extension("commit"), bench::commit());
        if args.reuse && path.is_file() {
            is_of(&note, &commit)?;
            return Ok(path);
        }
        // Missing tools are reported before minutes of building.
        let bolt = self.layout.then(tools::bolt).transpose()?;
        let mut flags = Vec::new();
        if self.profile {
            let counts = self.counts();
            // Builds that differ only in later steps share them.
            if !counts.is_file() {
                self.train(&args.train)?;
            }
            flags.push(format!("-Cprofile-use={}", named(&counts)?.display()));
        }
        if self.native {
            flags.push("-Ctarget-cpu=native".to_owned());
        }
        if let Some(bolt) = bolt {
            flags.push(layout::KEEP_RELOCATIONS.to_owned());
            let linked = self.compile(&flags)?;
            layout::arrange(&bolt, &linked, &path, &args.train)?;
        } else {
            fs::copy(self.compile(&flags)?, &path).with_context(|| path.display().to_string())?;
        }
        fs::write(&note, commit).with_context(|| note.display().to_string())?;
        Ok(path)
    }

    /// Builds a command that records the branches it takes.
    fn instrumented(self, raw: &Path) -> anyhow::Result<PathBuf> {
        self.compile(&[format!("-Cprofile-generate={}", raw.display())])
    }

    fn train(self, more: &[PathBuf]) -> anyhow::Result<()> {
        train(&folder(), |raw| self.instrumented(raw), more, &self.counts())
    }

    fn compile(self, flags: &[String]) -> anyhow::Result<PathBuf> {
        let target = tools::host()?;
        let folder = folder();
        let mut command =
            cargo(&["build", "--profile", "dist", "--package", "gannet", "--target", &target]);
        command.arg("--target-dir").arg(folder.join("build"));
        // The separator of encoded flags, which permits paths with spaces.
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).env_remove("RUSTFLAGS");
        if !self.lto {
            // The default of cargo's own release profile.
            command.env("CARGO_PROFILE_DIST_LTO", "false");
            command.env("CARGO_PROFILE_DIST_CODEGEN_UNITS", "16");
        }
        say(&format!("{}: {}", self.name(), flags.join(" ")));
        check(&mut command)?;
        Ok(folder.join("build").join(target).join("dist/gannet"))
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    fs::create_dir_all(folder())?;
    if !args.reuse {
        remove_counts()?;
    }
    if !args.table.is_empty() {
        return table::run(args);
    }
    let layout = tools::bolt().map_err(|error| say(&format!("skipped: bolt: {error}"))).is_ok();
    let release = Variant { lto: true, profile: true, layout, native: args.native };
    let built = release.build(args)?;
    // The build must still produce the same logs.
    let same = training::agree(&built, &workspace::root().join("examples/sample.pcap"))?;
    ensure!(same, "{}: its logs of the sample differ from the golden ones", built.display());
    print(&built.display().to_string());
    Ok(())
}

/// Builds an instrumented command with `build`, whose argument is the folder for its counts; runs
/// it over the training traffic and these captures, and writes the merged counts to the file
/// `counts`. All other files are in `folder`.
pub(crate) fn train(
    folder: &Path,
    build: impl FnOnce(&Path) -> anyhow::Result<PathBuf>,
    captures: &[PathBuf],
    counts: &Path,
) -> anyhow::Result<()> {
    let merge = tools::profdata()?;
    let raw = folder.join("raw");
    // Counts of earlier builds would be merged, too.
    if raw.exists() {
        fs::remove_dir_all(&raw).with_context(|| raw.display().to_string())?;
    }
    let command = build(&raw)?;
    training::run(&command, &folder.join("training"), captures)?;
    check(merge.command().arg("merge").arg("-o").arg(counts).arg(&raw))
}

/// Checks that a build, whose commit is in the file `note`, is one of the commit that is checked
/// out, for which figures are reported.
fn is_of(note: &Path, commit: &str) -> anyhow::Result<()> {
    let built = fs::read_to_string(note).unwrap_or_default();
    ensure!(
        built == commit,
        "{}: built from '{built}', and this is '{commit}': build anew without --reuse",
        note.display()
    );
    Ok(())
}

/// A copy with a name derived from its contents: cargo rebuilds only if flags change, not if the
/// counts do.
pub(crate) fn named(counts: &Path) -> anyhow::Result<PathBuf> {
    let bytes = fs::read(counts).with_context(|| counts.display().to_string())?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    let named = counts.with_extension(format!("{:016x}.profdata", hasher.finish()));
    fs::write(&named, bytes).with_context(|| named.display().to_string())?;
    Ok(named)
}

/// Removes the counts of earlier trainings.
fn remove_counts() -> anyhow::Result<()> {
    for counts in Variant::all().map(Variant::counts) {
        if counts.is_file() {
            fs::remove_file(&counts).with_context(|| counts.display().to_string())?;
        }
    }
    Ok(())
}

/// The folder of profiles and builds, as an absolute path, since the compiler runs in other
/// folders.
pub(crate) fn folder() -> PathBuf {
    let folder = workspace::target().join("pgo");
    std::path::absolute(&folder).unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_named_by_their_contents() {
        let folder = std::env::temp_dir().join(format!("gannet-counts-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let counts = folder.join("lto.profdata");
        let name = |bytes: &[u8]| {
            fs::write(&counts, bytes).unwrap();
            named(&counts).unwrap()
        };
        let (first, second, again) = (name(b"one"), name(b"two"), name(b"one"));
        assert_eq!((fs::read(&first).unwrap(), &first), (b"one".to_vec(), &again));
        assert_ne!(first, second);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn builds_of_another_commit_are_not_reused() {
        let note = std::env::temp_dir().join(format!("gannet-note-{}.commit", std::process::id()));
        assert!(is_of(&note, "abc").is_err(), "nothing is known of it");
        fs::write(&note, "abc").unwrap();
        assert!(is_of(&note, "abc").is_ok());
        let said = is_of(&note, "abc-dirty").unwrap_err().to_string();
        assert!(said.contains("'abc', and this is 'abc-dirty'"), "{said}");
        fs::remove_file(note).unwrap();
    }

    #[test]
    fn builds_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = Variant::all().map(Variant::name).collect();
        assert_eq!(names.len(), 10);
        assert!(Variant::all().all(|v| v.name().ends_with("native") == v.native));
        assert!(names.contains("plain") && names.contains("pgo+lto+bolt-native"));
    }
}
