//! `cargo xtask dist`: packages.

mod deb;
mod image;
mod licences;
mod sbom;
mod wheel;

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use anyhow::bail;
use anyhow::ensure;
use clap::ValueEnum;
use memchr::memmem;

use crate::pgo;
use crate::workspace::cargo;
use crate::workspace::check;
use crate::workspace::root;
use crate::workspace::say;
use crate::workspace::target;

const EXAMPLES: &str = "\
Examples:
  cargo xtask dist                        everything, to target/packages
  cargo xtask dist static deb image sbom  without Python
  cargo xtask dist --pgo                  optimized by how the command is used: in two builds and a training
  cargo xtask dist --profile release deb  in minutes, not optimized";

/// Build packages: a static binary, a Debian package, a wheel, an image, an SBOM, checksums
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to build; everything by default
    #[arg(value_name = "WHAT")]
    what: Vec<Target>,
    /// Where to put it
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Profile of the command
    #[arg(long, value_name = "PROFILE", default_value = "dist")]
    profile: String,
    /// Profile of the Python module
    #[arg(long, value_name = "PROFILE", default_value = "wheel")]
    wheel_profile: String,
    /// Features of the command
    #[arg(long, value_name = "FEATURES", default_value = "full")]
    features: String,
    /// Package this binary, which was built before
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Optimize the command with a profile: build it, run it over training traffic, build it again. The profile is a
    /// package of its own
    #[arg(long, conflicts_with = "binary")]
    pgo: bool,
    /// Optimize the command with this profile of an earlier --pgo
    #[arg(long, value_name = "FILE", conflicts_with_all = ["binary", "pgo"])]
    use_profile: Option<PathBuf>,
    /// How it becomes static; by default musl where its target is installed, else crt
    #[arg(long, value_name = "HOW")]
    libc: Option<Libc>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// A binary that needs no libraries
    Static,
    /// A package for Debian and Ubuntu
    Deb,
    /// A wheel for Python, with the command in it
    Wheel,
    /// An image for containers, from scratch
    Image,
    /// A list of all libraries, as CycloneDX
    Sbom,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Libc {
    /// musl: `rustup target add x86_64-unknown-linux-musl`, and musl-gcc
    Musl,
    /// glibc, linked statically
    Crt,
}

/// Data that all packages need.
pub(crate) struct Dist {
    out: PathBuf,
    version: String,
    /// Build time recorded in packages, in seconds since 1970.
    epoch: u64,
    commit: String,
    /// Features of the command.
    features: String,
    libc: Libc,
    /// The static binary, stripped.
    binary: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let all = [Target::Static, Target::Deb, Target::Wheel, Target::Image, Target::Sbom];
    let what = if args.what.is_empty() { &all[..] } else { &args.what };
    let out = args.out.clone().unwrap_or_else(|| target().join("packages"));
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let (commit, epoch) = source()?;
    let mut dist = Dist {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        binary: PathBuf::new(),
        features: args.features.clone(),
        libc: args.libc.unwrap_or_else(libc),
        out,
        epoch,
        commit,
    };
    let mut packages = Vec::new();
    if what.iter().any(|what| *what != Target::Sbom) {
        let counts = if args.pgo { Some(dist.train(args)?) } else { args.use_profile.clone() };
        dist.binary = binary(args, &dist, counts.as_deref())?;
        packages.extend(counts.filter(|_| args.pgo));
    }
    for what in what {
        packages.push(match what {
            Target::Static => dist.archive()?,
            Target::Deb => deb::build(&dist)?,
            Target::Wheel => wheel::build(&dist, &args.wheel_profile)?,
            Target::Image => image::build(&dist)?,
            Target::Sbom => sbom::build(&dist)?,
        });
    }
    checksums(&dist.out, &packages)
}

/// The commit that is built, and its time, or `SOURCE_DATE_EPOCH` if that is set.
fn source() -> anyhow::Result<(String, u64)> {
    let git = |args: &[&str]| -> anyhow::Result<String> {
        let output = Command::new("git").current_dir(root()).args(args).output().context("git")?;
        ensure!(output.status.success(), "git {}: {}", args.join(" "), output.status);
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    let mut commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    if !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
        commit.push_str("-modified");
    }
    let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(epoch) => epoch,
        Err(_) => git(&["log", "-1", "--format=%ct"])?,
    };
    Ok((commit, epoch.parse().context("SOURCE_DATE_EPOCH")?))
}

