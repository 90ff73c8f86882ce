//! A pipeline: a stream of captures, its filters, and its final operation (verb).
//!
//! A worker pool of one thread or several works on batches; see [`gather`](super::gather). The
//! results are returned in order, together with the packets that need an [`Extractor`]. A verb runs
//! in steps, so that a script can report progress between them.

use std::path::PathBuf;

use gannet_base::Time;
use gannet_capture::FileId;
use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_capture::Options;
use gannet_capture::Packet;
use gannet_capture::Stream;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_pipeline::extract::Extractor;
use gannet_pipeline::extract::Message;
use gannet_pipeline::pace::Pace;
use gannet_pipeline::pace::Schedule;
use gannet_pipeline::split::Split;
use gannet_pipeline::worker_pool::Block;
use gannet_pipeline::worker_pool::Progress;
use gannet_pipeline::worker_pool::WorkerPool;
use gannet_pipeline::worker_pool::batches_between_reads;

use crate::stop;
use crate::stop::ReadingPipe;
use crate::stop::Writing;

use super::gather::Choice;
use super::gather::GatherWorker;
use super::gather::Output;
use super::gather::Task;
use super::group::Counts;
use super::group::Groups;
use super::join::Join;
use super::latency::Latencies;
use super::latency::Sent;
use super::latency::Summary;
use super::pairing::Pairing;
use super::record::Record;
use super::record::Records;
use super::record::of_packet;

/// Maximum number of blocks that one step of a verb processes.
const STEP: usize = 64;
/// Maximum number of threads of a pipeline.
pub(crate) const MAX_THREADS: usize = 256;

/// A pipeline.
pub(crate) struct Flow {
    source: Source,
    /// Identities of the input files.
    inputs: Vec<FileId>,
    /// Exists until the end of the input, if that is a pipe.
    pipe: Option<ReadingPipe>,
    choice: Choice,
    threads: usize,
    pace: Option<Schedule>,
    join: Option<Box<Join>>,
    /// Reassembles streams and fragments.
    extractor: Option<Box<Extractor>>,
    verb: Verb,
    /// Remaining number of packets, messages or queries, if limited.
    left: Option<u64>,
    records: Records,
    /// Messages from the extractor.
    extracted: Records,
    /// Messages in order, before they are joined.
    ordered: Records,
    /// The block that records of packets point into.
    current_block: Option<Block<Output>>,
    counts: Counts,
    /// The damage of a capture; reported at the end.
    damage: Option<String>,
    progress: Progress,
}

enum Source {
    /// Reading has not started.
    Waiting(Box<Stream>),
    Running(Box<WorkerPool<GatherWorker>>),
    Ended,
}

/// The verb of the pipeline, unless it returns records.
enum Verb {
    Nothing,
    Sum(Groups),
    Times(Pairing, Box<Latencies>, Vec<Sent>),
    Write(Vec<Writer>, Split, Writing),
}

impl Flow {
    pub(crate) fn open(paths: &[PathBuf]) -> Result<Self, gannet_capture::Error> {
        // Before waiting for the first bytes.
        let pipe = ReadingPipe::begin(paths);
        let stream = Stream::open(paths, Options::default())?;
        Ok(Self {
            progress: Progress::of(&stream),
            source: Source::Waiting(Box::new(stream)),
            inputs: paths.iter().filter_map(|path| FileId::of(path)).collect(),
            pipe,
            choice: Choice::default(),
            threads: 1,
            pace: None,
            join: None,
            extractor: None,
            verb: Verb::Nothing,
            left: None,
            records: Records::default(),
            extracted: Records::default(),
            ordered: Records::default(),
            current_block: None,
            counts: Counts::default(),
            damage: None,
        })
    }

    pub(crate) fn filter(&mut self, expression: &str) -> Result<(), gannet_filter::Error> {
        self.choice.filters.push(gannet_filter::Filter::parse(expression)?);
        Ok(())
    }

    pub(crate) fn dns(&mut self, ports: &[u16]) {
        self.choice.ports = Some(ports.to_vec());
        self.extractor = Some(Box::new(Extractor::new(ports)));
    }

    pub(crate) fn only(&mut self, queries: bool) {
        self.choice.only_queries = Some(queries);
    }

    pub(crate) fn join(&mut self, timeout: i64) {
        self.join = Some(Box::new(Join::new(timeout)));
    }

    pub(crate) fn parallel(&mut self, threads: usize) {
        self.threads = threads.clamp(1, MAX_THREADS);
    }

