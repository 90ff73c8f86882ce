//! Removes the tables for stack unwinding, a tenth of the bytes, from builds that do not need them.
//!
//! Profile `release` has no symbols, and its panics end the process where they occur. A linker removes the tables if
//! a linker script is among its libraries. A small program tests whether this linker and this C library permit that: if it
//! does not link, does not start or cannot make a backtrace, the build keeps its tables.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

/// A linker script that discards the tables for unwinding. The linker finds it under the name of a library, and adds it to
/// its own script.
const SCRIPT: &str = "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.gcc_except_table .gcc_except_table.*) } }\nINSERT AFTER .text;\n";

/// A program that links the script as `src/main.rs` does, and makes a backtrace, which reads the tables.
const TRIAL: &str = r#"
#[link(name = "gannet_no_unwind", kind = "dylib")]
unsafe extern "C" {}

fn main() {
    let thread = std::thread::spawn(|| std::backtrace::Backtrace::force_capture().to_string());
    let text = thread.join().map_err(drop);
    std::process::exit(if text.is_ok() { 7 } else { 1 });
}
"#;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(no_unwind_tables)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    let Some(folder) = env::var_os("OUT_DIR") else { return };
    let folder = Path::new(&folder);
    if is_small() && trial_works(folder).unwrap_or(false) {
        println!("cargo::rustc-cfg=no_unwind_tables");
        println!("cargo::rustc-link-search=native={}", folder.display());
    }
}

/// Whether the build has no symbols, is for this machine, and calls no library whose errors unwind the stack, like LuaJIT.
fn is_small() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|v| v == value);
    let has =
        |list: &str, word: &str| env::var(list).is_ok_and(|v| v.split(',').any(|w| w == word));
    is("PROFILE", "release")
        && is("DEBUG", "false")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && !has("CARGO_CFG_TARGET_FEATURE", "crt-static")
        && env::var_os("CARGO_FEATURE_LUA").is_none()
        && env::var("HOST").is_ok_and(|host| is("TARGET", &host))
}

/// Whether a program that is linked with the script starts and can make a backtrace, even an incomplete one.
fn trial_works(folder: &Path) -> Result<bool, Box<dyn Error>> {
    fs::write(folder.join("libgannet_no_unwind.so"), SCRIPT)?;
    let source = folder.join("trial.rs");
    fs::write(&source, TRIAL)?;
    let program = folder.join("trial");
    let mut rustc = Command::new(env::var_os("RUSTC").ok_or("no compiler")?);
    rustc.args(["--edition=2024", "--crate-type=bin", "-Cpanic=abort", "-Cstrip=symbols"]);
    rustc.arg("-L").arg(folder).arg("-o").arg(&program).arg(&source);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", linker.to_string_lossy()));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    let quiet = |command: &mut Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    let linked = quiet(&mut rustc)?.success();
    Ok(linked && quiet(&mut Command::new(&program))?.code() == Some(7))
}