/// The command, static and stripped.
fn binary(args: &Args, dist: &Dist, counts: Option<&Path>) -> anyhow::Result<PathBuf> {
    let built = match (&args.binary, counts) {
        (Some(binary), _) => binary.clone(),
        (None, Some(counts)) => {
            let counts = named(counts)?;
            build(args, dist, Some(format!("-Cprofile-use={}", counts.display())))?
        }
        (None, None) => build(args, dist, None)?,
    };
    find_paths(&built)?;
    let stripped = dist.out.join("gannet");
    fs::copy(&built, &stripped).with_context(|| built.display().to_string())?;
    let mut strip = Command::new("strip");
    strip.arg("--strip-all");
    if dist.libc == Libc::Musl {
        // The standard library has unwind tables, and code optimized together with it gets them,
        // too.
        for section in [".eh_frame", ".eh_frame_hdr", ".gcc_except_table"] {
            strip.arg("--remove-section").arg(section);
        }
    }
    check(strip.arg(&stripped))?;
    Ok(stripped)
}

/// Copies a profile to an absolute path, since the compiler runs in other folders. The file name has a hash of the contents:
/// cargo builds again if flags change, not if files do.
fn named(counts: &Path) -> anyhow::Result<PathBuf> {
    let copy = pgo::folder().join("package.profdata");
    fs::create_dir_all(pgo::folder())?;
    fs::copy(counts, &copy).with_context(|| counts.display().to_string())?;
    pgo::named(&copy)
}

/// Builds the command, with an additional flag of rustc.
fn build(args: &Args, dist: &Dist, flag: Option<String>) -> anyhow::Result<PathBuf> {
    let arch = std::env::consts::ARCH;
    let triple = match dist.libc {
        Libc::Musl => format!("{arch}-unknown-linux-musl"),
        Libc::Crt => format!("{arch}-unknown-linux-gnu"),
    };
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    flags.extend(without_paths());
    flags.extend(flag);
    if dist.libc == Libc::Musl {
        // Nothing unwinds: panics abort, and neither musl nor its LuaJIT needs tables for it. (glibc's LuaJIT does.)
        flags.push("-Cforce-unwind-tables=no".to_owned());
        // Relocations of a few bytes instead of 24, supported by musl since 1.2.4.
        flags.push("-Clink-arg=-Wl,-z,pack-relative-relocs".to_owned());
    }
    let mut c_flags = c_flags();
    let mut command = cargo(&["build", "--locked", "--package", "gannet"]);
    command.args(["--profile", &args.profile, "--features", &args.features, "--target", &triple]);
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    command.env("GANNET_COMMIT", &dist.commit);
    command.env("GANNET_PROFILE", &args.profile);
    command.env("SOURCE_DATE_EPOCH", dist.epoch.to_string());
    let name = triple.replace('-', "_");
    if dist.libc == Libc::Musl {
        command.env(format!("CC_{name}"), "musl-gcc");
        // gcc's unwinder requires glibc; LuaJIT does not need it for its errors.
        c_flags.push_str(" -DLUAJIT_NO_UNWIND");
    }
    // The flags of .cargo/config.toml still apply: cc combines both.
    command.env(format!("CFLAGS_{name}"), c_flags);
    check(&mut command)?;
    Ok(target().join(&triple).join(folder(&args.profile)).join("gannet"))
}

/// Folders of this machine, and their replacements in build outputs, so that other machines build
/// the same bytes.
fn prefixes() -> [(PathBuf, &'static str); 3] {
    let home = std::env::var("CARGO_HOME").map_or_else(
        |_| PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    );
    // The last matching prefix applies, for files generated by build scripts.
    [(root(), "/gannet"), (home, "/cargo"), (root().join(target()), "/gannet/target")]
}

/// Flags of rustc that remove the paths of this machine.
fn without_paths() -> [String; 3] {
    prefixes().map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()))
}

/// Flags of C compilers that remove the paths of this machine, including those in debug
/// information: that is stripped, but the remaining build id is a hash of it. Debug builds also
/// enable frame pointers, which are not needed.
fn c_flags() -> String {
    let flag =
        |(path, name): (PathBuf, &str)| format!("-ffile-prefix-map={}={name}", path.display());
    // C flags are split at spaces, and LuaJIT's makefile does not quote them.
    let flags = prefixes().into_iter().map(flag).filter(|flag| !flag.contains(char::is_whitespace));
    flags.chain(["-fomit-frame-pointer".to_owned()]).collect::<Vec<_>>().join(" ")
}

/// Reports paths of this machine in a built file, which make its bytes depend on the folder.
fn find_paths(built: &Path) -> anyhow::Result<()> {
    let bytes = fs::read(built).with_context(|| built.display().to_string())?;
    for (path, _) in prefixes() {
        let path = path.display().to_string();
        if memmem::find(&bytes, path.as_bytes()).is_some() {
            say(&format!("note: {} has paths of {path}: it is not reproducible", built.display()));
        }
    }
    Ok(())
}

