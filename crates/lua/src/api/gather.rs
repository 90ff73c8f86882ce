//! The work on each batch of a pipeline, in one thread or several.
//!
//! Work on single packets runs in any thread: filters, messages in single packets, their records,
//! sums. Packets that need state, segments of streams and fragments, are listed for the caller,
//! which receives all of them in order.

use gannet_capture::Batch;
use gannet_capture::BytesAfter;
use gannet_capture::Packet;
use gannet_filter::Filter;
use gannet_pipeline::extract::Classified;
use gannet_pipeline::extract::Message;
use gannet_pipeline::extract::classify;
use gannet_pipeline::extract::is_query;
use gannet_pipeline::worker_pool::Work;

use super::group::Groups;
use super::latency::Sent;
use super::pairing::Pairing;
use super::record::Records;
use super::record::of_packet;

/// The selection of packets or messages of a pipeline.
#[derive(Clone, Default)]
pub(crate) struct Choice {
    /// Filters that a packet must match, all of them.
    pub(crate) filters: Vec<Filter>,
    /// Ports of DNS servers if the pipeline has messages, `None` if it has packets.
    pub(crate) ports: Option<Vec<u16>>,
    /// `true` selects only queries, `false` only responses.
    pub(crate) only_queries: Option<bool>,
}

impl Choice {
    #[inline]
    pub(crate) fn wants_packet(&self, packet: &Packet<'_>) -> bool {
        let matches = |f: &Filter| f.matches(packet.link_type.0, packet.data, packet.wire_len);
        self.filters.iter().all(matches)
    }

    #[inline]
    pub(crate) fn wants(&self, message: &[u8]) -> bool {
        self.only_queries.is_none_or(|queries| is_query(message) == queries)
    }
}

/// The work on a packet.
#[derive(Clone)]
pub(crate) enum Task {
    /// Records for Lua.
    Records,
    /// Sums, in any order.
    Sum(Groups),
    /// Times of messages, with the fingerprints that pair queries and responses.
    Times(Pairing),
    /// Only selects packets, for the caller.
    Pick,
}

/// A worker.
#[derive(Clone)]
pub(crate) struct GatherWorker {
    pub(crate) choice: Choice,
    pub(crate) task: Task,
    /// State of [`batches_between_reads`](gannet_pipeline::worker_pool::batches_between_reads).
    pub(crate) batches_between_reads: usize,
}

/// The result for a batch.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) records: Records,
    /// Indexes of the packets that the caller must process.
    pub(crate) more: Vec<u32>,
    pub(crate) times: Vec<Sent>,
}

impl Work for GatherWorker {
    type Output = Output;

    fn batch(&mut self, batch: Batch<'_>, output: &mut Output) {
        output.records.clear();
        output.more.clear();
        output.times.clear();
        let (choice, beyond) = (&self.choice, batch.bytes_after(self.batches_between_reads));
        // One loop for each task, so that the task is not checked for each packet.
        match (&choice.ports, &mut self.task) {
            (_, Task::Pick) => {
                for (place, packet) in batch.iter().enumerate() {
                    if choice.wants_packet(&packet) {
                        output.more.push(place as u32);
                    }
                }
            }
            (None, Task::Records) => {
                let wanted = batch.iter().filter(|p| choice.wants_packet(p));
                output.records.list.extend(wanted.map(|p| of_packet(&p)));
            }
            (None, Task::Sum(groups)) => {
                for packet in batch.iter().filter(|p| choice.wants_packet(p)) {
                    groups.packet(&packet);
                }
            }
            (None, Task::Times(_)) => {}
            (Some(ports), Task::Records) => {
                let records = &mut output.records;
                each(choice, ports, batch, beyond, &mut output.more, |number, m| {
                    records.add(number, m);
                });
            }
            (Some(ports), Task::Sum(groups)) if groups.are_names() => {
                each(choice, ports, batch, beyond, &mut output.more, |_, m| groups.name(m.bytes));
            }
            (Some(ports), Task::Sum(groups)) => {
                each(choice, ports, batch, beyond, &mut output.more, |_, m| groups.message(m));
            }
            (Some(ports), Task::Times(pairing)) => {
                let times = &mut output.times;
                each(choice, ports, batch, beyond, &mut output.more, |number, m| {
                    times.push(pairing.sent(number, m));
                });
            }
        }
    }
}

/// Returns the messages of a batch's plain packets, and prefetches the next packets.
#[inline]
fn each(
    choice: &Choice,
    ports: &[u16],
    batch: Batch<'_>,
    beyond: Option<BytesAfter<'_>>,
    more: &mut Vec<u32>,
    mut call: impl FnMut(u64, &Message<'_>),
) {
    for (place, packet) in batch.iter().enumerate() {
        if let Some(beyond) = &beyond {
            beyond.prefetch(place);
        }
        if !choice.wants_packet(&packet) {
            continue;
        }
        match classify(ports, &packet, |bytes| choice.wants(bytes)) {
            Classified::Message(message) => call(packet.number, &message),
            Classified::Nothing => {}
            Classified::More => more.push(place as u32),
        }
    }
}
