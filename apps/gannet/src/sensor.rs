//! `gannet sensor` and `gannet config`: the options of a live capture from a file.
//!
//! A file has the options of `gannet analyze` by their names without dashes. Options of the command line take
//! precedence.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use clap::ArgAction;
use clap::Args as _;
use clap::FromArgMatches as _;
use clap::Subcommand;
use clap::parser::ValueSource;
use toml::Value;

use crate::analyze;
use crate::live::reload::Read;
use crate::live::reload::Reload;
use crate::out;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

const DEFAULT: &str = "/etc/gannet/gannet.toml";

/// Analyse the traffic of interfaces with the options of a file, until a signal
///
/// The file has options of gannet analyze by their names without dashes, like rotate = "1h". All options of gannet
/// analyze can be given as well, after --config; they take precedence. Without --config, /etc/gannet/gannet.toml is
/// read if it exists.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Options of gannet analyze
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// Verify the file of a sensor, or print the resulting options
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    what: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Verify the file: names, values and combinations of options
    Check(Args),
    /// Print the value of each option and where it comes from
    Show(Args),
}

/// Options merged from the file and the command line.
struct Options {
    matches: clap::ArgMatches,
    /// Options that come from the file.
    from_file: Vec<String>,
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let parsed = args.options().and_then(|options| options.args());
    match parsed {
        Ok(mut parsed) if parsed.is_live() => {
            let (file, again) = (args.file(), args.clone());
            parsed.set_reload(Reload::new(file, move || {
                let options = again.options()?;
                Ok(Read { values: options.values(), args: Box::new(options.args()?.into_live()) })
            }));
            analyze::run(&parsed)
        }
        Ok(_) => {
            Ok(refuse("no interface is given; use -i eth0, or interface = \"eth0\" in the file"))
        }
        Err(words) => Ok(refuse(&words)),
    }
}

pub(crate) fn config(args: &ConfigArgs) -> anyhow::Result<Outcome> {
    match &args.what {
        Action::Check(args) => match args.options() {
            Ok(options) => {
                let words = match options.file.exists() {
                    true => "no errors",
                    false => "no such file; all options have their defaults",
                };
                out::write(format!("{}: {words}\n", options.file.display()).as_bytes())
            }
            Err(words) => Ok(refuse(&words)),
        },
        Action::Show(args) => match args.options() {
            Ok(options) => out::write(options.show().as_bytes()),
            Err(words) => Ok(refuse(&words)),
        },
    }
}

fn refuse(words: &str) -> Outcome {
    let words = words.trim_end();
    Terminal::new(false).error(&words.strip_prefix("error: ").unwrap_or(words));
    Outcome::NoCapture
}

fn command() -> clap::Command {
    analyze::Args::augment_args(clap::Command::new("gannet sensor"))
        .args_override_self(true)
        // The file may name the interfaces instead of arguments.
        // clap cannot make a required argument optional, so another argument of this name replaces it.
        .mut_arg("files", |arg| {
            let parser = arg.get_value_parser().clone();
            clap::Arg::new("files").action(ArgAction::Append).num_args(1..).value_parser(parser)
        })
}

impl Args {
    fn file(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| DEFAULT.into())
    }

    fn options(&self) -> Result<Options, String> {
        let file = self.file();
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if self.config.is_none() && error.kind() == io::ErrorKind::NotFound => {
                String::new()
            }
            Err(error) => return Err(format!("{}: {error}", file.display())),
        };
        options(&text, &file, &self.options)
    }
}

fn options(text: &str, file: &Path, given: &[OsString]) -> Result<Options, String> {
    let name = file.display();
    let table: toml::Table = text.parse().map_err(|error| format!("{name}: {error}"))?;
    let words = |given: &[OsString]| {
        let own = [OsString::from("gannet sensor")];
        own.into_iter().chain(given.iter().cloned()).collect::<Vec<_>>()
    };
    let explicit = command().ignore_errors(true).try_get_matches_from(words(given)).ok();
    let is_explicit = |id: &str| {
        let source = explicit.as_ref().and_then(|matches| matches.value_source(id));
        source == Some(ValueSource::CommandLine)
    };
    let mut from_file = Vec::new();
    let mut all = Vec::new();
    for (key, value) in &table {
        let command = command();
        let is = |arg: &&clap::Arg| arg.get_long() == Some(key) && key != "help";
        let Some(arg) = command.get_arguments().find(is) else {
            return Err(format!(
                "{name}: no option is named '{key}'; gannet analyze --help lists all"
            ));
        };
        let id = arg.get_id().to_string();
        if is_explicit(&id) {
            continue;
        }
        let takes_value = arg.get_action().takes_values();
        for value in values(key, value).map_err(|words| format!("{name}: {words}"))? {
            match (takes_value, value.as_str()) {
                (false, "true") => all.push(format!("--{key}").into()),
                (false, "false") => {}
                (false, _) => return Err(format!("{name}: {key} must be true or false")),
                (true, value) => all.push(format!("--{key}={value}").into()),
            }
        }
        from_file.push(id);
    }
    all.extend(given.iter().cloned());
    let matches = command().try_get_matches_from(words(&all)).map_err(|error| {
        let text = error.to_string();
        // If the command line alone is valid, the error is in the file.
        match command().try_get_matches_from(words(given)) {
            Ok(_) => {
                let first = text.lines().next().unwrap_or_default();
                format!("{name}: {}", first.strip_prefix("error: ").unwrap_or(first))
            }
            Err(_) => text,
        }
    })?;
    if let Some(file) = matches.get_raw("files").and_then(|mut files| files.next()) {
        let file = file.display();
        return Err(format!(
            "'{file}' is not an option; use --config {file} if it is the configuration file of a sensor"
        ));
    }
    Ok(Options { matches, from_file, file: file.to_owned() })
}