    /// Delays returned or written items until they are due.
    pub(crate) fn pace(&mut self, pace: Pace) {
        self.pace = Some(Schedule::new(pace));
    }

    /// Waits until an item with this capture time is due, if a pace is set.
    pub(crate) fn wait(&mut self, time: i64) {
        if let Some(pace) = &mut self.pace {
            pace.wait(time);
        }
    }

    pub(crate) fn records(&self) -> &[Record] {
        &self.records.list
    }

    pub(crate) fn names(&self) -> &[u8] {
        &self.records.names
    }

    /// The progress of reading.
    pub(crate) fn progress(&self) -> Progress {
        match &self.source {
            Source::Running(worker_pool) => worker_pool.progress(),
            _ => self.progress,
        }
    }

    /// Reads the next batch with records; returns their number, 0 at the end. Damage of a capture
    /// is an error at the end, after all readable records were returned.
    pub(crate) fn next(&mut self) -> Result<usize, String> {
        self.records.clear();
        if let (Some(block), Source::Running(worker_pool)) =
            (self.current_block.take(), &self.source)
        {
            worker_pool.recycle(block);
        }
        while self.records.list.is_empty() {
            let Some(mut block) = self.block(|_| Task::Records)? else {
                let Some(join) = &mut self.join else { break };
                join.finish(&mut self.records);
                self.join = None;
                continue;
            };
            if self.extractor.is_some() {
                self.messages_of(&mut block);
            } else {
                std::mem::swap(&mut self.records, &mut block.output.records);
            }
            self.current_block = Some(block);
        }
        if self.extractor.is_some() {
            self.records.set_addresses();
        }
        if self.records.list.is_empty() {
            self.note_unanswered();
        }
        match self.damage.take_if(|_| self.records.list.is_empty()) {
            Some(damage) => Err(damage),
            None => Ok(self.records.list.len()),
        }
    }

    /// Collects the records of messages, including those of the extractor, and joins them.
    fn messages_of(&mut self, block: &mut Block<Output>) {
        self.extracted.clear();
        let extracted = &mut self.extracted;
        extract(&mut self.extractor, &self.choice, block, |number, m| {
            extracted.add(number, m);
            true
        });
        let plain = &mut block.output.records;
        let ordered = match self.extracted.list.is_empty() {
            true => plain,
            false => {
                self.ordered.clear();
                self.ordered.add_merged(plain, &self.extracted);
                &mut self.ordered
            }
        };
        match &mut self.join {
            Some(join) => join.add(ordered, &mut self.records),
            None => std::mem::swap(ordered, &mut self.records),
        }
    }

    /// The next processed block; `None` at the end. The first call starts the workers with the task
    /// from `task`.
    fn block(&mut self, task: impl FnOnce(&Self) -> Task) -> Result<Option<Block<Output>>, String> {
        if matches!(self.source, Source::Waiting(_)) {
            let batches_between_reads = batches_between_reads(self.threads);
            let gather = GatherWorker {
                choice: self.choice.clone(),
                task: task(self),
                batches_between_reads,
            };
            let waiting = std::mem::replace(&mut self.source, Source::Ended);
            let Source::Waiting(mut stream) = waiting else { return Ok(None) };
            stream.set_unpack_threads(self.threads);
            let worker_pool = WorkerPool::start(*stream, self.threads, || gather.clone());
            self.source =
                Source::Running(Box::new(worker_pool.map_err(|e| format!("a thread: {e}"))?));
        }
        loop {
            let Source::Running(worker_pool) = &mut self.source else { return Ok(None) };
            match worker_pool.next_block() {
                Ok(Some(block)) => return Ok(Some(block)),
                Ok(None) => {
                    self.end();
                    return Ok(None);
                }
                Err(error) => {
                    self.damage.get_or_insert_with(|| error.to_string());
                }
            }
        }
    }

    /// Stops reading, and collects the state of the workers.
    fn end(&mut self) {
        self.progress = self.progress();
        self.pipe = None;
        let Source::Running(mut worker_pool) = std::mem::replace(&mut self.source, Source::Ended)
        else {
            return;
        };
        for worker in worker_pool.finish() {
            if let (Task::Sum(mut theirs), Verb::Sum(groups)) = (worker.task, &mut self.verb) {
                groups.merge(&mut theirs);
            }
        }
    }

    /// Starts a sum by fields: adds the field `value` of each packet, message or pair, or 1 if
    /// `value` is 0.
    pub(crate) fn begin_sum(&mut self, value: u8, fields: &[u8], limit: Option<u64>) {
        self.verb = Verb::Sum(Groups::new(value, fields));
        self.left = limit;
    }

