//! The loop of a live capture.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context as _;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_capture::Batch;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_filter::Insn;
use gannet_filter::dlt;
use gannet_live::Interface;
use gannet_live::Next;
use gannet_live::RingOptions;
use gannet_live::Sandbox;
use gannet_live::Source;
use gannet_live::SourceOptions;
use gannet_log::LiveFiles;
use gannet_log::LogLosses;
use serde_json::Value;

use super::archive;
use super::archive::Archive;
use super::args::Args;
use super::args::LogFormat;
use super::args::SandboxMode;
use super::metrics;
use super::notify::Manager;
use super::reload::Reload;
use super::reload::changes;
use super::sinks;
use super::sinks::Sink;
use super::snapshot::Latest;
use super::snapshot::Snapshot;
use super::snapshot::resident;
use super::talkers::Talkers;
use super::times;
use crate::left_out;
use crate::memory;
use crate::names::System;
use crate::outcome::Outcome;
use crate::stop::Stop;
use crate::tally::Tally;

/// Maximum delay between a packet and the write of its rows.
const MAX_ROW_DELAY: Duration = Duration::from_millis(20);
/// Interval of periodic work.
const TICK: Duration = Duration::from_secs(1);
/// Maximum time until a signal is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// After this time without packets, network time follows the clock.
const IDLE_TIME: Duration = Duration::from_secs(1);
/// The kernel may deliver packets this late, so network time stays this far behind the clock.
const KERNEL_DELAY: Interval = Interval::from_millis(100);
/// How long packets that arrived before the signal to stop are still read.
const DRAIN_TIME: Duration = Duration::from_millis(50);
/// Maximum time of reading these packets: those left after it are dropped and counted.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(30);
/// Interval between rows of stats.log.
const STATS_INTERVAL: Duration = Duration::from_secs(300);
/// Interval between samples of the analysis state, each of which reads the tables.
const GAUGE_INTERVAL: Duration = Duration::from_secs(10);
/// Minimum number of blocks in a ring for shards to hold blocks.
const MIN_SHARED_BLOCKS: usize = 64;

/// The reason why a capture cannot start.
pub(crate) enum Failure {
    /// A requested option is not possible.
    Usage(Box<dyn Display>),
    /// A feature that this build does not include, which is already reported.
    LeftOut,
    Other(anyhow::Error),
}

impl<T: Into<anyhow::Error>> From<T> for Failure {
    fn from(error: T) -> Self {
        Self::Other(error.into())
    }
}

/// A live capture.
pub(crate) struct Sensor {
    source: Source,
    engine: Engine,
    stop: Stop,
    /// Whether a table of counts is printed at the end.
    has_table: bool,
    manager: Manager,
    losses: LogLosses,
    archive: JoinHandle<()>,
    sinks: Vec<(Sink, JoinHandle<()>)>,
    latest: Latest,
    snapshot: Snapshot,
    /// The snapshot at the last row of stats.log.
    last_row: (Snapshot, Instant),
    gauged: Instant,
    /// Counters of hosts and services while `gannet top` requests them.
    talkers: Option<Talkers>,
    rotate: Option<(Duration, Time)>,
    rules: archive::Rules,
    /// The reader of options, and their current values.
    reload: Option<(Reload, BTreeMap<String, String>)>,
    until: Option<Instant>,
    start_time: Instant,
    has_threads: bool,
    has_few_blocks: bool,
    serves_metrics: bool,
    down: Vec<String>,
    /// Re-created interfaces that are not captured on, with the interface number that was reported.
    refused: BTreeMap<String, u32>,
    folder: String,
}

/// Deferred work of the loop.
struct Pending {
    /// Whether rows may be buffered.
    dirty: bool,
    flushed: Instant,
    tick: Instant,
    packet: Instant,
    stopping: Option<Instant>,
}

