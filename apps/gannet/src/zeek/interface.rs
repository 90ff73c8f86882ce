//! The packets of an interface, for scripts.

use std::time::Duration;
use std::time::Instant;

use gannet_base::Interval;
use gannet_engine::Engine;
use gannet_live::Interface;
use gannet_live::Next;
use gannet_live::RingOptions;
use gannet_live::Source;
use gannet_live::SourceOptions;
use gannet_script::bridge;

use crate::live::program;
use crate::memory;
use crate::stop::Stop;
use crate::terminal::Terminal;

/// Size of the capture ring, in bytes.
const RING_BYTES: u64 = 128 << 20;
/// Interval at which network time advances without packets.
const TICK: Duration = Duration::from_millis(50);
/// The kernel may deliver packets this late, so network time stays this far behind the clock without packets.
const KERNEL_DELAY: Interval = Interval::from_millis(100);
/// After a signal, packets are read until none has arrived for this time.
const DRAIN_TIME: Duration = Duration::from_millis(50);
/// Maximum time of reading packets after a signal; the remaining ones are counted as dropped.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(10);

/// An interface whose packets are captured.
pub(super) struct Link {
    name: String,
    source: Source,
}

impl Link {
    /// Captures the packets of an interface that pass `filter`.
    pub(super) fn open(name: &str, filter: Option<&str>) -> Result<Self, String> {
        memory::allow_huge_pages();
        let text = |error: gannet_live::Error| error.to_string();
        let interface = Interface::named(name).map_err(text)?;
        let ring = RingOptions::with_size(RING_BYTES).map_err(text)?;
        let options = SourceOptions { ring, ..SourceOptions::default() };
        let source =
            Source::open(&[interface], options, |link| program(filter, link)).map_err(text)?;
        Terminal::new(false).note(&format_args!("capturing on {name}"));
        Ok(Self { name: name.to_owned(), source })
    }

    /// Analyses packets until a signal comes or the scripts end the run.
    pub(super) fn read(mut self, stop: &Stop, engine: &mut Engine) -> Result<(), String> {
        let mut stopping: Option<Instant> = None;
        let mut latest = Instant::now();
        loop {
            if bridge::stops() {
                self.source.stop();
                self.source.drop_rest();
                break;
            }
            if stopping.is_none() && stop.requested().is_some() {
                self.source.stop();
                stopping = Some(Instant::now());
            }
            if stopping.is_some_and(|since| since.elapsed() > MAX_DRAIN_TIME) {
                self.source.drop_rest();
                break;
            }
            match self.source.packets() {
                Next::Packets(batch) => {
                    engine.batch(&batch).map_err(|error| error.to_string())?;
                    latest = Instant::now();
                }
                Next::Idle if stopping.is_some_and(|since| since.elapsed() > DRAIN_TIME) => break,
                Next::Idle => {
                    if latest.elapsed() >= TICK {
                        let number = self.source.skip_number();
                        let advanced = engine.advance(number, Source::clock() - KERNEL_DELAY);
                        advanced.map_err(|error| error.to_string())?;
                        latest = Instant::now();
                    }
                    self.source.wait(TICK).map_err(|error| error.to_string())?;
                }
            }
        }
        let ledger = self.source.ledger();
        let (seen, dropped) = (ledger.seen(), ledger.rings.dropped);
        let percent = 100.0 * dropped as f64 / seen.max(1) as f64;
        let name = &self.name;
        Terminal::new(false).note(&format_args!(
            "{seen} packets captured on {name}, {dropped} ({percent:.2} %) dropped"
        ));
        Ok(())
    }
}
