//! `gannet zeek`: Zeek's scripts with Zeek's command line, alone or over a capture.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use gannet_capture::Stream;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_event::Decl;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_log::Selection;
use gannet_script::bridge;
use gannet_script::bridge::Source;

use crate::stdin;
use crate::stop::Stop;

const EXAMPLES: &str = "\
Examples:
  gannet zeek hello.zeek                  run a script
  gannet zeek -C -r trace.pcap hello.zeek run its event handlers over a capture
  gannet zeek -e 'print 6 * 7;'           run a statement
  gannet zeek -a hello.zeek               check it without running it

ZEEKPATH names the folders of Zeek's scripts; without them only what a script declares exists.";

/// Run scripts of Zeek, over a capture or alone, with Zeek's options.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct Args {
    /// Options, scripts and NAME=VALUE, as Zeek takes them
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> ExitCode {
    gannet_script::command::main_with(args.args, Some(Box::new(Captures::default())))
}

/// A capture and the analysis of its packets.
#[derive(Default)]
struct Captures {
    ignore_checksums: bool,
    open: Option<(Stream, Stop)>,
}

impl Source for Captures {
    fn catalogue(&self) -> Vec<&'static Decl> {
        gannet_engine::events().collect()
    }

    fn open(&mut self, options: &gannet_script::command::Options) -> Result<(), String> {
        self.ignore_checksums = options.ignore_checksums;
        let files: Vec<PathBuf> = options.capture.iter().map(PathBuf::from).collect();
        let stop = Stop::on_signals().map_err(|error| error.to_string())?;
        let stream = stdin::stream(&files, gannet_capture::Options::default(), &stop)
            .map_err(|error| error.to_string())?;
        self.open = Some((stream, stop));
        Ok(())
    }

    fn run(&mut self, interest: Interest, listener: Box<dyn Listener>) -> Result<(), String> {
        let Some((mut stream, stop)) = self.open.take() else { return Ok(()) };
        let options = Options {
            ignore_checksums: self.ignore_checksums,
            logs: gannet_log::Options { selection: Selection::of::<&str>([]), ..Default::default() },
            ..Options::default()
        };
        let mut engine = Engine::with_listener(options, interest, listener);
        let mut trouble = None;
        while stop.asked().is_none() && !bridge::stops() {
            match stream.next_batch() {
                Ok(Some(batch)) => engine.batch(&batch).map_err(|error| error.to_string())?,
                Ok(None) => break,
                Err(_) if stop.asked().is_some() => {}
                Err(error) => trouble = Some(error.to_string()),
            }
        }
        if !bridge::failed() {
            engine.finish().map_err(|error| error.to_string())?;
        }
        trouble.map_or(Ok(()), Err)
    }
}
