//! A schedule for items with original times: due times count from the first item, so that a delay
//! does not affect later ones.

use std::time::Duration;
use std::time::Instant;

/// How the times of packets become times of a clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Gaps between packets, divided by this.
    Speed(f64),
    /// Gaps of this many nanoseconds, instead of the captured ones.
    Gap(f64),
    /// This many nanoseconds are added to each gap; a negative sum counts as zero.
    Shift(f64),
}

/// Computes when each packet is due, and waits until then.
#[derive(Clone, Debug)]
pub struct Schedule {
    pace: Pace,
    begun: Option<(Instant, i64)>,
    /// Nanoseconds from the first packet to the last one.
    sum: f64,
}

/// The latest due time after the first packet in nanoseconds: thirty years.
const LONGEST: f64 = 1e18;

/// Waits that are shorter are spent awake: sleeping takes that long to end.
const AWAKE: Duration = Duration::from_micros(150);

impl Schedule {
    /// Nothing was due yet.
    pub fn new(pace: Pace) -> Self {
        Self { pace, begun: None, sum: 0.0 }
    }

    /// When a packet of this time (nanoseconds) is due, after those before; the first one is now. Times
    /// that run backwards are due at once.
    pub fn due(&mut self, time: i64, now: Instant) -> Instant {
        let Some((start, last)) = self.begun else {
            self.begun = Some((now, time));
            return now;
        };
        let gap = time.saturating_sub(last).max(0) as f64;
        self.sum += match self.pace {
            Pace::Speed(speed) => gap / speed,
            Pace::Gap(gap) => gap,
            Pace::Shift(shift) => (gap + shift).max(0.0),
        };
        self.begun = Some((start, time));
        start + Duration::try_from_secs_f64(self.sum.min(LONGEST) / 1e9).unwrap_or_default()
    }

    /// Waits until a packet of this time is due; how late it is then.
    pub fn wait(&mut self, time: i64) -> Duration {
        let due = self.due(time, Instant::now());
        loop {
            let now = Instant::now();
            let Some(left) = due.checked_duration_since(now).filter(|left| !left.is_zero()) else {
                return now.saturating_duration_since(due);
            };
            if left > AWAKE + AWAKE / 3 {
                std::thread::sleep(left - AWAKE);
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dues(pace: Pace, times: &[i64]) -> Vec<u128> {
        let mut schedule = Schedule::new(pace);
        let start = Instant::now();
        let later = |n: usize| start + Duration::from_millis(7 * n as u64);
        let due = |(n, time): (usize, &i64)| schedule.due(*time, later(n));
        times.iter().enumerate().map(due).map(|due| (due - start).as_nanos()).collect()
    }

    #[test]
    fn the_schedule_is_kept_however_late_one_is() {
        let times = [500, 1_500, 1_500, 4_500];
        assert_eq!(dues(Pace::Speed(1.0), &times), [0, 1_000, 1_000, 4_000]);
        assert_eq!(dues(Pace::Speed(2.0), &times), [0, 500, 500, 2_000]);
        assert_eq!(dues(Pace::Gap(100.0), &times), [0, 100, 200, 300]);
        assert_eq!(dues(Pace::Shift(10.0), &times), [0, 1_010, 1_020, 4_030]);
        assert_eq!(dues(Pace::Shift(-1_500.0), &times), [0, 0, 0, 1_500]);
    }

    #[test]
    fn times_that_run_backwards_are_due_at_once() {
        assert_eq!(dues(Pace::Speed(1.0), &[500, 400, 600]), [0, 0, 200]);
    }

    #[test]
    fn it_waits() {
        let mut schedule = Schedule::new(Pace::Speed(1.0));
        let begun = Instant::now();
        schedule.wait(0);
        schedule.wait(3_000_000);
        assert!(begun.elapsed() >= Duration::from_millis(3));
    }
}
