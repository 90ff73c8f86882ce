//! A schedule for packets with capture times. Due times are relative to the first packet, so a delay does not affect
//! later packets.

use std::time::Duration;
use std::time::Instant;

/// Conversion of packet times to due times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Gaps between packets are divided by this factor.
    Speed(f64),
    /// All gaps have this many nanoseconds.
    Gap(f64),
    /// This many nanoseconds are added to each gap; a negative sum is treated as zero.
    Shift(f64),
}

/// Computes the due time of each packet, and waits until then.
#[derive(Clone, Debug)]
pub struct Schedule {
    pace: Pace,
    /// Due time of the first packet, and the capture time of the last one in nanoseconds; `None` before the first
    /// packet.
    started: Option<(Instant, i64)>,
    /// Time between the due times of the first and the last packet, in nanoseconds.
    elapsed: f64,
}

/// Maximum of `elapsed`, in nanoseconds: about 30 years.
const MAX_ELAPSED: f64 = 1e18;

/// Shorter waits spin, because a sleep may end late by this much.
const SPIN_BELOW: Duration = Duration::from_micros(150);

impl Schedule {
    /// A schedule before its first packet.
    pub fn new(pace: Pace) -> Self {
        Self { pace, started: None, elapsed: 0.0 }
    }

    /// The due time of the next packet, which has this capture time in nanoseconds. The first packet is due at `now`. A
    /// packet that is earlier than its predecessor is due at the same time as that.
    pub fn due(&mut self, time: i64, now: Instant) -> Instant {
        let Some((start, last)) = self.started else {
            self.started = Some((now, time));
            return now;
        };
        let gap = time.saturating_sub(last).max(0) as f64;
        self.elapsed += match self.pace {
            Pace::Speed(speed) => gap / speed,
            Pace::Gap(gap) => gap,
            Pace::Shift(shift) => (gap + shift).max(0.0),
        };
        self.started = Some((start, time));
        start + Duration::try_from_secs_f64(self.elapsed.min(MAX_ELAPSED) / 1e9).unwrap_or_default()
    }

    /// Waits until the next packet is due; returns how late it is then.
    pub fn wait(&mut self, time: i64) -> Duration {
        let due = self.due(time, Instant::now());
        loop {
            let now = Instant::now();
            let Some(remaining) =
                due.checked_duration_since(now).filter(|remaining| !remaining.is_zero())
            else {
                return now.saturating_duration_since(due);
            };
            if remaining > SPIN_BELOW + SPIN_BELOW / 3 {
                std::thread::sleep(remaining - SPIN_BELOW);
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
    fn delays_do_not_affect_later_packets() {
        let times = [500, 1_500, 1_500, 4_500];
        assert_eq!(dues(Pace::Speed(1.0), &times), [0, 1_000, 1_000, 4_000]);
        assert_eq!(dues(Pace::Speed(2.0), &times), [0, 500, 500, 2_000]);
        assert_eq!(dues(Pace::Gap(100.0), &times), [0, 100, 200, 300]);
        assert_eq!(dues(Pace::Shift(10.0), &times), [0, 1_010, 1_020, 4_030]);
        assert_eq!(dues(Pace::Shift(-1_500.0), &times), [0, 0, 0, 1_500]);
    }

    #[test]
    fn times_that_go_backwards_are_due_immediately() {
        assert_eq!(dues(Pace::Speed(1.0), &[500, 400, 600]), [0, 0, 200]);
    }

    #[test]
    fn it_waits() {
        let mut schedule = Schedule::new(Pace::Speed(1.0));
        let started = Instant::now();
        schedule.wait(0);
        schedule.wait(3_000_000);
        assert!(started.elapsed() >= Duration::from_millis(3));
    }
}
