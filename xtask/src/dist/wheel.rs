//! A wheel for Python, with the command in it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use anyhow::ensure;

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
    copy(&wheel, &to, 0o644)?;
    if has("advzip") {
        // The same files in the same format, packed by trying more.
        let more = ["--recompress", "--shrink-insane", "--iter", "5", "--quiet"];
        check(Command::new("advzip").args(more).arg(&to))?;
    } else {
        say("note: advzip (of advancecomp) would make the wheel 3 % smaller");
    }
    Ok(to)
}
