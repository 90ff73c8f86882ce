//! `gannet filter test-protocol`: the options, messages and exit codes of libpcap's `filtertest`, so
//! that libpcap's own tests can be run with this compiler.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::path::PathBuf;

use gannet_capture::Reader;
use gannet_filter::Options;
use gannet_filter::compile;
use gannet_filter::dlt;

use super::source::names;
use crate::out;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Accept the options of libpcap's filtertest program, for libpcap's own tests.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(super) struct Args {
    /// `[-hdlOq] [-F FILE] [-m NETMASK] [-s SNAPLEN] [-S swapped|unswapped] DLT|-r FILE [EXPRESSION]`
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

const USAGE: &str = "\
gannet filter test-protocol [-dlOq] [-F FILE] [-m NETMASK] [-s SNAPLEN] [-S swapped|unswapped]
                            DLT [EXPRESSION]
gannet filter test-protocol [-O] [-F FILE] [-m NETMASK] -r FILE [EXPRESSION]

The first compiles an expression and prints the program, the second prints what it returns for
each packet of a capture. -h this help, -d initializers in C, -l what only Linux knows, -O without
the optimizer, -q without output.
";

/// `EX_USAGE` of sysexits.h.
const USAGE_ERROR: u8 = 64;
const DATA_ERROR: u8 = 65;
const NO_INPUT: u8 = 66;

/// The maximum and default snapshot length.
const MAX_SNAPLEN: u32 = 262_144;

/// The default link type, EN10MB.
const ETHERNET: u16 = 1;

/// Maximum length of an expression in bytes.
const MAX_TEXT: u64 = 16 << 20;

/// The parsed options.
#[derive(Debug)]
struct TestOptions {
    options: Options,
    dump: u8,
    quiet: bool,
    help: bool,
    savefile: Option<PathBuf>,
    expression: Option<PathBuf>,
    words: Vec<String>,
}

/// Exit code and message of an early end.
type Ended = (u8, String);

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match parse_options(&args.args).and_then(|options| answer(&options)) {
        Ok(text) => out::write(text.as_bytes()),
        Err((code, message)) => {
            Terminal::new(false).print_lines(&format_args!("filtertest: {message}"));
            Ok(Outcome::Code(code))
        }
    }
}

/// Parses options like getopt(3).
fn parse_options(args: &[OsString]) -> Result<TestOptions, Ended> {
    let usage = |message: String| (USAGE_ERROR, message);
    let mut options = TestOptions {
        options: Options { snaplen: MAX_SNAPLEN, offline: false, ..Options::default() },
        dump: 1,
        quiet: false,
        help: false,
        savefile: None,
        expression: None,
        words: Vec::new(),
    };
    let mut args = args.iter().map(|a| a.to_string_lossy().into_owned());
    while let Some(arg) = args.next() {
        let Some(letters) = arg.strip_prefix('-').filter(|l| !l.is_empty()) else {
            options.words.push(arg);
            continue;
        };
        if letters == "-" {
            options.words.extend(args);
            break;
        }
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            match letter {
                'h' => options.help = true,
                'd' => options.dump += 1,
                'O' => options.options.optimize = false,
                'l' => options.options.kernel = true,
                'q' => options.quiet = true,
                'F' | 'm' | 's' | 'S' | 'r' => {
                    let rest: String = letters.by_ref().collect();
                    let value = if rest.is_empty() { args.next() } else { Some(rest) };
                    let value =
                        value.ok_or_else(|| usage(format!("option -{letter} wants a value")))?;
                    options.set(letter, value).map_err(usage)?;
                }
                _ => return Err(usage(format!("unknown option -{letter}\n{USAGE}"))),
            }
        }
    }
    Ok(options)
}

impl TestOptions {
    fn set(&mut self, letter: char, value: String) -> Result<(), String> {
        match letter {
            'F' => self.expression = Some(value.into()),
            'r' => self.savefile = Some(value.into()),
            'm' => {
                let mask: Result<Ipv4Addr, _> = value.parse();
                let mask: u32 = mask.map_err(|_| format!("invalid netmask {value}"))?.into();
                // All ones stand for an unknown mask.
                self.options.netmask = Some(mask).filter(|m| *m != u32::MAX);
            }
            's' => {
                let snaplen = value.parse().ok().filter(|s| *s <= MAX_SNAPLEN);
                self.options.snaplen = snaplen.ok_or_else(|| format!("invalid snaplen {value}"))?;
            }
            _ => match value.as_str() {
                "swapped" | "unswapped" => self.options.offline = true,
                _ => return Err(format!("invalid -S value \"{value}\"")),
            },
        }
        Ok(())
    }

