//! Walks over captures and prints packets, bytes and nanoseconds a packet: `walk FILE..`.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use gannet_capture::Error;
use gannet_capture::Reader;

fn main() -> Result<(), Error> {
    for path in std::env::args().skip(1) {
        let start = Instant::now();
        let mut reader = Reader::open(&path)?;
        let (mut packets, mut bytes) = (0_u64, 0_u64);
        while let Some(batch) = reader.next_batch()? {
            for packet in batch {
                packets += 1;
                bytes += packet.data.len() as u64;
            }
        }
        let spent = start.elapsed();
        let each = spent.as_nanos() as f64 / packets.max(1) as f64;
        println!("{path}: {packets} packets, {bytes} bytes, {spent:.1?}, {each:.1} ns a packet");
    }
    Ok(())
}
