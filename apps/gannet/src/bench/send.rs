//! `gannet bench send`: the frames of a capture, sent on an interface, to measure a live capture.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::ensure;
use gannet_capture::LinkType;
use gannet_capture::Reader;
use gannet_live::Sender;

/// Send the frames of an Ethernet capture on an interface, unchanged: for test links
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The interface
    #[arg(value_name = "IFACE")]
    interface: String,
    /// The capture
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Frames per second; by default as many as the interface accepts
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// End after N frames; shorter captures are repeated
    #[arg(long, value_name = "N")]
    frames: Option<u64>,
}

/// Frames that are due within this time are sent in one call.
const BATCH_TIME: Duration = Duration::from_millis(1);

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let mut reader = Reader::open(&args.file)?;
    while let Some(batch) = reader.next_batch()? {
        for packet in batch {
            ensure!(packet.link_type == LinkType::ETHERNET, "only Ethernet frames can be sent");
            ensure!(
                packet.data.len() == packet.wire_len as usize,
                "frames are cut in this capture"
            );
            frames.push(packet.data.to_vec());
        }
    }
    ensure!(!frames.is_empty(), "the capture is empty");
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let sender = Sender::open(&args.interface)?;
    let all = args.frames.unwrap_or(frames.len() as u64);
    let started = Instant::now();
    let (mut sent, mut at) = (0_u64, 0);
    while sent < all {
        let due = match args.rate {
            Some(rate) => ((started.elapsed() + BATCH_TIME).as_secs_f64() * f64::from(rate)) as u64,
            None => u64::MAX,
        };
        let now = due.min(all).saturating_sub(sent).min(4096);
        if now == 0 {
            thread::sleep(BATCH_TIME);
            continue;
        }
        let end = (at + now as usize).min(frames.len());
        let some = frames.get(at..end).unwrap_or_default();
        sender.send(some)?;
        sent += some.len() as u64;
        at = end % frames.len();
    }
    let seconds = started.elapsed().as_secs_f64();
    let rate = sent as f64 / seconds;
    let terminal = crate::Terminal::new(false);
    terminal.note(&format_args!("sent {sent} frames in {seconds:.3} s, {rate:.0} a second"));
    Ok(())
}
