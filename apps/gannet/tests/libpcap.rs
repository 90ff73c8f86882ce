//! libpcap's own test driver, unmodified, over `gannet filter test-protocol`; `LIBPCAP_SOURCE`
//! names its source folder. The driver is a program in Perl and takes some minutes.
//!
//! Most of its cases for names need certain lines in the system's files of names. Where a mount namespace can be
//! created, the test mounts files with these lines over the system's; elsewhere the driver skips such cases.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support::Run;

/// Files of names that need certain lines, and the array of the driver that contains these lines.
const NAMES: [(&str, &str); 3] =
    [("hosts", "@hosts_lines"), ("ethers", "@ethers_lines"), ("networks", "@networks_lines")];

/// Other files of /etc that programs need.
const COPIED: [&str; 4] = ["services", "protocols", "nsswitch.conf", "ld.so.cache"];

/// Cases about captures that libpcap does not open: they test the reader, not a filter.
const READER_CASES: [&str; 6] = [
    "reject_pcap_invalid_version_1",
    "reject_pcap_invalid_version_2",
    "reject_pcap_linktype_reserved_field_not_zero",
    "reject_pcapng_invalid_version_1",
    "reject_pcapng_invalid_version_2",
    "reject_shb_option_too_long",
];

/// Prefix of the cases that print all BPF instructions, which test no filter.
const IMAGE: &str = "accept_bpf_image_";

fn say(words: &str) {
    std::io::stderr().write_all(words.as_bytes()).unwrap();
}

/// The lines of an array in the source of the driver.
fn lines<'a>(driver: &'a str, array: &str) -> &'a str {
    let begin = driver.find(&format!("my {array} = ")).unwrap();
    let text = &driver[begin..];
    let (_, text) = text.split_once("<<EOF;\n").unwrap();
    text.split_once("EOF\n").unwrap().0
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

/// Labels of the failed cases, each with the reason that the driver prints.
fn failures(output: &str) -> Vec<(&str, &str)> {
    let (_, failed) = output.split_once("Failed tests:\n").unwrap_or_default();
    // Lines without indentation are differences between programs.
    let cases = failed.lines().filter(|l| l.starts_with("    ")).filter_map(|l| l.split_once(':'));
    cases.map(|(label, reason)| (label.trim(), reason.trim())).collect()
}

#[test]
fn filters_are_accepted_and_rejected_as_by_libpcap() {
    let Some(source) = std::env::var_os("LIBPCAP_SOURCE").map(PathBuf::from) else {
        return say("skipped: LIBPCAP_SOURCE is not set to the folder of libpcap's source\n");
    };
    let script = source.join("testprogs/TESTrun");
    let driver = fs::read(&script).unwrap();
    let driver = String::from_utf8_lossy(&driver);
    let folder = std::env::temp_dir().join(format!("gannet-libpcap-{}", std::process::id()));
    let folder = Folder(folder);
    let etc = folder.0.join("etc");
    fs::create_dir_all(&etc).unwrap();
    for name in COPIED {
        let _ = fs::copy(Path::new("/etc").join(name), etc.join(name));
    }
    for (name, array) in NAMES {
        let own = fs::read_to_string(Path::new("/etc").join(name)).unwrap_or_default();
        fs::write(etc.join(name), format!("{own}\n{}", lines(&driver, array))).unwrap();
    }
    let config = folder.0.join("config.h");
    fs::write(&config, "#define HAVE_GLIBC 1\n#define HAVE_DECL_SKF_AD_VLAN_TAG_PRESENT 1\n")
        .unwrap();
    let program = folder.0.join("filtertest");
    let gannet = env!("CARGO_BIN_EXE_gannet");
    let text = format!("#!/bin/sh\nexec '{gannet}' filter test-protocol \"$@\"\n");
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();

    let mounted = |flags: &'static str| {
        let mut command = Command::new("unshare");
        command.args([flags, "sh", "-c", "mount --bind \"$0\" /etc && exec \"$@\""]).arg(&etc);
        command
    };
    let can = |flags: &&'static str| Run::of(mounted(flags).arg("true")).code == 0;
    let mut command = match ["-m", "-rm"].into_iter().find(can) {
        Some(flags) => {
            let mut command = mounted(flags);
            command.arg("perl");
            command
        }
        None => {
            say("no mount namespace can be created: cases for names are skipped\n");
            Command::new("perl")
        }
    };
    // The driver's second test program calls functions of libpcap: its cases fail, and are left out below.
    command
        .arg(&script)
        .current_dir(&source)
        .env("CONFIG_H", &config)
        .env("FILTERTEST_BIN", &program)
        .env("TRANSLATETEST_BIN", "true")
        .env("TEST_TIMEOUT", "20");
    let run = Run::of(&mut command);
    let output = run.stdout;
    for line in output.lines().filter(|l| l.contains(" tests ")) {
        say(&format!("{line}\n"));
    }
    let count = |what: &str| -> usize {
        let line = output.lines().find(|l| l.contains(what)).unwrap_or_default();
        line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    assert!(count("tests passed") > 10_000, "{}{output}", run.stderr);
    let failures = failures(&output);
    assert_eq!(failures.len(), count("tests failed"));
    let is_ours = |label: &str| {
        let other = label.contains("_parse_") || label.starts_with(IMAGE);
        !other && !READER_CASES.contains(&label)
    };
    let ours: Vec<_> = failures.iter().filter(|(label, _)| is_ours(label)).collect();
    // Accepted filters may compile to other instructions with the same effect.
    let (others, wrong): (Vec<&(&str, &str)>, Vec<_>) =
        ours.into_iter().partition(|(l, why)| l.starts_with("accept_") && *why == "diff error");
    say(&format!("{} programs in other instructions\n", others.len()));
    assert!(wrong.is_empty(), "{wrong:#?}");
}
