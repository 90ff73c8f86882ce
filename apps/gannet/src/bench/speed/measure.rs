//! The measurement of one stage.

use std::time::Duration;
use std::time::Instant;

use rustix::time::ClockId;
use rustix::time::clock_gettime;

use super::stages::Stage;
use crate::memory::allocations_of;

/// The amount of work of one run of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Work {
    /// Number of packets, or of rows where rows are written.
    pub(super) packets: u64,
    /// Number of bytes of these.
    pub(super) bytes: u64,
}

/// The cost of a stage.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    /// The group of stages, like `reading`.
    pub(super) group: &'static str,
    /// The stage, or the capture that it reads.
    pub(super) name: String,
    /// The work of one run.
    pub(super) work: Work,
    /// Allocations per thousand packets in the first run, including its set-up.
    pub(super) allocations: f64,
    /// CPU nanoseconds of all threads per packet, one for each run, sorted.
    pub(super) nanos: Vec<f64>,
    /// Median of the wall time per packet, in nanoseconds.
    pub(super) wall: f64,
}

impl Figures {
    /// Median of the CPU time per packet, in nanoseconds.
    pub(super) fn median(&self) -> f64 {
        self.nanos.get(self.nanos.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Minimum and maximum.
    pub(super) fn range(&self) -> (f64, f64) {
        let end = |n: Option<&f64>| n.copied().unwrap_or(f64::NAN);
        (end(self.nanos.first()), end(self.nanos.last()))
    }

    /// The interquartile range, as a share of the median.
    pub(super) fn spread(&self) -> f64 {
        let at = |part: usize| self.nanos.get(self.nanos.len() * part / 4).copied();
        at(3).zip(at(1)).map_or(0.0, |(high, low)| (high - low) / self.median())
    }

    /// Packets per second.
    pub(super) fn rate(&self) -> f64 {
        1e9 / self.median()
    }

    /// Gigabits per second.
    pub(super) fn gigabits(&self) -> f64 {
        let bits = self.work.bytes as f64 * 8.0 / self.work.packets.max(1) as f64;
        bits / self.median()
    }
}

/// Minimum duration of a run: shorter stages are repeated.
const MIN_DURATION: Duration = Duration::from_millis(40);

/// Warms up, then measures `runs` times.
pub(super) fn measure(stage: &mut Stage<'_>, runs: usize) -> anyhow::Result<Figures> {
    let started = cpu_time();
    let (work, allocations) = allocations_of(|| (stage.run)());
    let work = work?;
    let took = cpu_time().saturating_sub(started).max(Duration::from_micros(1));
    let times = (MIN_DURATION.as_secs_f64() / took.as_secs_f64()).ceil().clamp(1.0, 1000.0) as u32;
    let (mut nanos, mut wall) = (Vec::new(), Vec::new());
    for _ in 0..runs.max(1) {
        let (started, clock) = (cpu_time(), Instant::now());
        for _ in 0..times {
            (stage.run)()?;
        }
        let took = cpu_time().saturating_sub(started).as_nanos() as f64;
        let packets = f64::from(times) * work.packets.max(1) as f64;
        nanos.push(took / packets);
        wall.push(clock.elapsed().as_nanos() as f64 / packets);
    }
    nanos.sort_by(f64::total_cmp);
    wall.sort_by(f64::total_cmp);
    let wall = wall.get(wall.len() / 2).copied().unwrap_or(f64::NAN);
    let allocations = allocations as f64 * 1000.0 / work.packets.max(1) as f64;
    Ok(Figures { group: stage.group, name: stage.name.clone(), work, allocations, nanos, wall })
}

/// CPU time of the process so far.
pub(super) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_median() {
        let work = Work { packets: 10, bytes: 1_250 };
        let nanos = vec![4.0, 5.0, 8.0];
        let (group, name) = ("reading", "mapped".into());
        let f = Figures { group, name, work, allocations: 0.0, nanos, wall: 5.0 };
        assert!((f.median() - 5.0).abs() < 1e-9);
        assert!((f.rate() - 2e8).abs() < 1.0);
        // 1,000 bits a packet in 5 ns.
        assert!((f.gigabits() - 200.0).abs() < 1e-6);
        assert!((f.spread() - 0.8).abs() < 1e-9);
        assert_eq!(f.range(), (4.0, 8.0));
    }

    #[test]
    fn a_stage_is_run_once_more_than_it_is_measured() {
        let mut count = 0_u32;
        let mut stage = Stage {
            group: "test",
            name: "sleepless".into(),
            run: Box::new(|| {
                count += 1;
                // Other tests take time of the process, too.
                let (started, clock) = (cpu_time(), Instant::now());
                while cpu_time().saturating_sub(started).min(clock.elapsed()) < MIN_DURATION {}
                Ok(Work { packets: 1, bytes: 1 })
            }),
        };
        let figures = measure(&mut stage, 2).unwrap();
        drop(stage);
        assert_eq!((figures.nanos.len(), count), (2, 3));
        assert!(figures.median() >= MIN_DURATION.as_nanos() as f64);
        assert!(figures.wall >= MIN_DURATION.as_nanos() as f64);
    }
}
