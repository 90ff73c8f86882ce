//! Zeek's command line.

use std::ffi::OsString;

use super::unsupported;
use crate::jit::Engine;

/// The options of the command line.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Options {
    /// `-a`: parse and check, run nothing.
    pub parse_only: bool,
    /// `-b`: load only the named scripts.
    pub bare: bool,
    /// `-C`: do not verify checksums.
    pub ignore_checksums: bool,
    /// `--spicy`: run scripts of the analyzers that Zeek builds with Spicy.
    pub spicy: bool,
    /// `-D`: seeds are zero.
    pub deterministic: bool,
    /// `-e`: code that is parsed after all scripts.
    pub exec: Option<String>,
    /// `-f`: the capture filter.
    pub filter: Option<String>,
    /// `-G`: the seed file.
    pub load_seeds: Option<String>,
    /// `-H`: the file in which the seeds are saved.
    pub save_seeds: Option<String>,
    /// `-h`.
    pub help: bool,
    /// `-i`: the interface.
    pub interface: Option<String>,
    /// `-I`: identifiers to print.
    pub print_ids: Vec<String>,
    /// `-p`: prefixes of additional scripts.
    pub prefixes: Vec<String>,
    /// `-r`: the capture.
    pub capture: Option<String>,
    /// `-s`: signature files.
    pub signatures: Vec<String>,
    /// `-T`: depth in the tree of header tests down to which each node has its own automaton for signatures.
    pub level: Option<usize>,
    /// `-u`: number of times it is given.
    pub usage: u32,
    /// `--no-unused-warnings`.
    pub no_unused_warnings: bool,
    /// `-v`.
    pub version: bool,
    /// `-V`.
    pub build_info: bool,
    /// `-N`: number of times it is given.
    pub plugins: u32,
    /// `-w`: the capture to which packets are written.
    pub write: Option<String>,
    /// `-E`: the file of the event trace.
    pub event_trace: Option<String>,
    /// `-U`: the file to which the state of the process is written.
    pub status_file: Option<String>,
    /// `-O help`.
    pub optimization_help: bool,
    /// Whether `-O` names an optimization.
    pub optimizes: bool,
    /// `--optimize-files` or `--optimize-funcs`, if one was given.
    pub optimizes_only: Option<&'static str>,
    /// `-B help`.
    pub debug_help: bool,
    /// `-Q`: report time and memory at the end.
    pub timing: bool,
    /// `--pseudo-realtime`: the replay speed relative to the capture's timestamps, in thousandths.
    pub pseudo_realtime: Option<u64>,
    /// `--profile-scripts`: the profile's file, empty for standard error.
    pub profile: Option<String>,
    /// `--profile-script-call-stacks`: the profile has Zeek's form, with stacks of calls.
    pub profile_stacks: bool,
    /// `--sandbox`: scripts start no processes and change no files other than logs.
    pub sandbox: bool,
    /// `--script-budget`.
    pub budget: Option<crate::vm::budget::Budget>,
    /// `--max-string`.
    pub max_string: Option<usize>,
    /// `--max-open-logs`.
    pub max_open_logs: Option<usize>,
    /// `--diagnostics rich`.
    pub rich: bool,
    /// `--zeek-scripts`: the folder of Zeek's scripts.
    pub scripts: Option<String>,
    /// `--engine`.
    pub engine: Engine,
    /// `--threads`: number of analysis threads; with 0 and 1 the thread of the scripts analyzes.
    pub threads: usize,
    /// `--verbose`: reports the number of analysis threads, and its reason.
    pub verbose: bool,
    /// `--no-script-cache`: parse all scripts instead of loading Zeek's own from the cache.
    pub no_script_cache: bool,
    /// Scripts to load.
    pub files: Vec<String>,
    /// `name=value`: variables to set.
    pub redefs: Vec<(String, String)>,
    /// `Plugin::Name`: plugins to activate.
    pub activated: Vec<String>,
    /// Arguments of the script, after `--` and the script.
    pub script_args: Vec<String>,
}

