//! Runs of the engine on mutated captures, within this process.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io::Cursor;
use std::ops::Range;
use std::panic;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use gannet_capture::Reader;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_log::Format;
use gannet_log::JsonTimes;

use crate::mutate::MEMORY;
use crate::mutate::PATIENCE;
use crate::mutate::mutation::Seeds;
use crate::workspace::say;

thread_local! {
    /// Message and location of this thread's last panic.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// State shared by the workers.
struct Work<'a> {
    seeds: &'a Seeds,
    kept: &'a Path,
    next: AtomicU64,
    end: u64,
    /// The capture that each worker analyses, and its start time.
    current: Mutex<HashMap<thread::ThreadId, (u64, Instant)>>,
    failures: AtomicU64,
    /// Packets and rows of all captures, to detect a run that reads nothing.
    packets: AtomicU64,
    rows: AtomicU64,
}

/// Analyses the captures with these numbers; returns the number of captures that broke the engine.
pub(crate) fn run(seeds: &Seeds, numbers: Range<u64>, kept: &Path) -> anyhow::Result<u64> {
    panic::set_hook(Box::new(|info| {
        PANIC.with(|p| *p.borrow_mut() = info.to_string().replace('\n', " "));
    }));
    let work = Work {
        seeds,
        kept,
        next: AtomicU64::new(numbers.start),
        end: numbers.end,
        current: Mutex::default(),
        failures: AtomicU64::new(0),
        packets: AtomicU64::new(0),
        rows: AtomicU64::new(0),
    };
    let begun = Instant::now();
    let done = thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, |n| n.get());
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(|| work.all())).collect();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(100));
            work.watch();
        }
        workers.into_iter().try_for_each(|w| w.join().unwrap_or_else(|p| panic::resume_unwind(p)))
    });
    done?;
    let count = numbers.end - numbers.start;
    let peak = peak_memory().map_or_else(String::new, |p| format!(", {:.0} MB", p as f64 / 1e6));
    let (packets, rows) = (work.packets.into_inner(), work.rows.into_inner());
    let took = begun.elapsed().as_secs_f64();
    say(&format!("{count} captures, {packets} packets, {rows} rows in {took:.0} s{peak}"));
    Ok(work.failures.into_inner())
}

impl Work<'_> {
    fn all(&self) -> anyhow::Result<()> {
        let own = thread::current().id();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.end {
                return Ok(());
            }
            let capture = self.seeds.mutated(number)?;
            self.current().insert(own, (number, Instant::now()));
            let result = panic::catch_unwind(AssertUnwindSafe(|| analyze(number, capture)));
            self.current().remove(&own);
            match result {
                Ok((packets, rows)) => {
                    self.packets.fetch_add(packets, Ordering::Relaxed);
                    self.rows.fetch_add(rows, Ordering::Relaxed);
                }
                Err(_) => self.fail(number, &PANIC.with(RefCell::take)),
            }
        }
    }

    fn current(&self) -> std::sync::MutexGuard<'_, HashMap<thread::ThreadId, (u64, Instant)>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, number: u64, what: &str) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let path = self.kept.join(format!("{number}.pcapng"));
        let kept = self.seeds.mutated(number).and_then(|bytes| Ok(fs::write(&path, bytes)?));
        say(&format!("capture {number}: {what}"));
        if let Err(error) = kept {
            say(&format!("{}: {error}", path.display()));
        }
    }

    /// Ends the process if a capture takes too long or too much memory: neither can be caught.
    fn watch(&self) {
        let slow: Vec<_> =
            self.current().values().filter(|(_, t)| t.elapsed() > PATIENCE).copied().collect();
        for (number, _) in &slow {
            self.fail(*number, "takes too long");
        }
        let much = peak_memory().is_some_and(|p| p > MEMORY);
        if much {
            let numbers: Vec<_> = self.current().values().map(|(n, _)| *n).collect();
            for number in numbers {
                self.fail(number, "is read while too much memory is used");
            }
        }
        if much || !slow.is_empty() {
            std::process::exit(1);
        }
    }
}

/// Analyses a capture like the command, with options that depend on its number; returns the numbers
/// of packets and rows. Errors are allowed.
fn analyze(number: u64, capture: Vec<u8>) -> (u64, u64) {
    let json = Format::Json(JsonTimes::Iso8601);
    let mut engine = Engine::new(Options {
        // Most damage makes checksums incorrect, and the data would not be analysed.
        ignore_checksums: !number.is_multiple_of(8),
        hash_files: number.is_multiple_of(4),
        logs: gannet_log::Options {
            format: if number.is_multiple_of(2) { json } else { Format::Tsv },
            ..gannet_log::Options::default()
        },
        ..Options::default()
    });
    if let Ok(mut reader) = Reader::from_read(Box::new(Cursor::new(capture)), "mutated") {
        while let Ok(Some(batch)) = reader.next_batch() {
            if engine.batch(&batch).is_err() {
                break;
            }
        }
    }
    // Rows are formatted and discarded, so that writing cannot fail.
    engine.finish().map_or((0, 0), |(statistics, counts)| {
        (statistics.packets, counts.iter().map(|c| c.rows).sum())
    })
}

/// Peak memory of this process in bytes, if the system reports it (Linux).
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
