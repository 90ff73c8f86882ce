//! Allocations in steady state: those of the second half of generated traffic.
//!
//! In the first half tables and buffers grow to their size, and every log is opened.
//! The allocations of the second half are the steady cost of packets and conversations.

use std::io::Write;

use gannet_capture::Reader;
use gannet_engine::Engine;
use gannet_engine::Options;

use super::traffic::Traffic;
use crate::memory::allocations_of;

/// Number of conversations, in thousands.
const SIZE: usize = 1;

/// Prints `KIND PACKETS ALLOCATIONS` for every kind of traffic, and for the mixture of all.
pub(crate) fn allocations() -> anyhow::Result<()> {
    let traffic = Traffic::make(SIZE * 1000)?;
    let mut out = std::io::stdout().lock();
    let mixed = [("mixed", &traffic.mixed)];
    let kinds = traffic.kinds.iter().map(|(kind, path)| (kind.name(), path));
    for (name, path) in kinds.chain(mixed) {
        let logs =
            gannet_log::Options { dir: Some(traffic.folder().join("logs")), ..Default::default() };
        std::fs::create_dir_all(traffic.folder().join("logs"))?;
        let options = Options { ignore_checksums: true, logs, ..Options::default() };
        let total = packets(path)?;
        let mut engine = Engine::new(options);
        let mut reader = Reader::open(path)?;
        let (mut seen, mut counted, mut allocations) = (0, 0, 0);
        while let Some(batch) = reader.next_batch()? {
            let len = batch.len() as u64;
            if seen >= total / 2 {
                let (done, calls) = allocations_of(|| engine.batch(&batch));
                done?;
                counted += len;
                allocations += calls as u64;
            } else {
                engine.batch(&batch)?;
            }
            seen += len;
        }
        engine.finish()?;
        writeln!(out, "{name} {counted} {allocations}")?;
    }
    Ok(())
}

fn packets(path: &std::path::Path) -> anyhow::Result<u64> {
    let mut reader = Reader::open(path)?;
    while reader.next_batch()?.is_some() {}
    Ok(reader.packets())
}