/// The letters of options that take a value.
const LETTERS_WITH_VALUE: &str = "0BceEfGHiIopOrstTUwX";

/// All long names. An unambiguous prefix is accepted for each.
const NAMES: &[&str] = &[
    "bare-mode",
    "build-info",
    "capture-unprocessed",
    "debug-rules",
    "debug-script",
    "deterministic",
    "diagnostics",
    "engine",
    "event-trace",
    "exec",
    "filter",
    "force-dns",
    "help",
    "iface",
    "jobs",
    "load-seeds",
    "max-open-logs",
    "max-string",
    "no-checksums",
    "no-optimize-files",
    "no-optimize-funcs",
    "no-script-cache",
    "no-unknown-packets",
    "no-unused-warnings",
    "optimize",
    "optimize-files",
    "optimize-funcs",
    "parse-only",
    "prefix",
    "prime-dns",
    "print-id",
    "print-plugins",
    "profile-script-call-stacks",
    "profile-scripts",
    "pseudo-realtime",
    "re-level",
    "readfile",
    "rulefile",
    "sandbox",
    "save-seeds",
    "script-budget",
    "spicy",
    "status-file",
    "test",
    "threads",
    "time",
    "tracefile",
    "usage-issues",
    "verbose",
    "version",
    "watchdog",
    "writefile",
    "zeek-order",
    "zeek-scripts",
    "zeekygen",
];

/// Long options without a letter that require a value.
const LONG_WITH_VALUE: &[&str] = &[
    "diagnostics",
    "zeek-scripts",
    "engine",
    "script-budget",
    "max-string",
    "max-open-logs",
    "threads",
    "no-optimize-files",
    "no-optimize-funcs",
];

/// Long options without a letter that take an optional value.
const LONG_WITH_OPTIONAL_VALUE: &[&str] = &["profile-scripts", "pseudo-realtime"];

/// The full name of a long option.
///
/// # Errors
/// Returns a message if no option or several options begin with `name`.
fn full_name(name: &str) -> Result<&'static str, String> {
    if let Some(exact) = NAMES.iter().find(|other| **other == name) {
        return Ok(exact);
    }
    let mut found = NAMES.iter().filter(|other| !name.is_empty() && other.starts_with(name));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(one), Some(other)) => Err(format!("option '--{name}' may be --{one} or --{other}")),
        (None, _) => Err(format!("unrecognized option '--{name}'")),
    }
}

impl Options {
    /// Whether the options request a list, so that scripts do not run.
    pub(super) fn lists(&self) -> bool {
        !self.print_ids.is_empty() || self.plugins > 0
    }

