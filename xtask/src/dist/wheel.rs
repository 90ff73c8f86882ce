//! A wheel for Python, with the command in it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use anyhow::ensure;

use super::Dist;
use super::copy;
use super::has;
use crate::workspace::check;
use crate::workspace::root;
use crate::workspace::say;
use crate::workspace::target;

pub(super) fn build(dist: &Dist, profile: &str) -> anyhow::Result<PathBuf> {
    ensure!(has("maturin"), "no maturin: pip install maturin ziglang");
    let python = root().join("bindings/python");
    copy(&dist.binary, &python.join("gannet_net.data/scripts/gannet"), 0o755)?;
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
    command.env("SOURCE_DATE_EPOCH", dist.epoch.to_string());
    command.env("CARGO_TARGET_DIR", target());
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
    check(&mut command)?;
    let entries = fs::read_dir(&stage)?.collect::<Result<Vec<_>, _>>()?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|e| e == "whl");
    let wheel = entries.iter().map(fs::DirEntry::path).find(is_wheel).context("no wheel")?;
    let to = dist.out.join(wheel.file_name().unwrap_or_default());
    copy(&wheel, &to, 0o644)?;
    Ok(to)
}