    /// Starts the measurement of response times, with the timeout of the join.
    pub(crate) fn begin_latencies(&mut self, limit: Option<u64>) -> Result<(), String> {
        let timeout = self.join.as_ref().map_or(i64::MAX, |join| join.timeout());
        let latencies = Latencies::new(timeout).ok_or("no memory for a histogram")?;
        self.verb = Verb::Times(Pairing::default(), Box::new(latencies), Vec::new());
        self.left = limit;
        Ok(())
    }

    /// Starts writing packets to captures, distributed by `split`.
    pub(crate) fn begin_write(
        &mut self,
        paths: &[PathBuf],
        split: Split,
        limit: Option<u64>,
    ) -> Result<(), String> {
        let create = |(at, path): (usize, &PathBuf)| {
            // Several outputs may be the same pipe or device, but not the same file, where they
            // would overwrite each other.
            let is_file = path.metadata().map_or(true, |about| about.is_file());
            if is_file && paths.iter().take(at).any(|other| other == path) {
                return Err(format!("{} is already an output", path.display()));
            }
            if FileId::of(path).is_some_and(|id| self.inputs.contains(&id)) {
                return Err(format!("{} is an input: write to another file", path.display()));
            }
            Writer::create(path, WriteOptions::default()).map_err(|e| e.to_string())
        };
        let writers: Result<Vec<_>, _> = paths.iter().enumerate().map(create).collect();
        self.verb = Verb::Write(writers?, split, Writing::begin());
        self.left = limit;
        Ok(())
    }

    /// Continues; returns whether there is more to do. Damage is an error at the end.
    pub(crate) fn step(&mut self) -> Result<bool, String> {
        let joined = self.join.is_some() && matches!(self.verb, Verb::Sum(_));
        for _ in 0..STEP {
            if stop::is_requested() {
                self.end();
                self.conclude()?;
                return Err(stop::STOPPED.to_owned());
            }
            let more = match joined {
                true => self.sum_records()?,
                false => self.step_block()?,
            };
            if !more {
                self.end();
                self.conclude()?;
                self.note_unanswered();
                return self.damage.take().map_or(Ok(false), Err);
            }
        }
        Ok(true)
    }

    /// Writes a packet that is not part of the input to all captures.
    pub(crate) fn put(
        &mut self,
        time: i64,
        link_type: u16,
        data: &[u8],
        wire_len: u32,
    ) -> Result<(), String> {
        if stop::is_requested() {
            self.complete()?;
            return Err(stop::STOPPED.to_owned());
        }
        let Verb::Write(writers, ..) = &mut self.verb else { return Ok(()) };
        let packet = Packet {
            time: Time::from_nanos(time),
            wire_len,
            link_type: LinkType(link_type),
            interface: 0,
            format: Format::Pcap,
            number: 0,
            data,
        };
        writers.iter_mut().try_for_each(|w| w.write(&packet).map_err(|e| e.to_string()))
    }

    /// Stops reading, and completes the written captures.
    pub(crate) fn complete(&mut self) -> Result<(), String> {
        self.end();
        self.conclude()
    }