    /// Parses the arguments after the program's name.
    ///
    /// # Errors
    /// Returns a message of one line.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut options = Self::default();
        // Scripts receive file names as text, so arguments must be UTF-8.
        let refused = |arg: OsString| format!("argument {}: not UTF-8", arg.display());
        let args = args.into_iter().map(|arg| arg.into_string().map_err(refused));
        let mut args = args.collect::<Result<Vec<_>, _>>()?.into_iter().peekable();
        // The options in the first line of a script (`#!/usr/bin/zeek -b --`) arrive as one argument.
        let line = args.next_if(|arg| arg.starts_with('-') && arg.ends_with(" --"));
        let line = line.unwrap_or_default();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut args = words.into_iter().chain(args);
        while let Some(arg) = args.next() {
            if arg == "--" {
                // The arguments after `--` and the script belong to the script.
                let mut rest = args;
                if let Some(file) = rest.next() {
                    options.plain(file);
                }
                options.script_args = rest.collect();
                break;
            }
            if let Some(name) = arg.strip_prefix("--") {
                let (name, value) = match name.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (name, None),
                };
                options.long(name, value, &mut args)?;
            } else if arg.len() > 1 && arg.starts_with('-') {
                options.short(&arg[1..], &mut args)?;
            } else {
                options.plain(arg);
            }
        }
        options.check()?;
        Ok(options)
    }

    /// Checks that the options which others require are given.
    fn check(&self) -> Result<(), String> {
        if self.profile_stacks && self.profile.is_none() {
            return Err("option '--profile-script-call-stacks' needs --profile-scripts".to_owned());
        }
        match self.optimizes_only {
            Some(option) if !self.optimizes => {
                Err(format!("option '{option}' requires an optimization (-O)"))
            }
            _ => Ok(()),
        }
    }

    /// `-T`, or its default.
    pub(crate) fn signature_level(&self) -> usize {
        self.level.unwrap_or(crate::signature::Limits::default().level)
    }

    fn plain(&mut self, arg: String) {
        if let Some((name, value)) = arg.split_once('=').filter(|(name, _)| !name.contains('/')) {
            let (name, value) = (name.trim_end(), value.trim_start());
            self.redefs.push((name.to_owned(), value.to_owned()));
        } else if arg.contains("::") {
            self.activated.push(arg);
        } else {
            self.files.push(arg);
        }
    }

    fn short(
        &mut self,
        letters: &str,
        args: &mut dyn Iterator<Item = String>,
    ) -> Result<(), String> {
        let rest = letters.char_indices();
        for (at, letter) in rest {
            let mut value = None;
            if LETTERS_WITH_VALUE.contains(letter) {
                let attached = &letters[at + letter.len_utf8()..];
                value = if attached.is_empty() { args.next() } else { Some(attached.to_owned()) };
                if value.is_none() {
                    return Err(format!("option requires an argument -- '{letter}'"));
                }
            }
            let done = value.is_some();
            self.letter(letter, value.unwrap_or_default())?;
            if done {
                break;
            }
        }
        Ok(())
    }

    fn letter(&mut self, letter: char, value: String) -> Result<(), String> {
        if let Some(reason) = unsupported::reason(letter) {
            return Err(reason.to_owned());
        }
        match letter {
            'a' => self.parse_only = true,
            'b' => self.bare = true,
            'C' => self.ignore_checksums = true,
            'D' => self.deterministic = true,
            'e' => self.exec = Some(value),
            'f' => self.filter = Some(value),
            'G' => self.load_seeds = Some(value),
            'H' => self.save_seeds = Some(value),
            'h' => self.help = true,
            'i' => {
                if self.capture.is_some() || self.interface.is_some() {
                    return Err("only a single interface option (-i or -r) is allowed".to_owned());
                }
                self.interface = Some(value);
            }
            'I' => self.print_ids.push(value),
            'p' => self.prefixes.push(value),
            'r' => {
                if self.capture.is_some() || self.interface.is_some() {
                    return Err("only a single interface option (-i or -r) is allowed".to_owned());
                }
                self.capture = Some(value);
            }
            's' => self.signatures.push(value),
            'u' => self.usage += 1,
            'v' => self.version = true,
            'V' => self.build_info = true,
            'N' => self.plugins += 1,
            'w' => self.write = Some(value),
            'Q' => self.timing = true,
            'U' => self.status_file = Some(value),
            'T' => {
                let level = value.parse();
                self.level = Some(level.map_err(|_| "option '-T' requires a number".to_owned())?);
            }
            'E' => self.event_trace = Some(value),
            'O' if value == "help" => self.optimization_help = true,
            'O' => {
                unsupported::check_optimization(&value)?;
                self.optimizes = true;
            }
            '0' => self.optimizes_only = Some("--optimize-files"),
            'o' => self.optimizes_only = Some("--optimize-funcs"),
            // Zeek's release builds accept the names of debug streams and write nothing.
            'B' => self.debug_help |= value == "help",
            'F' => {}
            other => return Err(format!("invalid option -- '{other}'")),
        }
        Ok(())
    }

    fn long(
        &mut self,
        name: &str,
        value: Option<String>,
        args: &mut dyn Iterator<Item = String>,
    ) -> Result<(), String> {
        let name = full_name(name)?;
        let letter = letter_of(name);
        let takes_value = LONG_WITH_VALUE.contains(&name)
            || LONG_WITH_OPTIONAL_VALUE.contains(&name)
            || letter.is_some_and(|letter| LETTERS_WITH_VALUE.contains(letter));
        if value.is_some() && !takes_value {
            return Err(format!("option '--{name}' takes no value"));
        }
        let Some(letter) = letter else { return self.long_only(name, value, args) };
        let value = if LETTERS_WITH_VALUE.contains(letter) {
            value
                .or_else(|| args.next())
                .ok_or_else(|| format!("option '--{name}' requires an argument"))?
        } else {
            String::new()
        };
        self.letter(letter, value)
    }

    /// Handles a long option without a letter.
    fn long_only(
        &mut self,
        name: &str,
        value: Option<String>,
        args: &mut dyn Iterator<Item = String>,
    ) -> Result<(), String> {
        match name {
            "spicy" => {
                self.spicy = true;
            }
            "no-unused-warnings" => {
                self.no_unused_warnings = true;
            }
            "pseudo-realtime" => {
                let speed = value.as_deref().unwrap_or("1");
                let text = "option '--pseudo-realtime' requires a number greater than 0, like 2.5";
                let speed = speed.parse::<f64>().map_or(0.0, |speed| (speed * 1000.0).round());
                self.pseudo_realtime = Some(speed)
                    .filter(|speed| (1.0..1e15).contains(speed))
                    .map(|speed| speed as u64);
                self.pseudo_realtime.ok_or(text)?;
            }
            "sandbox" => {
                self.sandbox = true;
            }
            "verbose" => {
                self.verbose = true;
            }
            "no-script-cache" => {
                self.no_script_cache = true;
            }
            "test" => return Err(unsupported::TEST.to_owned()),
            "profile-script-call-stacks" => self.profile_stacks = true,
            "profile-scripts" => {
                self.profile = Some(value.unwrap_or_default());
            }
            "no-unknown-packets" => {}
            "diagnostics" | "zeek-scripts" | "engine" | "script-budget" | "max-string"
            | "max-open-logs" | "threads" | "no-optimize-files" | "no-optimize-funcs" => {
                let value = value
                    .or_else(|| args.next())
                    .ok_or_else(|| format!("option '--{name}' requires an argument"))?;
                match name {
                    "diagnostics" => {
                        self.rich = match value.as_str() {
                            "rich" => true,
                            "zeek" => false,
                            _ => return Err("option '--diagnostics' must be rich or zeek".into()),
                        }
                    }
                    "zeek-scripts" => self.scripts = Some(value),
                    "threads" => {
                        let text = "option '--threads' requires a number from 1 to 255";
                        let threads = value.parse::<u8>().ok().filter(|threads| *threads > 0);
                        self.threads = threads.ok_or(text)?.into();
                    }
                    "max-string" => {
                        let bytes = crate::vm::budget::bytes(&value).ok_or_else(|| {
                            format!(
                                "option '--max-string' requires a size, like 64M, not '{value}'"
                            )
                        })?;
                        self.max_string = Some(usize::try_from(bytes).unwrap_or(usize::MAX));
                    }
                    "max-open-logs" => {
                        let text = "option '--max-open-logs' requires a number of at least 1";
                        let files = value.parse().ok().filter(|files| *files > 0);
                        self.max_open_logs = Some(files.ok_or(text)?);
                    }
                    "script-budget" => {
                        self.budget = Some(crate::vm::budget::Budget::parse(&value)?);
                    }
                    "no-optimize-files" | "no-optimize-funcs" => {}
                    _ => {
                        let text = "option '--engine' must be interp, jit or verify";
                        self.engine = Engine::named(&value).ok_or(text)?;
                    }
                }
            }
            _ => return Err(format!("unrecognized option '--{name}'")),
        }
        Ok(())
    }
}