/// Converts a value of the file to command line arguments.
fn values(key: &str, value: &Value) -> Result<Vec<String>, String> {
    Ok(match value {
        Value::String(text) => vec![text.clone()],
        Value::Integer(number) => vec![number.to_string()],
        Value::Float(number) => vec![number.to_string()],
        Value::Boolean(is) => vec![is.to_string()],
        Value::Array(all) => {
            let all: Result<Vec<_>, _> = all.iter().map(|value| values(key, value)).collect();
            all?.concat()
        }
        Value::Datetime(_) | Value::Table(_) => {
            return Err(format!(
                "{key} must be a string, a number, true or false, or a list of these"
            ));
        }
    })
}

impl Options {
    fn args(&self) -> Result<analyze::Args, String> {
        analyze::Args::from_arg_matches(&self.matches).map_err(|error| error.to_string())
    }

    /// The text of all options that have a value, by name.
    fn values(&self) -> BTreeMap<String, String> {
        let command = command();
        let value = |arg: &clap::Arg| {
            let (long, id) = (arg.get_long()?, arg.get_id().as_str());
            let value = match arg.get_action().takes_values() {
                false => self.matches.try_get_one::<bool>(id).ok()??.to_string(),
                true => {
                    let all = self.matches.get_raw(id)?;
                    all.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",")
                }
            };
            Some((long.to_owned(), value))
        };
        command.get_arguments().filter_map(value).collect()
    }

    /// All options in the form of a file, each with its source; defaults as comments.
    fn show(&self) -> String {
        let mut out = String::new();
        let command = command();
        for arg in command.get_arguments() {
            let (Some(long), id) = (arg.get_long(), arg.get_id().as_str()) else { continue };
            if long == "help" {
                continue;
            }
            let raw = self
                .matches
                .get_raw(id)
                .map(|all| all.map(|v| v.to_string_lossy()).collect::<Vec<_>>());
            let source = match self.matches.value_source(id) {
                Some(ValueSource::CommandLine) if self.from_file.iter().any(|f| f == id) => {
                    self.file.display().to_string()
                }
                Some(ValueSource::CommandLine) => "command line".into(),
                _ => "default".into(),
            };
            let quoted = |text: &str| Value::String(text.to_owned()).to_string();
            let value = if arg.get_action().takes_values() {
                match raw.as_deref() {
                    None | Some([]) => {
                        out.push_str(&format!("# {long} is not set\n"));
                        continue;
                    }
                    Some([one]) => quoted(one),
                    Some(all) => {
                        let all: Vec<_> = all.iter().map(|text| quoted(text)).collect();
                        format!("[{}]", all.join(", "))
                    }
                }
            } else {
                self.matches.get_flag(id).to_string()
            };
            // Defaults are comments, since an explicit default may conflict with another option.
            let hidden = if source == "default" { "# " } else { "" };
            out.push_str(&format!("{hidden}{long} = {value} # {source}\n"));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, given: &[&str]) -> Result<Options, String> {
        let given: Vec<OsString> = given.iter().map(OsString::from).collect();
        options(text, Path::new("x.toml"), &given)
    }

    #[test]
    fn the_command_line_takes_precedence_and_sources_are_shown() {
        let text = "rotate = \"1h\"\nlogs = [\"conn\", \"dns\"]\njson = true\nthreads = 2\nquiet = false\n";
        let options = of(text, &["-i", "eth0", "--rotate", "1d"]).unwrap_or_else(|e| panic!("{e}"));
        let shown = options.show();
        for line in [
            "rotate = \"1d\" # command line",
            "logs = [\"conn\", \"dns\"] # x.toml",
            "json = true # x.toml",
            "threads = \"2\" # x.toml",
            "interface = \"eth0\" # command line",
            "# ring-size = \"128M\" # default",
            "# metrics is not set",
            "# quiet = false # default",
        ] {
            assert!(shown.lines().any(|l| l == line), "{line}:\n{shown}");
        }
        // The printed options are a valid file.
        assert!(of(&shown, &[]).is_ok_and(|again| again.show().contains("rotate = \"1d\"")));
    }

    #[test]
    fn a_file_need_not_name_the_interface() {
        let shown = of("rotate = \"1h\"\n", &[]).unwrap_or_else(|e| panic!("{e}")).show();
        assert!(shown.contains("rotate = \"1h\" # x.toml") && shown.contains("# interface is not"));
        assert!(of("", &[]).is_ok());
    }

    #[test]
    fn a_file_without_its_option_is_refused() {
        let error = of("", &["other.toml"]).err().unwrap_or_default();
        assert!(
            error.contains("'other.toml' is not an option; use --config other.toml"),
            "{error}"
        );
    }

    #[test]
    fn errors_name_file_and_option() {
        for (text, words) in [
            ("rotate = 5", "x.toml: invalid value '5' for '--rotate <TIME>'"),
            ("keep = \"0\"", "x.toml: invalid value '0' for '--keep <AGE|SIZE>'"),
            ("rotat = 1", "x.toml: no option is named 'rotat'"),
            ("quiet = 3", "quiet must be true or false"),
            ("[a]\nb = 1", "no option is named 'a'"),
            ("rotate = [", "x.toml: "),
            ("rotate = {a = 1}", "rotate must be a string"),
        ] {
            let error = of(text, &[]).err().unwrap_or_default();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
