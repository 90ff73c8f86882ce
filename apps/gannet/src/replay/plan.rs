//! The plan of a run: its arguments, checked before anything is sent.

use std::io;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context as _;
use gannet_capture::NewFile;
use gannet_filter::Filter;
use gannet_replay::Error;
use gannet_replay::Fields;
use gannet_replay::Input;
use gannet_replay::Options;
use gannet_replay::Policy;
use gannet_replay::ReferenceAnswers;
use gannet_replay::Target;
use gannet_replay::TargetError;
use gannet_replay::Tls;
use gannet_replay::Transport;
use gannet_replay::Trust;

use super::Args;
use crate::paths::InputFile;
use crate::terminal::Terminal;
use crate::unanswered;

/// The input, options and outputs of a run.
pub(super) struct Plan<'a> {
    pub(super) options: Options,
    pub(super) target: SocketAddr,
    /// The filter of `--filter`.
    pub(super) filter: Option<Filter>,
    pub(super) comparison: Option<(ReferenceAnswers, Fields)>,
    /// The output for differences between answers.
    pub(super) differences: Box<dyn Write + Send>,
    /// The file of `--svg`.
    pub(super) drawing: Option<(&'a Path, NewFile)>,
}

/// The reason why a run does not start.
pub(super) enum Refusal {
    /// The arguments are invalid.
    Arguments { why: String, hint: Option<&'static str> },
    /// The run cannot be prepared.
    Run(Error),
    /// A file cannot be written.
    File(anyhow::Error),
}

impl Refusal {
    fn new(why: &impl ToString) -> Self {
        Self::Arguments { why: why.to_string(), hint: None }
    }