impl Sensor {
    pub(crate) fn open(
        args: &Args,
        mut options: Options,
        filter: Option<&str>,
        (out, extract): (&Path, Option<&Path>),
        quiet: bool,
    ) -> Result<Self, Failure> {
        memory::allow_huge_pages();
        if out == Path::new("-") {
            return Err(Failure::Usage(Box::new("--out -: a live capture writes to a folder")));
        }
        if args.rotate.is_none() && (args.rotate_to.is_some() || args.rotate_compress.is_some()) {
            tracing::info!("without --rotate, logs are rotated only on SIGUSR1 and at the end");
        }
        if cfg!(not(feature = "kafka")) && args.kafka.is_some() {
            left_out::report(&"--kafka", "kafka");
            return Err(Failure::LeftOut);
        }
        if let Some(program) = &args.postprocessor {
            archive::check_program(program).map_err(|why| Failure::Usage(Box::new(why)))?;
        }
        if let Some(user) = &args.user {
            gannet_live::user_ids(user).map_err(|error| Failure::Usage(Box::new(error)))?;
        }
        let usage = |error: gannet_live::Error| Failure::Usage(Box::new(error));
        let mut interfaces: Vec<Interface> = Vec::new();
        for name in &args.interfaces {
            if !interfaces.iter().any(|i| i.name == *name) {
                interfaces.push(Interface::named(name).map_err(usage)?);
            }
        }
        let manager = Manager::from_environment();
        fs::create_dir_all(out).with_context(|| out.display().to_string())?;

        let ring = RingOptions::with_size(args.ring_size).map_err(usage)?;
        let ring = RingOptions { promiscuous: !args.no_promiscuous, ..ring };
        let has_threads = options.threads > 1;
        let batch_packets =
            if has_threads { gannet_capture::BATCH_PACKETS } else { gannet_capture::NEAR_PACKETS };
        let reopens = args.sandbox == SandboxMode::Off;
        let source = SourceOptions { ring, sockets: args.sockets, batch_packets, reopens };
        let source = Source::open(&interfaces, source, |i| program(filter, i)).map_err(usage)?;
        for interface in &interfaces {
            let on = interface.joining_offloads();
            if !on.is_empty() {
                let (name, on) = (&interface.name, on.join(" and "));
                tracing::warn!(interface = %name, "{name}: {on} merges packets before they are captured; 'ethtool -K {name} gro off lro off' turns it off");
            }
        }
        if source.refused_filter() {
            tracing::warn!(
                "the filter is too long for the kernel; gannet reads every packet and applies the filter itself"
            );
        }
        let listener =
            args.metrics.map(|at| TcpListener::bind(at).with_context(|| format!("--metrics {at}")));
        let listener = listener.transpose()?;
        // Files are only created after everything else succeeded.
        let (completed, files) = channel();
        let losses = LogLosses::default();
        let live = LiveFiles {
            names: args.rotate_names.into(),
            rotates: args.rotate.is_some() || args.rotate_to.is_some(),
            offset: times::offset,
            completed,
            losses: losses.clone(),
        };
        let logs: Vec<&'static str> = gannet_engine::schemas().iter().map(|s| s.path).collect();
        let left = live.recover(out, &logs).with_context(|| out.display().to_string())?;
        if left > 0 {
            let out = out.display();
            tracing::info!(
                files = left,
                "{out}: renamed {left} log files of an earlier run by their time"
            );
        }
        options.logs.dir = Some(out.to_owned());
        options.logs.live = Some(live);
        // From here on the process and threads started later have only the rights that they need.
        enter(args, out, extract)?;
        let stop = Stop::of_sensor().context("cannot handle signals")?;
        let rules = archive::Rules::default();
        rules.set(args);
        let archive = Archive::new(args, rules.clone(), out, logs);
        let archive = archive::start(archive, files).context("cannot start the archive thread")?;
        let latest = Latest::default();
        if let Some(listener) = listener {
            let at = listener.local_addr()?;
            metrics::serve(listener, latest.clone()).context("cannot start the metrics thread")?;
            tracing::info!(address = %at, "metrics at http://{at}/metrics");
        }
        let mut sinks = Vec::new();
        let spool = args.spool();
        for target in args.targets() {
            let context = target.to_string();
            sinks.push(Sink::start(target, spool.as_ref()).context(context)?);
        }
        let outputs: Vec<Sink> = sinks.iter().map(|(sink, _)| sink.clone()).collect();
        if !outputs.is_empty() {
            sinks::add(&mut options.logs, &outputs);
        }
        let names: Vec<&str> = interfaces.iter().map(|i| i.name.as_str()).collect();
        let names = names.join(", ");
        let has_few_blocks = ring.blocks < MIN_SHARED_BLOCKS as u32;
        let now = Instant::now();
        let sensor = Self {
            source,
            engine: Engine::new(options),
            stop,
            has_table: !quiet && args.log_format == LogFormat::Text,
            manager,
            losses,
            archive,
            sinks,
            latest,
            snapshot: Snapshot::default(),
            last_row: (Snapshot::default(), now),
            gauged: now,
            talkers: None,
            rotate: args.rotate.map(|every| (every, times::next_multiple(Source::clock(), every))),
            rules,
            reload: args.reload.clone().and_then(|reload| {
                let values = reload.read().ok()?.values;
                Some((reload, values))
            }),
            until: args.duration.map(|duration| now + duration),
            start_time: now,
            has_threads,
            has_few_blocks,
            serves_metrics: args.metrics.is_some(),
            down: Vec::new(),
            refused: BTreeMap::new(),
            folder: out.display().to_string(),
        };
        tracing::info!(interfaces = %names, "capturing on {names}");
        sensor.manager.ready(&format!("capturing on {names}"));
        Ok(sensor)
    }

