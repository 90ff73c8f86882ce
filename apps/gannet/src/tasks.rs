//! `gannet plan` and `gannet run-task`: an analysis that many machines share.

use std::fs;
use std::io;
use std::io::Read;
use std::num::NonZero;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use gannet_base::Time;
use gannet_columns::pack_rows;
use gannet_log::Field;
use gannet_log::Format;
use gannet_log::PackedRows;
use gannet_log::PackedStream;
use gannet_log::PackedWriter;
use gannet_log::RowPacker;
use gannet_log::TextOutput;
use gannet_task::Error;
use gannet_task::LogBatch;
use gannet_task::Next;
use gannet_task::Plan;
use gannet_task::PlanOptions;
use gannet_task::Settings;
use gannet_task::Task;
use gannet_task::WARM_UP;
use gannet_task::fields_of;
use gannet_task::plan;
use serde_json::Value;

use crate::formats::Formats;
use crate::formats::LeftOut;
use crate::left_out;
use crate::out;
use crate::outcome::Outcome;
use crate::paths;
use crate::stop::Stop;
use crate::terminal::Terminal;

const PLAN_EXAMPLES: &str = "\
Examples:
  gannet plan --json day/ > plan.json         a task for each file
  gannet plan --json --tasks 100 --logs conn,dns day/ > plan.json
  gannet run-task plan.json 7 -o out/7        the rows of task 7
  sbatch --array=0-99 --wrap 'gannet run-task plan.json $SLURM_ARRAY_TASK_ID -o out/$SLURM_ARRAY_TASK_ID'";

/// Divide captures that follow each other into tasks for many machines.
///
/// A task has the rows of the connections whose first packet is in its files. The rows of all tasks together are
/// those of one analysis, and uids are the same.
#[derive(Debug, clap::Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub(crate) struct PlanArgs {
    /// Captures and folders of captures
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print the plan as JSON for run-task; without this, a line for each task
    #[arg(long)]
    json: bool,
    /// Maximum number of tasks; by default one for each file. Files that overlap in time stay in one task
    #[arg(short = 'n', long, value_name = "N", value_parser = tasks)]
    tasks: Option<NonZero<u32>>,
    /// Seconds of packet time that a task reads before its own files, or all
    #[arg(long, value_name = "SECONDS", default_value_t = WARM_UP.to_string(), value_parser = warm_up)]
    warm_up: String,
    /// Only these logs, like conn,dns
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    logs: Option<Vec<String>>,
    /// Additional columns, as of gannet analyze
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// Analyse only packets that match
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,
    /// Do not verify checksums
    #[arg(short = 'C', long)]
    no_checksums: bool,
    /// Networks that count as local; by default the private ones
    #[arg(long, value_name = "NETS", value_delimiter = ',')]
    local_nets: Option<Vec<String>>,
    /// Hash the contents of all files
    #[arg(long)]
    hash_files: bool,
    /// Analyse the protocols inside of LDAP and PostgreSQL
    #[arg(long)]
    inner_protocols: bool,
    /// Seed of uids: the same seed and capture give the same uids
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Seed of community_id
    #[arg(long, value_name = "N", default_value_t = 0)]
    community_seed: u16,
}

/// Run one task of a plan: the same rows each time.
#[derive(Debug, clap::Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// The output of gannet plan --json, or one task of it; - is standard input
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Number of the task, from 0
    #[arg(value_name = "N")]
    number: Option<usize>,
    /// Folder of the logs; it is created if missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    #[command(flatten)]
    formats: Formats,
    /// Number of threads
    #[arg(short, long, value_name = "N", default_value_t = NonZero::<u8>::MIN)]
    threads: NonZero<u8>,
}

fn tasks(text: &str) -> Result<NonZero<u32>, String> {
    text.parse().map_err(|_| format!("expected a number from 1 to {}", u32::MAX))
}

fn warm_up(text: &str) -> Result<String, String> {
    match text == "all" || text.parse::<u32>().is_ok() {
        true => Ok(text.to_owned()),
        false => Err("expected a number of seconds, or all".to_owned()),
    }
}

pub(crate) fn run_plan(args: &PlanArgs) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    let settings = Settings {
        logs: args.logs.clone(),
        columns: args.columns.clone(),
        filter: args.filter.clone(),
        ignore_checksums: args.no_checksums,
        local_nets: args.local_nets.clone(),
        hash_files: args.hash_files,
        inner_protocols: args.inner_protocols,
        seed: args.seed,
        community_seed: args.community_seed,
        ..Settings::default()
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let options = PlanOptions { tasks: args.tasks, warm_up: args.warm_up.parse().ok(), threads };
    let planned = match plan(&args.files, &settings, &options) {
        Ok(planned) => planned,
        Err(error) => return Ok(refuse(&error, &terminal)),
    };
    let text = match args.json {
        true => format!("{:#}\n", planned.to_json()),
        false => lines(&planned),
    };
    for (log, why) in &planned.left_out {
        terminal.note(&format_args!("tasks cannot write {log}.log: {why}"));
    }
    out::write(text.as_bytes())
}

/// One line per task: number, packets, files.
fn lines(planned: &Plan) -> String {
    let mut text = String::new();
    for task in &planned.tasks {
        let own: Vec<_> = task.files.iter().filter(|f| f.is_own).collect();
        let names = match own[..] {
            [] => String::new(),
            [one] => one.path.display().to_string(),
            [first, .., last] => format!("{} to {}", first.path.display(), last.path.display()),
        };
        let packets = task.packets.1 - task.packets.0;
        let warm = task.files.iter().take_while(|f| !f.is_own).count();
        let (index, files) = (task.index, own.len());
        let number = |n: u64, what| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (packets, files) = (number(packets, "packet"), number(files as u64, "file"));
        let before = number(warm as u64, "file");
        text.push_str(&format!("{index}\t{packets}\t{files}\t{before} before\t{names}\n"));
    }
    text
}