    /// Processes one block; returns whether another may follow.
    fn step_block(&mut self) -> Result<bool, String> {
        if self.left == Some(0) || matches!(self.verb, Verb::Nothing) {
            return Ok(false);
        }
        let task = |flow: &Self| match &flow.verb {
            // The first `limit` items are known only in order.
            _ if flow.left.is_some() => Task::Pick,
            Verb::Sum(groups) => Task::Sum(groups.clone()),
            Verb::Times(pairing, ..) => Task::Times(pairing.clone()),
            Verb::Write(..) | Verb::Nothing => Task::Pick,
        };
        let Some(block) = self.block(task)? else { return Ok(false) };
        let (left, choice, extractor) = (&mut self.left, &self.choice, &mut self.extractor);
        match &mut self.verb {
            Verb::Nothing => {}
            Verb::Write(writers, split, _) => {
                for packet in selected_packets(&block) {
                    if !take_remaining(left) {
                        break;
                    }
                    if let Some(pace) = &mut self.pace {
                        if stop::is_requested() {
                            break;
                        }
                        pace.wait(packet.time.as_nanos());
                    }
                    let client = matches!(split, Split::Clients(_))
                        .then(|| of_packet(&packet))
                        .filter(|record| record.has_ip != 0);
                    let outputs = split.outputs(client.as_ref().map(|record| &record.src[..]));
                    for writer in writers.get_mut(outputs).unwrap_or_default() {
                        writer.write(&packet).map_err(|e| e.to_string())?;
                    }
                }
            }
            Verb::Sum(groups) if extractor.is_some() => {
                extract(extractor, choice, &block, |_, m| {
                    groups.message(m);
                    take_remaining(left) && *left != Some(0)
                });
            }
            Verb::Sum(groups) => {
                for packet in selected_packets(&block) {
                    if take_remaining(left) {
                        groups.packet(&packet);
                    }
                }
            }
            Verb::Times(pairing, latencies, extracted) => {
                extracted.clear();
                extract(extractor, choice, &block, |number, m| {
                    if m.is_query() && !take_remaining(left) {
                        return false;
                    }
                    extracted.push(pairing.sent(number, m));
                    true
                });
                let mut extracted = extracted.iter().peekable();
                for sent in &block.output.times {
                    while let Some(earlier) = extracted.next_if(|l| l.number < sent.number) {
                        latencies.add(earlier);
                    }
                    latencies.add(sent);
                }
                extracted.for_each(|sent| latencies.add(sent));
            }
        }
        if let Source::Running(worker_pool) = &self.source {
            worker_pool.recycle(block);
        }
        Ok(true)
    }

    /// Adds up pairs, using only their queries.
    fn sum_records(&mut self) -> Result<bool, String> {
        if self.left == Some(0) || self.next()? == 0 {
            return Ok(false);
        }
        let Verb::Sum(groups) = &mut self.verb else { return Ok(false) };
        for record in self.records.list.iter().filter(|r| r.is_second == 0) {
            if !take_remaining(&mut self.left) {
                return Ok(false);
            }
            groups.record(record, self.records.message(record));
        }
        Ok(true)
    }

    /// Ends the pipeline. Returns an error if the filter did not apply to any packet that was read.
    fn note_unanswered(&mut self) {
        let packets = self.progress.packets;
        for filter in &self.choice.filters {
            let all = filter.unanswered();
            if let Some(first) = all.first()
                && all.iter().map(|one| one.packets).sum::<u64>() >= packets
            {
                let link_type = LinkType(first.link_type);
                self.damage
                    .get_or_insert_with(|| format!("{link_type}: {}", first.error.message()));
            }
        }
    }

    fn conclude(&mut self) -> Result<(), String> {
        match &mut self.verb {
            Verb::Sum(groups) => self.counts = groups.finish(),
            Verb::Write(writers, ..) => {
                let writers = std::mem::take(writers);
                self.counts = Counts::of(writers.iter().map(Writer::packets));
                for writer in writers {
                    writer.finish().map_err(|e| e.to_string())?;
                }
            }
            Verb::Times(..) | Verb::Nothing => {}
        }
        Ok(())
    }

    /// The measured latencies.
    pub(crate) fn latencies(&self) -> Summary {
        match &self.verb {
            Verb::Times(_, latencies, _) => latencies.summary(),
            _ => Summary::default(),
        }
    }

    /// The sums; for written captures, the number of packets.
    pub(crate) fn counts(&mut self) -> &mut Counts {
        &mut self.counts
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        // A capture that was not completed is partial, because an error ended the script.
        if let Verb::Write(writers, ..) = &mut self.verb {
            writers.drain(..).for_each(Writer::discard);
        }
    }
}

/// Decrements the number of remaining items; returns false if none remain.
#[inline]
fn take_remaining(left: &mut Option<u64>) -> bool {
    match left {
        None => true,
        Some(0) => false,
        Some(n) => {
            *n -= 1;
            true
        }
    }
}

/// The selected packets of a block.
fn selected_packets(block: &Block<Output>) -> impl Iterator<Item = Packet<'_>> {
    let batch = block.packets.batch();
    block.output.more.iter().filter_map(move |place| batch.get(*place as usize))
}

/// Passes messages of the selected packets to `call`, until it returns false.
fn extract(
    extractor: &mut Option<Box<Extractor>>,
    choice: &Choice,
    block: &Block<Output>,
    mut call: impl FnMut(u64, &Message<'_>) -> bool,
) {
    let Some(extractor) = extractor else { return };
    let mut goes_on = true;
    for packet in selected_packets(block) {
        extractor.packet(&packet, &mut |m| {
            if goes_on && choice.wants(m.bytes) {
                goes_on = call(packet.number, m);
            }
        });
        if !goes_on {
            return;
        }
    }
}