/// The letter of a long option that has one.
fn letter_of(name: &str) -> Option<char> {
    Some(match name {
        "parse-only" => 'a',
        "bare-mode" => 'b',
        "no-checksums" => 'C',
        // Fixed seeds imply Zeek's order.
        "deterministic" | "zeek-order" => 'D',
        "exec" => 'e',
        "filter" => 'f',
        "load-seeds" => 'G',
        "save-seeds" => 'H',
        "help" => 'h',
        "iface" => 'i',
        "print-id" => 'I',
        "prefix" => 'p',
        "readfile" => 'r',
        "rulefile" => 's',
        "usage-issues" => 'u',
        "version" => 'v',
        "build-info" => 'V',
        "print-plugins" => 'N',
        "writefile" => 'w',
        "capture-unprocessed" => 'c',
        "event-trace" => 'E',
        "optimize" => 'O',
        "optimize-files" => '0',
        "optimize-funcs" => 'o',
        "tracefile" => 't',
        "re-level" => 'T',
        "status-file" => 'U',
        "zeekygen" => 'X',
        "debug-script" => 'd',
        "force-dns" => 'F',
        "prime-dns" => 'P',
        "time" => 'Q',
        "debug-rules" => 'S',
        "watchdog" => 'W',
        "jobs" => 'j',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, String> {
        Options::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn letters_combine_and_take_attached_values() {
        let options = parse(&["-Cbr", "x.pcap", "a.zeek", "n=3", "Plugin::Name", "-eprint 1;"])
            .unwrap_or_default();
        assert!(options.bare && options.ignore_checksums);
        assert_eq!(options.capture.as_deref(), Some("x.pcap"));
        assert_eq!(options.files, ["a.zeek"]);
        assert_eq!(options.redefs, [("n".to_owned(), "3".to_owned())]);
        assert_eq!(options.activated, ["Plugin::Name"]);
        assert_eq!(options.exec.as_deref(), Some("print 1;"));
        // The last value is used.
        let options = parse(&["-e", "print 1;", "-e", "print 2;"]).unwrap_or_default();
        assert_eq!(options.exec.as_deref(), Some("print 2;"));
    }

    #[test]
    fn invalid_values_are_refused() {
        for args in [&["--diagnostics", "richer"][..], &["-T", "x"], &["--re-level=-1"]] {
            assert!(parse(args).is_err(), "{args:?}");
        }
        assert!(parse(&["--diagnostics=zeek"]).is_ok_and(|options| !options.rich));
        assert!(parse(&["--diagnostics=rich"]).is_ok_and(|options| options.rich));
        assert_eq!(parse(&["-T", "2"]).unwrap_or_default().level, Some(2));
    }

    #[cfg(unix)]
    #[test]
    fn arguments_are_utf_8() {
        use std::os::unix::ffi::OsStringExt as _;
        let name = OsString::from_vec(b"n\xff.zeek".to_vec());
        let error = Options::parse([OsString::from("-b"), name]).err();
        assert_eq!(error.as_deref(), Some("argument n\u{fffd}.zeek: not UTF-8"));
    }

    #[test]
    fn scripts_see_spicy_on_request() {
        assert!(parse(&["--spicy"]).unwrap_or_default().spicy);
        assert!(!parse(&[]).unwrap_or_default().spicy);
    }

    #[test]
    fn the_order_of_zeek_has_fixed_seeds() {
        for option in ["-D", "--deterministic", "--zeek-order"] {
            assert!(parse(&[option]).unwrap_or_default().deterministic, "{option}");
        }
        assert!(!parse(&[]).unwrap_or_default().deterministic);
    }

    #[test]
    fn arguments_of_the_script_follow_two_dashes() {
        let options = parse(&["-b", "--", "a.zeek", "-x", "y"]).unwrap_or_default();
        assert_eq!(options.files, ["a.zeek"]);
        assert_eq!(options.script_args, ["-x", "y"]);
        let options = parse(&["-b --", "./a.zeek", "-d"]).unwrap_or_default();
        assert!(options.bare);
        assert_eq!(options.files, ["./a.zeek"]);
        assert_eq!(options.script_args, ["-d"]);
        assert!(parse(&["-r", "a", "-r", "b"]).is_err());
        assert!(parse(&["--nope"]).is_err());
    }
}