    fn from_error(error: &anyhow::Error) -> Self {
        Self::new(&format_args!("{error:#}"))
    }
}

impl<'a> Plan<'a> {
    /// Checks the arguments, and creates the files that the run writes: a path that cannot be written ends the run
    /// before anything is sent.
    pub(super) fn new(args: &'a Args, terminal: &Terminal) -> Result<Self, Refusal> {
        if let Some((option, transports)) = unused(args) {
            let transport = args.transport;
            return Err(Refusal::new(&format_args!(
                "{option} is only for {transports}, not for {transport}"
            )));
        }
        let target = target(args)?;
        let filter = args
            .filter
            .as_deref()
            .map(Filter::parse)
            .transpose()
            .map_err(|error| Refusal::new(&error))?;
        if let Some(filter) = filter.as_ref().filter(|_| args.list.is_none())
            && let Some(why) = unanswered::in_advance(filter, &args.files)
        {
            return Err(Refusal::new(&why));
        }
        let mut options = options(args, input(args, filter.clone())?, target);
        let rewrite = args.changes.rewrite();
        options.rewrite =
            rewrite.map_err(|error| Refusal::new(&format_args!("--tsig: {error:#}")))?;
        if args.transport.is_secure() {
            options.tls = Some(tls(args).map_err(Refusal::Run)?);
        }
        if options.loops == 0 && options.limit.is_none() && options.duration.is_none() {
            terminal.note(&"sending until Ctrl-C, because neither --limit nor --duration is given");
        }
        let comparison = args.compare.as_deref().map(|text| comparison(text, args)).transpose();
        let comparison = comparison.map_err(|error| Refusal::from_error(&error))?;
        let inputs: Vec<_> = args.list.iter().chain(&args.files).cloned().collect();
        let inputs = InputFile::all(&inputs);
        for output in args.differences.iter().chain(&args.svg) {
            InputFile::refuse(&inputs, output).map_err(|error| Refusal::new(&error))?;
        }
        let differences = differences(args).map_err(Refusal::File)?;
        let drawing = match &args.svg {
            None => None,
            Some(path) => {
                let file = NewFile::create(path).with_context(|| path.display().to_string());
                Some((path.as_path(), file.map_err(Refusal::File)?))
            }
        };
        Ok(Self { options, target, filter, comparison, differences, drawing })
    }
}

/// The address of `--to`.
fn target(args: &Args) -> Result<SocketAddr, Refusal> {
    let to = args.to.as_deref().unwrap_or_default();
    let target = match Target::with_port(to, args.transport.port(), args.yes_i_may) {
        Ok(target) => target.address(),
        Err(error) => {
            let is_public = matches!(error, TargetError::Public(_));
            let hint = is_public.then_some("send only to servers whose operators agreed");
            return Err(Refusal::Arguments { why: format!("--to {error}"), hint });
        }
    };
    if let Some(range) = args.bind
        && range.is_v4() != target.is_ipv4()
    {
        return Err(Refusal::new(&format_args!(
            "--bind and --to {target} are of different IP versions"
        )));
    }
    Ok(target)
}

/// Opens the source of queries.
fn input(args: &Args, filter: Option<Filter>) -> Result<Input, Refusal> {
    let input = match &args.list {
        Some(path) => Input::List(path.clone()),
        None => Input::Captures {
            paths: [&args.read[..], &args.files].concat(),
            ports: args.ports.clone(),
            filter,
        },
    };
    if args.loops != 1 && input.is_stdin() {
        return Err(Refusal::new(&format_args!(
            "--loop {}: standard input can be read only once",
            args.loops
        )));
    }
    Ok(input)
}

/// The options for verifying the server's certificate.
fn tls(args: &Args) -> Result<Tls, Error> {
    let trust = match &args.ca {
        _ if args.no_verify => Trust::Any,
        Some(path) => Trust::File(path.clone()),
        None => Trust::System,
    };
    let to = args.to.as_deref().unwrap_or_default();
    let name = args.tls_name.as_deref().unwrap_or_else(|| gannet_replay::host(to));
    Tls::new(name, &trust)
}

/// Opens the output for differences: none, standard output or a file.
fn differences(args: &Args) -> anyhow::Result<Box<dyn Write + Send>> {
    Ok(match &args.differences {
        None => Box::new(io::sink()),
        Some(path) if path.as_os_str() == "-" => Box::new(io::stdout()),
        Some(path) => {
            let file = NewFile::create(path).and_then(NewFile::at_once);
            let file = file.with_context(|| path.display().to_string())?;
            Box::new(io::BufWriter::new(file))
        }
    })
}

/// The first given option that has no effect with the transport, and the transports for which it has one.
fn unused(args: &Args) -> Option<(&'static str, &'static str)> {
    let secure = [
        ("--ca", args.ca.is_some()),
        ("--no-verify", args.no_verify),
        ("--tls-name", args.tls_name.is_some()),
        ("--no-resumption", args.no_resumption),
    ];
    let streams = [
        ("--idle", args.idle.is_some()),
        ("--queries-per-connection", args.queries_per_connection.is_some()),
    ];
    let first = |options: &[(&'static str, bool)]| options.iter().find(|o| o.1).map(|o| o.0);
    if args.path.is_some() && args.transport != Transport::Https {
        return Some(("--path", "https"));
    }
    if let Some(option) = first(&secure).filter(|_| !args.transport.is_secure()) {
        return Some((option, "tls, https and quic"));
    }
    first(&streams).filter(|_| !args.transport.is_stream()).map(|o| (o, "tcp, tls, https and quic"))
}

/// The reference answers, and the fields to compare.
fn comparison(text: &str, args: &Args) -> anyhow::Result<(ReferenceAnswers, Fields)> {
    let against = ReferenceAnswers::parse(text, args.transport.port(), args.yes_i_may)
        .context("--compare")?;
    let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
    match against {
        ReferenceAnswers::Capture if args.list.is_some() => {
            anyhow::bail!("--compare capture: a list has no answers")
        }
        ReferenceAnswers::Server { .. }
            if args.read.iter().chain(&args.files).chain(&args.list).any(is_stdin) =>
        {
            anyhow::bail!(
                "--compare {text}: both servers need the input, but standard input can be read only once"
            )
        }
        _ if args.no_answers => anyhow::bail!("--compare and --no-answers exclude each other"),
        _ => {}
    }
    let mut fields = Fields::new(args.compare_ttl);
    for name in &args.ignore {
        fields.ignore(name).context("--ignore")?;
    }
    Ok((against, fields))
}

fn options(args: &Args, input: Input, target: SocketAddr) -> Options {
    let default = Options::new(input, target);
    let policy = Policy {
        idle: args.idle.unwrap_or(default.policy.idle),
        queries: args.queries_per_connection,
        resumption: !args.no_resumption,
    };
    Options {
        transport: args.transport,
        path: args.path.clone().unwrap_or_else(|| default.path.clone()),
        policy,
        timing: args.timing,
        clients: args.clients,
        threads: usize::from(args.threads),
        bind: args.bind,
        timeout: args.timeout,
        retries: args.retries,
        loops: args.loops,
        limit: args.limit,
        duration: args.duration,
        warm_up: args.warm_up,
        in_flight: args.in_flight as usize,
        answers: !args.no_answers,
        interval: args.interval,
        segmentation: !args.no_gso,
        realtime: !args.no_realtime,
        ..default
    }
}
