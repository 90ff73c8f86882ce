//! A wheel for Python, with the command in it.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use anyhow::ensure;
use zip::CompressionMethod;
use zip::ZipArchive;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::Dist;
use super::c_flags;
use super::copy;
use super::has;
use super::licences;
use super::sbom;
use super::without_paths;
use super::write;
use crate::workspace::check;
use crate::workspace::root;
use crate::workspace::say;
use crate::workspace::target;

/// The level of [`ZipWriter`] that is Zopfli, with five iterations.
const ZOPFLI: i64 = 14;

/// Where pip puts texts, below the environment.
const DOC: &str = "data/share/doc/gannet-net";

pub(super) fn build(dist: &Dist, profile: &str) -> anyhow::Result<PathBuf> {
    ensure!(has("maturin"), "no maturin: pip install maturin ziglang");
    let python = root().join("bindings/python");
    let data = python.join("gannet_net.data");
    copy(&dist.binary, &data.join("scripts/gannet"), 0o755)?;
    write(&data.join(DOC).join("THIRD-PARTY"), &licences::text(dist, true)?, 0o644)?;
    let stage = dist.stage("wheel")?;
    let mut command = Command::new("maturin");
    command.current_dir(&python).args([
        "build",
        "--locked",
        "--profile",
        profile,
        "--strip",
        "--compression-level",
        "9",
        "--out",
    ]);
    command.arg(&stage);
    // maturin's own has paths of this machine.
    let libraries = dist.stage("wheel-sbom")?.join("gannet.cdx.json");
    sbom::write_to(dist, true, &libraries)?;
    command.arg("--sbom-include").arg(&libraries);
    command.env("SOURCE_DATE_EPOCH", dist.epoch.to_string());
    command.env("CARGO_TARGET_DIR", target());
    command.env("CARGO_ENCODED_RUSTFLAGS", without_paths().join("\u{1f}"));
    // Nothing unwinds through C.
    let c_flags = c_flags() + " -fno-asynchronous-unwind-tables -fno-unwind-tables";
    command.env(format!("CFLAGS_{}_unknown_linux_gnu", dist.arch()), c_flags);
    // zig links against the C library of old distributions.
    let has_zig = Command::new("python3")
        .args(["-c", "import ziglang"])
        .output()
        .is_ok_and(|output| output.status.success());
    match has_zig {
        true => command.args(["--zig", "--compatibility", "manylinux_2_17"]),
        false => {
            say("note: without zig (pip install ziglang) the wheel is for this system's C library");
            command.args(["--compatibility", "linux"])
        }
    };
    let built = check(&mut command);
    // What `pip install ./bindings/python` builds later has no command of today.
    fs::remove_dir_all(data.join("scripts"))?;
    fs::remove_file(data.join(DOC).join("THIRD-PARTY"))?;
    built?;
    let entries = fs::read_dir(&stage)?.collect::<Result<Vec<_>, _>>()?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|e| e == "whl");
    let wheel = entries.iter().map(fs::DirEntry::path).find(is_wheel).context("no wheel")?;
    let to = dist.out.join(wheel.file_name().unwrap_or_default());
    repack(File::open(&wheel)?, File::create(&to)?)
        .with_context(|| format!("packing {} again", wheel.display()))?;
    Ok(to)
}

/// Packs the files of a wheel again in the same order, with the same times and permissions: Zopfli searches for shorter
/// deflate streams, which make it 3 % smaller.
fn repack(from: impl Read + Seek, to: impl Write + Seek) -> anyhow::Result<()> {
    let mut archive = ZipArchive::new(from)?;
    let mut writer = ZipWriter::new(to);
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let mut options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(ZOPFLI));
        if let Some(time) = entry.last_modified() {
            options = options.last_modified_time(time);
        }
        if let Some(mode) = entry.unix_mode() {
            options = options.unix_permissions(mode);
        }
        writer.start_file(entry.name()?, options)?;
        io::copy(&mut entry, &mut writer)?;
    }
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn a_repacked_wheel_has_the_same_files() {
        let text: String = (0..20_000_u64).map(|n| format!("{} ", n * n % 1_001)).collect();
        let files = [
            ("a/text.py", text.as_bytes(), 0o644),
            ("a/empty", b"", 0o644),
            ("command", b"#!", 0o755),
        ];
        let (mut from, mut to) = (Cursor::new(Vec::new()), Cursor::new(Vec::new()));
        let mut writer = ZipWriter::new(&mut from);
        for (name, bytes, mode) in files {
            let options = SimpleFileOptions::default().unix_permissions(mode);
            writer
                .start_file(name, options.compression_method(CompressionMethod::Deflated))
                .unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap();
        repack(&mut from, &mut to).unwrap();
        let mut archive = ZipArchive::new(&mut to).unwrap();
        assert_eq!(archive.len(), files.len());
        for (at, (name, bytes, mode)) in files.into_iter().enumerate() {
            let mut entry = archive.by_index(at).unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            assert_eq!((&*entry.name().unwrap(), &content[..]), (name, bytes));
            assert_eq!(entry.unix_mode().map(|mode| mode & 0o777), Some(mode));
        }
        let (before, after) = (from.get_ref().len(), to.get_ref().len());
        assert!(after < before, "{before} bytes, and {after} packed again");
    }
}
