//! `gannet analyze trace.pcap detect.zeek`: the same as `gannet zeek -r trace.pcap detect.zeek`.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::num::NonZero;
use std::path::PathBuf;

use clap::parser::ValueSource;
use gannet_script::command::is_script;

use crate::cli;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Options of `gannet analyze` that also apply to scripts. Scripts run in one thread, in the order of packets.
const SUPPORTED: [&str; 10] = [
    "files",
    "filter",
    "json",
    "no_checksums",
    "out",
    "quiet",
    "read",
    "stats",
    "threads",
    "verbose",
];

/// The arguments of the command zeek, where the arguments of `gannet analyze` name scripts. `None` where they name none.
///
/// # Errors
/// The exit code, where an option cannot be used with scripts; it is reported.
pub(crate) fn arguments(args: &[OsString]) -> Option<Result<Vec<OsString>, Outcome>> {
    let args = cli::with_analyze(args.to_vec());
    let is_analyze = args.get(1).is_some_and(|command| command == "analyze");
    if !is_analyze || !args.iter().skip(2).any(|arg| may_name_scripts(arg)) {
        return None;
    }
    let command = cli::declaration();
    let matches = command.try_get_matches_from(&args).ok()?;
    let (_, matches) = matches.subcommand()?;
    let paths = |id: &str| -> Vec<PathBuf> {
        matches.get_many::<PathBuf>(id).into_iter().flatten().cloned().collect()
    };
    let mut captures = paths("read");
    let is_read = !captures.is_empty();
    let (scripts, files): (Vec<_>, Vec<_>) =
        paths("files").into_iter().partition(|path| is_script(path, is_read));
    captures.extend(files);
    if scripts.is_empty() {
        return None;
    }
    let terminal = Terminal::new(false);
    let refuse = |words: &str| {
        terminal.error(&words);
        Some(Err(Outcome::NoCapture))
    };
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let declared = cli::declaration();
    let mut ids =
        declared.find_subcommand("analyze")?.get_arguments().map(|arg| arg.get_id().as_str());
    if let Some(id) = ids.find(|id| given(id) && !SUPPORTED.contains(id)) {
        let option = id.replace('_', "-");
        return refuse(&format!(
            "--{option} cannot be used with scripts, because scripts write the logs"
        ));
    }
    let [capture] = captures.as_slice() else {
        return refuse(
            "scripts run over one capture, for example: gannet analyze trace.pcap detect.zeek",
        );
    };
    let mut zeek: Vec<OsString> = vec!["--diagnostics=rich".into()];
    if matches.get_flag("no_checksums") {
        zeek.push("-C".into());
    }
    if let Some(threads) = matches.get_one::<NonZero<u8>>("threads") {
        zeek.push(format!("--threads={threads}").into());
    }
    if matches.get_flag("verbose") {
        zeek.push("--verbose".into());
    }
    zeek.extend(["-r".into(), capture.into()]);
    if let Some(filter) = matches.get_one::<String>("filter") {
        zeek.extend(["-f".into(), filter.into()]);
    }
    zeek.extend(scripts.into_iter().map(PathBuf::into_os_string));
    if matches.get_flag("json") {
        zeek.push("LogAscii::use_json=T".into());
    }
    if given("out") {
        let out = matches.get_one::<PathBuf>("out")?;
        if let Err(error) = fs::create_dir_all(out) {
            return refuse(&format!("{}: {error}", out.display()));
        }
        let mut option = OsString::from("Log::default_logdir=");
        option.push(out);
        zeek.push(option);
    }
    Some(Ok(zeek))
}

/// Whether an argument may name a script: all others are left to `gannet analyze`.
fn may_name_scripts(arg: &OsStr) -> bool {
    let text = arg.to_string_lossy();
    text.ends_with(".zeek")
        || text == "--read"
        || text.starts_with("--read=")
        || is_short_read(&text)
}

fn is_short_read(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains('r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeek(args: &[&str]) -> Option<Result<Vec<OsString>, Outcome>> {
        let args: Vec<_> = ["gannet"].iter().chain(args).map(OsString::from).collect();
        arguments(&args)
    }

    #[test]
    fn scripts_are_found_among_captures() {
        let zeek_arguments = |args: &[&str]| match zeek(args) {
            Some(Ok(words)) => words[1..].join(OsStr::new(" ")).into_string().unwrap_or_default(),
            Some(Err(_)) => "refused".into(),
            None => "no scripts".into(),
        };
        for (args, expected) in [
            (&["analyze", "-C", "a.pcap", "x.zeek"][..], "-C -r a.pcap x.zeek"),
            (&["-C", "-r", "a.pcap", "local"], "-C -r a.pcap local"),
            (&["-Cr", "a.pcap", "local", "x.zeek", "-q"], "-C -r a.pcap local x.zeek"),
            (
                &["analyze", "--json", "-f", "tcp", "x.zeek", "a.pcap", "-t", "2"],
                "--threads=2 -r a.pcap -f tcp x.zeek LogAscii::use_json=T",
            ),
            (&["analyze", "-v", "x.zeek", "a.pcap"], "--verbose -r a.pcap x.zeek"),
            (&["analyze", "a.pcap", "b.pcap", "x.zeek"], "refused"),
            (&["analyze", "a.pcap", "x.zeek", "--logs", "conn"], "refused"),
            (&["analyze", "a.pcap", "x.zeek", "--index"], "refused"),
            (&["analyze", "a.pcap"], "no scripts"),
            (&["-C", "-r", "a.pcap"], "no scripts"),
            (&["filter", "tcp", "x.zeek"], "no scripts"),
        ] {
            assert_eq!(zeek_arguments(args), expected, "{args:?}");
        }
    }
}