fn folder(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

/// The C library that is linked statically by default.
fn libc() -> Libc {
    let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    if has_target(&musl) && has("musl-gcc") { Libc::Musl } else { Libc::Crt }
}

fn has_target(triple: &str) -> bool {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    sysroot.is_some_and(|root| Path::new(root.trim()).join("lib/rustlib").join(triple).is_dir())
}

/// Whether a program with this name is installed.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

impl Dist {
    /// Architecture in Rust's naming.
    fn arch(&self) -> &'static str {
        std::env::consts::ARCH
    }

    /// Architecture in the naming of Debian and containers.
    fn debian_arch(&self) -> &'static str {
        match self.arch() {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        }
    }

    /// Trains the command and writes the profile next to the packages, so that others can build the same bytes.
    fn train(&self, args: &Args) -> anyhow::Result<PathBuf> {
        let counts = self.out.join(format!("gannet-{}-{}.profdata", self.version, self.arch()));
        let instrumented =
            |raw: &Path| build(args, self, Some(format!("-Cprofile-generate={}", raw.display())));
        pgo::train(&pgo::folder(), instrumented, &[], &counts)?;
        Ok(counts)
    }

    /// An empty folder in which to assemble a package.
    fn stage(&self, name: &str) -> anyhow::Result<PathBuf> {
        let stage = self.out.join("stage").join(name);
        if stage.exists() {
            fs::remove_dir_all(&stage)?;
        }
        fs::create_dir_all(&stage).with_context(|| stage.display().to_string())?;
        Ok(stage)
    }

    /// The static binary, man pages and completions as an archive.
    fn archive(&self) -> anyhow::Result<PathBuf> {
        let name = format!("gannet-{}-{}-linux", self.version, self.arch());
        let stage = self.stage("static")?;
        let dir = stage.join(&name);
        copy(&self.binary, &dir.join("gannet"), 0o755)?;
        self.manuals(&dir.join("man"))?;
        self.completions(&dir.join("completions"))?;
        copy(&root().join("LICENSE"), &dir.join("LICENSE"), 0o644)?;
        write(&dir.join("THIRD-PARTY"), &licences::text(self, false)?, 0o644)?;
        let to = self.out.join(format!("{name}.tar.xz"));
        self.tar(&stage, &name, &to, "--xz")?;
        Ok(to)
    }

    /// Writes a tar archive that depends only on the contents of the files.
    fn tar(&self, dir: &Path, what: &str, to: &Path, compression: &str) -> anyhow::Result<()> {
        let mut tar = Command::new("tar");
        tar.arg("--create").arg("--file").arg(to).arg(compression).arg("--directory").arg(dir);
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
        tar.arg(format!("--mtime=@{}", self.epoch)).arg(what);
        check(&mut tar)
    }

    fn manuals(&self, dir: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(dir)?;
        check(Command::new(&self.binary).arg("man").arg("--out").arg(dir))
    }

    fn completions(&self, dir: &Path) -> anyhow::Result<()> {
        for (shell, name) in [("bash", "gannet"), ("zsh", "_gannet"), ("fish", "gannet.fish")] {
            let output = Command::new(&self.binary).args(["completions", shell]).output()?;
            ensure!(output.status.success(), "gannet completions {shell}: {}", output.status);
            write(&dir.join(name), &String::from_utf8(output.stdout)?, 0o644)?;
        }
        Ok(())
    }
}

/// Writes a file with these permissions, and the folders above it.
fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text).with_context(|| path.display().to_string())?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn copy(from: &Path, to: &Path, mode: u32) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// The SHA-256 of a file, as hexadecimal digits.
fn sha256(path: &Path) -> anyhow::Result<String> {
    let output = Command::new("sha256sum").arg(path).output().context("sha256sum")?;
    ensure!(output.status.success(), "sha256sum {}: {}", path.display(), output.status);
    let text = String::from_utf8(output.stdout)?;
    match text.split_whitespace().next() {
        Some(sum) => Ok(sum.trim_start_matches('\\').to_owned()),
        None => bail!("sha256sum {} says nothing", path.display()),
    }
}

/// Writes the checksums of all packages, and prints their sizes.
fn checksums(out: &Path, packages: &[PathBuf]) -> anyhow::Result<()> {
    let mut text = String::new();
    for path in packages {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        text.push_str(&format!("{}  {name}\n", sha256(path)?));
        say(&format!("{:>12} bytes  {}", fs::metadata(path)?.len(), path.display()));
    }
    write(&out.join("SHA256SUMS"), &text, 0o644)
}
