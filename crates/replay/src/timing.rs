//! The due times of queries.

use std::fmt;
use std::str::FromStr;

/// The due times of queries, counted from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// The times of the capture, divided by a speed. Lists have no times: all queries are due at
    /// once.
    Original {
        /// 1 is the capture's own speed, 2 twice that.
        speed: f64,
    },
    /// This many queries per second, evenly spaced.
    Rate(f64),
    /// A rate that changes linearly, then stays constant.
    Ramp {
        /// Queries per second at the start.
        from: f64,
        /// Queries per second at the end.
        to: f64,
        /// Duration of the change in seconds.
        seconds: f64,
    },
    /// As fast as answers arrive: a new query for each that is answered or lost.
    Max,
}

/// The error for a text that is not a timing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a timing; use original, speed=2x, rate=50k, ramp=1k..100k/60s or max, with numbers \
     from a millionth to a billion"
)]
pub struct TimingError(String);

impl Timing {
    /// Due time of query `index`, in nanoseconds. `offset` is its time in the capture.
    pub fn due(&self, index: u64, offset: u64) -> u64 {
        let n = index as f64;
        let seconds = match *self {
            Self::Original { speed: 1.0 } => return offset,
            Self::Original { speed } => return (offset as f64 / speed) as u64,
            Self::Rate(rate) => n / rate,
            Self::Ramp { from, to, seconds } => ramp(n, from, to, seconds),
            Self::Max => return 0,
        };
        (seconds * 1e9) as u64
    }

    /// Whether queries wait for answers and not for the clock.
    pub fn is_max(&self) -> bool {
        matches!(self, Self::Max)
    }

    /// The mean rate that the schedule requests over this number of queries; `None` if the schedule
    /// has no rate.
    pub fn requested_rate(&self, queries: u64) -> Option<f64> {
        match *self {
            Self::Rate(rate) => Some(rate),
            Self::Ramp { .. } if queries > 1 => {
                Some(queries as f64 / (self.due(queries, 0) as f64 / 1e9))
            }
            _ => None,
        }
    }
}

/// The time at which `n` queries have been sent: solves `n = from t + (to - from) t² / (2
/// seconds)`.
fn ramp(n: f64, from: f64, to: f64, seconds: f64) -> f64 {
    let in_ramp = (from + to) / 2.0 * seconds;
    if n >= in_ramp {
        return seconds + (n - in_ramp) / to;
    }
    let growth = (to - from) / seconds;
    // This form of the solution avoids cancellation for small growth.
    2.0 * n / (from + (from * from + 2.0 * growth * n).sqrt())
}

impl FromStr for Timing {
    type Err = TimingError;

    fn from_str(text: &str) -> Result<Self, TimingError> {
        let parsed = match text.split_once('=') {
            None => match text {
                "original" => Some(Self::Original { speed: 1.0 }),
                "max" => Some(Self::Max),
                _ => None,
            },
            Some(("speed", factor)) => number(factor.strip_suffix('x').unwrap_or(factor))
                .map(|speed| Self::Original { speed }),
            Some(("rate", rate)) => number(rate).map(Self::Rate),
            Some(("ramp", ramp)) => parse_ramp(ramp),
            Some(_) => None,
        };
        parsed.ok_or_else(|| TimingError(text.to_owned()))
    }
}

fn parse_ramp(text: &str) -> Option<Timing> {
    let (rates, time) = text.split_once('/')?;
    let (from, to) = rates.split_once("..")?;
    let (time, unit) = match time.strip_suffix("ms") {
        Some(time) => (time, 1e-3),
        None => match time.strip_suffix('m') {
            Some(time) => (time, 60.0),
            None => (time.strip_suffix('s').unwrap_or(time), 1.0),
        },
    };
    Some(Timing::Ramp { from: number(from)?, to: number(to)?, seconds: number(time)? * unit })
}

/// A number above zero and within the resolution of clocks, optionally followed by `k` or `M`.
fn number(text: &str) -> Option<f64> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    let number = digits.parse::<f64>().ok()? * factor;
    (1e-6..=1e9).contains(&number).then_some(number)
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Original { speed: 1.0 } => f.write_str("original"),
            Self::Original { speed } => write!(f, "speed={speed}x"),
            Self::Rate(rate) => write!(f, "rate={rate}"),
            Self::Ramp { from, to, seconds } => write!(f, "ramp={from}..{to}/{seconds}s"),
            Self::Max => f.write_str("max"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_timings() {
        let parse = |t: &str| t.parse::<Timing>();
        assert_eq!(parse("original"), Ok(Timing::Original { speed: 1.0 }));
        assert_eq!(parse("speed=2x"), Ok(Timing::Original { speed: 2.0 }));
        assert_eq!(parse("speed=0.5"), Ok(Timing::Original { speed: 0.5 }));
        assert_eq!(parse("rate=50k"), Ok(Timing::Rate(50_000.0)));
        let ramp = Timing::Ramp { from: 1e3, to: 1e5, seconds: 60.0 };
        assert_eq!(parse("ramp=1k..100k/60s"), Ok(ramp));
        assert_eq!(parse("ramp=1k..0.1M/1m"), Ok(ramp));
        assert_eq!(parse("max"), Ok(Timing::Max));
        for wrong in ["", "fast", "rate=0", "rate=-1", "rate=nan", "speed=inf", "ramp=1..2", "x=1"]
        {
            assert_eq!(parse(wrong), Err(TimingError(wrong.to_owned())), "{wrong}");
        }
    }

    #[test]
    fn fractions_of_seconds_count_at_any_speed() {
        let half = Timing::Original { speed: 2.0 };
        assert_eq!(half.due(9, 1_500_000_000), 750_000_000);
        assert_eq!(Timing::Original { speed: 1.0 }.due(9, 1_500_000_001), 1_500_000_001);
        assert_eq!(Timing::Max.due(9, 1_500_000_000), 0);
    }

    #[test]
    fn a_ramp_sends_the_mean_of_its_rates() {
        let ramp = Timing::Ramp { from: 100.0, to: 300.0, seconds: 10.0 };
        assert_eq!(ramp.due(0, 0), 0);
        assert_eq!(ramp.due(2_000, 0), 10_000_000_000);
        assert_eq!(ramp.due(2_300, 0), 11_000_000_000);
        let falling = Timing::Ramp { from: 300.0, to: 100.0, seconds: 10.0 };
        assert_eq!(falling.due(2_000, 0), 10_000_000_000);
        assert!(falling.due(1_000, 0) < 5_000_000_000);
    }

    proptest! {
        #[test]
        fn due_times_are_monotonic(
            from in 1.0..1e6f64, to in 1.0..1e6f64, seconds in 0.001..100.0f64, n in 0u64..10_000_000
        ) {
            let ramp = Timing::Ramp { from, to, seconds };
            prop_assert!(ramp.due(n, 0) <= ramp.due(n + 1, 0));
            prop_assert_eq!(ramp.to_string().parse(), Ok(ramp));
        }
    }
}