pub(crate) fn run_task(args: &RunArgs) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    let mut logs = gannet_log::Options::default();
    if let Err(LeftOut(what)) = args.formats.apply(&mut logs) {
        return Ok(left_out::report(&what, "columns"));
    }
    if logs.outputs.is_empty() {
        logs.outputs.push(std::sync::Arc::new(TextOutput { format: logs.format, extension: None }));
    }
    if let Some(words) = args.formats.without_effect(false) {
        terminal.error(&words);
        return Ok(Outcome::NoCapture);
    }
    let mut task = match read(&args.plan, args.number) {
        Ok(task) => task,
        Err(error) => return Ok(refuse(&error, &terminal)),
    };
    task.settings.threads = Some(args.threads);
    let stop = Stop::on_signals().context("signals")?;
    let mut scan = match task.scan() {
        Ok(scan) => scan,
        Err(error) => return Ok(refuse(&error, &terminal)),
    };
    paths::make_folder(&args.out, "--out")?;
    logs.dir = Some(args.out.clone());
    logs.columns.clone_from(&task.settings.columns);
    logs.format = Format::Packed;
    let mut to = Writers::new(&logs, &task);
    let mut outcome = Outcome::Done;
    loop {
        if let Some(stopped) = stop.requested() {
            return Ok(stopped);
        }
        match scan.next(Duration::from_millis(100)) {
            Ok(Next::Batch(batch)) => to.write(&batch)?,
            Ok(Next::Nothing) => {}
            Ok(Next::Damage(error)) => {
                terminal.error(&error);
                outcome = outcome.max(Outcome::of(&error, true));
            }
            Ok(Next::End(_)) => {
                scan.remarks().iter().for_each(|remark| terminal.warning(remark));
                break;
            }
            Err(error) => {
                terminal.error(&error);
                outcome = outcome.max(Outcome::Failed);
                break;
            }
        }
    }
    to.close()?;
    Ok(outcome)
}

/// Reads a task: that of the given number in a plan, or the only one of the file.
fn read(path: &Path, number: Option<usize>) -> Result<Task, Error> {
    let text = match path == Path::new("-") {
        true => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => fs::read_to_string(path),
    };
    let file = || path.to_owned();
    if text.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidData) {
        let why = format!("{}: not a text file; a plan is JSON", path.display());
        return Err(Error::Invalid { what: "plan", why });
    }
    let text = text.map_err(|source| gannet_capture::Error::Io { file: file(), source })?;
    let invalid = |error| {
        let why = format!("{}: {error}", path.display());
        Error::Invalid { what: "plan", why }
    };
    let value: Value = serde_json::from_str(&text).map_err(invalid)?;
    let Some(tasks) = value["tasks"].as_array() else { return Task::from_json(&value) };
    let task = match number {
        Some(number) => tasks.get(number),
        None if tasks.len() == 1 => tasks.first(),
        None => None,
    };
    let why = || {
        let given = number.map_or_else(|| "none is given".to_owned(), |n| format!("{n} is given"));
        match tasks.len() {
            0 => format!("{given}, but the plan has no tasks"),
            1 => format!("{given}, but the plan has one task, 0"),
            count => format!("{given}, but the plan has the tasks 0 to {}", count - 1),
        }
    };
    Task::from_json(task.ok_or_else(|| Error::Invalid { what: "number of a task", why: why() })?)
}

/// Writers of the logs of a task in all requested formats.
struct Writers {
    writers: Vec<Box<dyn PackedWriter>>,
    settings: Settings,
    opened: Time,
    /// The columns of each log, for the lifetime of the process.
    fields: Vec<(&'static str, &'static [Field])>,
    rows: RowPacker,
}

impl Writers {
    fn new(logs: &gannet_log::Options, task: &Task) -> Self {
        Self {
            writers: logs.outputs.iter().map(|output| output.open(logs)).collect(),
            settings: task.settings.clone(),
            // The time of opening depends on the task alone, so that each run writes the same bytes.
            opened: Time::from_nanos(task.span.0.max(0)),
            fields: Vec::new(),
            rows: RowPacker::default(),
        }
    }

    fn write(&mut self, batch: &LogBatch) -> anyhow::Result<()> {
        let known =
            self.fields.iter().find(|(log, _)| *log == batch.log).map(|(_, fields)| *fields);
        let fields = match known {
            Some(fields) => fields,
            None => {
                let fields: &'static [Field] = fields_of(batch.log, &self.settings)?.leak();
                self.fields.push((batch.log, fields));
                fields
            }
        };
        let order: Vec<_> = (0..batch.rows.num_rows()).collect();
        self.rows.clear();
        pack_rows(&batch.rows, &order, &mut self.rows)?;
        let stream = PackedStream::new(batch.log, fields, self.opened);
        for writer in &mut self.writers {
            writer.write(&stream, PackedRows::new(self.rows.rows()))?;
        }
        Ok(())
    }

    fn close(mut self) -> anyhow::Result<()> {
        let opened = self.opened;
        let closed = self.writers.iter_mut().map(|writer| writer.close(opened));
        // Logs that could be written are complete even if another could not.
        let closed: Vec<io::Result<()>> = closed.collect();
        Ok(closed.into_iter().collect::<io::Result<()>>()?)
    }
}

fn refuse(error: &Error, terminal: &Terminal) -> Outcome {
    terminal.error(error);
    match error {
        Error::Capture(error) => Outcome::of(error, false),
        Error::Analysis(_) | Error::Columns(_) => Outcome::Failed,
        _ => Outcome::NoCapture,
    }
}