    /// The expression: from a file, without comments, or the arguments after the options.
    fn text(&self, words: &[String]) -> Result<String, Ended> {
        let Some(path) = &self.expression else { return Ok(words.join(" ")) };
        let mut bytes = Vec::new();
        let read = if path == Path::new("-") {
            io::stdin().take(MAX_TEXT).read_to_end(&mut bytes)
        } else {
            fs::File::open(path).and_then(|f| f.take(MAX_TEXT).read_to_end(&mut bytes))
        };
        read.map_err(|e| (NO_INPUT, format!("can't open {}: {e}", path.display())))?;
        let text = String::from_utf8_lossy(&bytes);
        let plain = |line: &str| line.split('#').next().unwrap_or_default().to_owned();
        Ok(text.split('\n').map(plain).collect::<Vec<_>>().join("\n"))
    }
}

/// The text for standard output.
fn answer(options: &TestOptions) -> Result<String, Ended> {
    if options.help {
        return Ok(USAGE.to_owned());
    }
    match &options.savefile {
        Some(file) => applied(options, file),
        None => compiled(options),
    }
}

fn compiled(options: &TestOptions) -> Result<String, Ended> {
    let (link, words) =
        options.words.split_first().ok_or_else(|| (USAGE_ERROR, USAGE.to_owned()))?;
    let named = dlt::by_name(&link.to_ascii_uppercase()).or_else(|| link.parse().ok());
    let link = named.ok_or_else(|| (USAGE_ERROR, format!("invalid data link type {link}")))?;
    let text = options.text(words)?;
    let compiled = compile(&text, link, &options.options, &*names())
        .map_err(|e| (DATA_ERROR, e.message().to_owned()))?;
    let program = compiled.program();
    Ok(match options.dump {
        _ if options.quiet => String::new(),
        1 => format!("{program}\n"),
        2 => program.to_c(),
        _ => program.to_decimal(),
    })
}

fn applied(options: &TestOptions, file: &Path) -> Result<String, Ended> {
    let failed = |e: gannet_capture::Error| (NO_INPUT, format!("Failed opening: {e}"));
    let mut reader = Reader::open(file).map_err(failed)?;
    let text = options.text(&options.words)?;
    // Interfaces of pcapng captures are declared before the first packet.
    let mut header_reader = Reader::open(file).map_err(failed)?;
    let _ = header_reader.next_batch().map_err(failed)?;
    let interface = header_reader.interfaces().first();
    let snaplen = interface.map(|i| i.snaplen).filter(|s| *s > 0).unwrap_or(MAX_SNAPLEN);
    let link = interface.map_or(ETHERNET, |i| dlt::of_file(i.link_type.0));
    let options = Options { snaplen, offline: true, ..options.options.clone() };
    let compiled = compile(&text, link, &options, &*names())
        .map_err(|e| (DATA_ERROR, e.message().to_owned()))?;
    let mut out = String::new();
    while let Some(batch) = reader.next_batch().map_err(failed)? {
        for packet in batch.iter() {
            let _ = writeln!(out, "{}", compiled.program().run(packet.data, packet.wire_len));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> Result<String, Ended> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        parse_options(&args).and_then(|options| answer(&options))
    }

    #[test]
    fn programs_and_exit_codes() {
        let expected = "(000) ldh      [12]\n(001) jeq      #0x800           jt 2\tjf 3\n\
                        (002) ret      #96\n(003) ret      #0\n";
        assert_eq!(of(&["-s96", "EN10MB", "ip"]).unwrap(), expected);
        assert_eq!(of(&["-q", "1", "ip"]).unwrap(), "");
        assert!(of(&["-m", "255.255.255.0", "1", "ip broadcast"]).is_ok());
        assert!(of(&["-m", "255.255.255.255", "1", "ip broadcast"]).is_err());
        assert_eq!(of(&["-h"]).unwrap(), USAGE);
        let code = |args: &[&str]| of(args).unwrap_err().0;
        assert_eq!(code(&["EN10MB", "tcp prot 80"]), DATA_ERROR);
        assert_eq!(code(&["-S", "sideways", "EN10MB"]), USAGE_ERROR);
        assert_eq!(code(&["-m", "24", "EN10MB"]), USAGE_ERROR);
        assert_eq!(code(&["NOWHERE", "ip"]), USAGE_ERROR);
        assert_eq!(code(&[]), USAGE_ERROR);
        assert_eq!(code(&["-r", "/nonexistent/x.pcap", "ip"]), NO_INPUT);
    }
}