    /// Captures until a signal arrives.
    pub(crate) fn run(mut self) -> anyhow::Result<Outcome> {
        let now = Instant::now();
        let mut pending =
            Pending { dirty: false, flushed: now, tick: now, packet: now, stopping: None };
        loop {
            if pending.stopping.is_none() && self.is_over() {
                self.manager.stopping();
                self.source.stop();
                pending.stopping = Some(Instant::now());
            }
            let stopping = pending.stopping.map(|since| since.elapsed());
            if stopping.is_some_and(|since| since > MAX_DRAIN_TIME) {
                self.source.drop_rest();
                break;
            }
            match self.source.packets() {
                Next::Packets(batch) => {
                    if let Some(talkers) = &mut self.talkers {
                        talkers.add(&batch);
                    }
                    let analysed = analyse(&mut self.engine, &batch, &mut self.snapshot);
                    report(analysed);
                    pending.dirty = true;
                    pending.packet = Instant::now();
                    if self.has_threads && self.has_few_blocks {
                        self.flush(&mut pending);
                    }
                }
                Next::Idle if stopping.is_some_and(|since| since > DRAIN_TIME) => break,
                Next::Idle => self.idle(&mut pending)?,
            }
            if pending.tick.elapsed() >= TICK {
                self.tick(&mut pending);
            }
        }
        self.end()
    }

    fn is_over(&self) -> bool {
        self.stop.requested().is_some() || self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn flush(&mut self, pending: &mut Pending) {
        report(self.engine.flush());
        pending.dirty = false;
        pending.flushed = Instant::now();
    }

    /// Handles a moment without packets.
    fn idle(&mut self, pending: &mut Pending) -> anyhow::Result<()> {
        // A block held by a shard would make poll(2) return at once.
        if pending.dirty && (self.has_threads || pending.flushed.elapsed() >= MAX_ROW_DELAY) {
            self.flush(pending);
        }
        let mut wait = if pending.dirty { MAX_ROW_DELAY } else { POLL_INTERVAL };
        if pending.stopping.is_some() {
            wait = MAX_ROW_DELAY;
        }
        wait = wait.min(TICK.saturating_sub(pending.tick.elapsed()));
        if let Some(until) = self.until {
            wait = wait.min(until.saturating_duration_since(Instant::now()));
        }
        self.source.wait(wait.max(Duration::from_millis(1))).context("waiting for packets")
    }

    /// Does the periodic work.
    fn tick(&mut self, pending: &mut Pending) {
        pending.tick = Instant::now();
        let clock = Source::clock();
        if pending.packet.elapsed() >= IDLE_TIME {
            let number = self.source.skip_number();
            report(self.engine.advance(number, clock - KERNEL_DELAY));
            self.snapshot.lag = 0.0;
        }
        let is_requested = self.stop.take_rotate_request();
        let is_due = self.rotate.is_some_and(|(_, at)| clock >= at);
        if is_requested || is_due {
            if let Some((every, at)) = &mut self.rotate {
                *at = times::next_multiple(clock, *every);
            }
            self.with_logs(gannet_log::Logs::rotate);
        }
        if self.stop.take_reopen_request() {
            self.with_logs(gannet_log::Logs::reopen);
            tracing::info!("reopened the log files");
            self.reload();
        }
        self.flush(pending);
        let is_row = self.last_row.1.elapsed() >= STATS_INTERVAL;
        let is_watched = self.serves_metrics && self.latest.is_watched();
        let is_old = self.serves_metrics && self.gauged.elapsed() >= GAUGE_INTERVAL;
        if is_row || is_watched || is_old {
            self.gauged = Instant::now();
            self.snapshot.gauge = self.engine.gauge();
        }
        self.update_snapshot();
        if is_watched {
            match &mut self.talkers {
                Some(talkers) => talkers.second(&mut self.snapshot.talkers),
                None => self.talkers = Some(Talkers::new()),
            }
        } else {
            (self.talkers, self.snapshot.talkers) = (None, Value::Null);
        }
        if is_row {
            self.write_statistics();
        }
        self.latest.set(&self.snapshot);
        for message in self.losses.take_messages() {
            tracing::warn!("{message}");
        }
        self.report_link_changes();
        self.manager.ping_watchdog();
    }

    /// Applies changes of the file of options, and reports changes that need a restart.
    fn reload(&mut self) {
        let Some((reload, before)) = &mut self.reload else { return };
        let file = reload.file.display();
        let read = match reload.read() {
            Ok(read) => read,
            Err(words) => {
                let words = words.trim_end();
                tracing::error!("{words}; the options are unchanged");
                return;
            }
        };
        let (mut reloadable, mut others) = changes(before, &read.values);
        // With and without --rotate, files are named differently from the start.
        if read.args.rotate.is_some() != self.rotate.is_some() {
            reloadable.retain(|name| *name != "rotate");
            others.push("rotate");
        }
        if let Some((every, at)) = &mut self.rotate
            && let Some(new) = read.args.rotate
            && new != *every
        {
            (*every, *at) = (new, times::next_multiple(Source::clock(), new));
        }
        self.rules.set(&read.args);
        if reloadable.contains(&"duration") {
            self.until = read.args.duration.map(|duration| self.start_time + duration);
        }
        match reloadable.is_empty() {
            true => tracing::info!(%file, "{file}: no change that applies without a restart"),
            false => {
                let options = reloadable.join(", ");
                tracing::info!(%file, %options, "{file}: applied: {options}");
            }
        }
        if !others.is_empty() {
            let others = others.join(", ");
            tracing::warn!(%file, options = %others, "{file}: changes need a restart: {others}");
        }
        for name in reloadable.into_iter().map(str::to_owned).collect::<Vec<_>>() {
            match read.values.get(&name) {
                Some(value) => drop(before.insert(name, value.clone())),
                None => drop(before.remove(&name)),
            }
        }
    }

    fn with_logs(&mut self, work: impl FnOnce(&mut gannet_log::Logs)) {
        report(self.engine.with_logs(work).map(|_| ()));
    }

    /// Updates the snapshot.
    fn update_snapshot(&mut self) {
        let now = &mut self.snapshot;
        now.time = Source::clock();
        now.ledger = self.source.ledger();
        let statistics = self.engine.statistics();
        (now.packets, now.bytes) = (statistics.packets, statistics.bytes);
        now.filtered = statistics.filtered;
        now.discarded = self.losses.rows();
        now.sinks = self.sinks.iter().map(|(sink, _)| sink.counts()).collect();
        now.memory = resident();
        if let Ok(Some(counts)) = self.engine.with_logs(|logs| logs.counts()) {
            now.rows = counts.iter().map(|count| (count.path, count.rows)).collect();
        }
    }

    /// Writes a row of stats.log.
    fn write_statistics(&mut self) {
        let row = self.snapshot.row(&self.last_row.0, "gannet");
        let written = self.engine.with_logs(|logs| {
            logs.set_time(row.ts);
            logs.write(&row);
        });
        report(written.map(|_| ()));
        self.last_row = (self.snapshot.clone(), Instant::now());
    }

    /// Reports interfaces that went down or up.
    fn report_link_changes(&mut self) {
        let down = self.source.down();
        for name in self.source.take_reopened() {
            tracing::info!(interface = %name, "{name} was created again; capturing resumed");
            self.down.retain(|down| *down != name);
        }
        for name in down.iter().filter(|name| !self.down.contains(name)) {
            tracing::warn!(interface = %name, "{name} is down; capturing resumes when it is up");
        }
        for name in self.down.iter().filter(|name| !down.contains(name)) {
            tracing::info!(interface = %name, "{name} is up again");
        }
        self.down = down;
        for (name, (index, error)) in self.source.refused() {
            if self.refused.insert(name.clone(), *index) != Some(*index) {
                tracing::warn!(
                    interface = %name,
                    "{name} was created again, but capturing did not resume: {error}; restart gannet"
                );
            }
        }
    }

    fn end(mut self) -> anyhow::Result<Outcome> {
        self.snapshot.gauge = self.engine.gauge();
        self.update_snapshot();
        self.write_statistics();
        let Self { engine, archive, sinks, has_table, losses, mut snapshot, .. } = self;
        let finished = engine.finish();
        // The logs are closed, which drops the last sender of files.
        if archive.join().is_err() {
            tracing::error!(
                "the archive thread ended early; some rotated files may not be archived"
            );
        }
        sinks.iter().for_each(|(sink, _)| sink.end());
        snapshot.sinks.clear();
        for (sink, thread) in sinks {
            if thread.join().is_err() {
                tracing::error!(sink = %sink.target, "{}: the thread that sends rows ended early", sink.target);
            }
            snapshot.sinks.push(sink.counts());
        }
        snapshot.discarded = losses.rows();
        for message in losses.take_messages() {
            tracing::warn!("{message}");
        }
        let (statistics, counts) = finished?;
        let mut tally = Tally::default();
        tally.add(statistics, &counts);
        tally.set_folder(self.folder);
        tally.set_elapsed(self.start_time.elapsed());
        if has_table {
            let counts = tally.to_string();
            // If standard error is closed, the table cannot be printed.
            let _ = writeln!(std::io::stderr(), "{snapshot}{}", counts.trim_end());
        } else {
            snapshot.report_losses();
        }
        if !snapshot.discarded.is_empty() {
            return Ok(Outcome::Failed);
        }
        Ok(Outcome::Done)
    }
}

/// Drops the rights that the capture does not need.
fn enter(args: &Args, out: &Path, extract: Option<&Path>) -> Result<(), Failure> {
    let mut write = vec![out.to_owned()];
    write.extend(extract.map(Path::to_owned));
    if let Some(template) = &args.rotate_to {
        let root = archive::root(template);
        fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
        write.push(root);
    }
    if let Some(spool) = &args.spool {
        fs::create_dir_all(spool).with_context(|| spool.display().to_string())?;
        write.push(spool.clone());
    }
    let usage = |error: gannet_live::Refused| Failure::Usage(Box::new(error));
    if let Some(user) = &args.user {
        let (uid, gid) = gannet_live::user_ids(user).map_err(usage)?;
        for folder in &write {
            chown(folder, Some(uid), Some(gid)).with_context(|| folder.display().to_string())?;
        }
    }
    let mut read = sinks::paths(&args.targets());
    // The folder of the file: editors replace a file by a new one of the same name.
    let file = args.reload.as_ref().and_then(|reload| reload.file.parent());
    read.extend(
        file.map(|folder| if folder == Path::new("") { ".".into() } else { folder.into() }),
    );
    let sandbox = Sandbox {
        write,
        read,
        connects: !args.targets().is_empty(),
        executes: args.postprocessor.is_some(),
        user: args.user.clone(),
    };
    let missing = sandbox.enter(args.sandbox.into()).map_err(usage)?;
    if !missing.is_empty() {
        let missing = missing.join(", ");
        tracing::info!(%missing, "sandbox: not enforced: {missing}");
    }
    Ok(())
}

fn analyse(engine: &mut Engine, batch: &Batch<'_>, now: &mut Snapshot) -> std::io::Result<()> {
    let last = batch.len().checked_sub(1).and_then(|last| batch.time(last));
    let analysed = engine.batch(batch);
    if let Some(time) = last {
        now.lag = ((Source::clock() - time).as_secs_f64()).max(0.0);
    }
    analysed
}

/// Reports an error of a log, which does not end the capture.
fn report(done: std::io::Result<()>) {
    if let Err(error) = done {
        tracing::error!(%error, "{error}");
    }
}

/// The filter compiled for the frames of an interface, if there is a filter.
pub(crate) fn program(filter: Option<&str>, interface: &Interface) -> Option<Vec<Insn>> {
    let link = dlt::of_file(interface.link_type.0);
    let options = gannet_filter::Options::default();
    let compiled = gannet_filter::compile(filter?, link, &options, &System::new()).ok()?;
    Some(compiled.program().insns().to_vec())
}
