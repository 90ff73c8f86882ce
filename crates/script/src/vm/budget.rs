//! Limits on the time of a handler and on the growth of memory while it runs (`--script-budget`).

use std::time::{Duration, Instant};

use super::Vm;
use crate::evaluate::Stop;

/// The budget of every handler. A handler that exceeds it ends in an error; the analysis continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Maximum time of a handler.
    pub time: Option<Duration>,
    /// Maximum growth of resident memory while a handler runs, in bytes.
    pub memory: Option<u64>,
}

/// The budget of a run, and the state of the process when the current handler began.
#[derive(Debug)]
pub(crate) struct BudgetState {
    budget: Budget,
    began: Instant,
    resident: u64,
    /// Number of checks since the handler began.
    checks: u32,
}

/// After its first checks, one in this many reads clock and memory. The first ones all do: a value that doubles between checks
/// exceeds any memory within that number of them.
const CHECK_INTERVAL: u32 = 64;

impl Budget {
    /// Parses `TIME[,MEMORY]`, as in `500ms,100M`.
    ///
    /// # Errors
    /// Returns a message of one line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || {
            format!(
                "option '--script-budget' requires a time and a size, like 500ms,100M, not '{text}'"
            )
        };
        let (time, memory) = match text.split_once(',') {
            Some((time, memory)) => (time.trim(), Some(memory.trim())),
            None => (text.trim(), None),
        };
        let time = match time {
            "" if memory.is_some() => None,
            time => {
                let (digits, unit) = match time.strip_suffix("ms") {
                    Some(digits) => (digits, 1e-3),
                    None => (time.strip_suffix('s').unwrap_or(time), 1.0),
                };
                let seconds = number(digits).ok_or_else(invalid)? * unit;
                Some(Duration::try_from_secs_f64(seconds).map_err(|_| invalid())?)
            }
        };
        let memory = match memory {
            None => None,
            Some(memory) => Some(bytes(memory).ok_or_else(invalid)?),
        };
        Ok(Self { time, memory })
    }
}

fn number(digits: &str) -> Option<f64> {
    digits.parse::<f64>().ok().filter(|n| *n > 0.0 && n.is_finite())
}

/// Parses a number of bytes: `1000`, `64k`, `100M`, `2G`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G']) {
        Some(digits) if text.ends_with(['k', 'K']) => (digits, 1_u64 << 10),
        Some(digits) if text.ends_with(['m', 'M']) => (digits, 1 << 20),
        Some(digits) => (digits, 1 << 30),
        None => (text, 1),
    };
    Some((number(digits)? * unit as f64) as u64)
}

impl BudgetState {
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget, began: Instant::now(), resident: 0, checks: 0 }
    }

    /// Records the start of a handler.
    pub(crate) fn begin(&mut self) {
        self.checks = 0;
        self.began = Instant::now();
        if self.budget.memory.is_some() {
            self.resident = resident();
        }
    }

    /// Returns an error message if the handler exceeds its budget.
    fn exceeded(&mut self) -> Option<String> {
        self.checks = self.checks.wrapping_add(1);
        if self.checks > CHECK_INTERVAL && !self.checks.is_multiple_of(CHECK_INTERVAL) {
            return None;
        }
        if let Some(time) = self.budget.time.filter(|time| self.began.elapsed() > *time) {
            return Some(format!("script budget exceeded: it runs for longer than {time:?}"));
        }
        let grown = resident().saturating_sub(self.resident);
        let memory = self.budget.memory.filter(|memory| grown > *memory)?;
        Some(format!("script budget exceeded: memory grew by more than {memory} bytes"))
    }
}

/// Resident memory of the process in bytes; 0 if `/proc/self/statm` is not available (proc(5)).
pub(crate) fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.as_deref().and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

impl Vm<'_> {
    /// Ends the current handler if it exceeds its budget.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_budget(&mut self) -> Result<(), Stop> {
        let Some(spent) = &mut self.m.budget else { return Ok(()) };
        match spent.exceeded() {
            None => Ok(()),
            Some(text) => {
                let site = self.current_site();
                let span = self.p.exprs.find(site).map(|expr| expr.span);
                let body = self.m.frames.last().and_then(|frame| frame.code.body);
                let whole = body.map(|body| self.p.bodies[body].span);
                let span = span.or(whole).unwrap_or(crate::source::Span::NOWHERE);
                self.emit(crate::diagnostics::Severity::RuntimeError, span, text.into_bytes());
                Err(Stop::Error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_parsed() {
        let both = Budget { time: Some(Duration::from_millis(500)), memory: Some(100 << 20) };
        assert_eq!(Budget::parse("500ms,100M"), Ok(both));
        let time = Budget { time: Some(Duration::from_secs(2)), memory: None };
        assert_eq!(Budget::parse("2s"), Ok(time));
        assert_eq!(Budget::parse("2"), Ok(time));
        assert_eq!(Budget::parse(",1k"), Ok(Budget { time: None, memory: Some(1024) }));
        for invalid in ["", "x", "1s,", "-1", "1s,0", "inf"] {
            assert!(Budget::parse(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn an_exceeded_time_is_reported() {
        let budget = Budget { time: Some(Duration::from_nanos(1)), memory: None };
        let mut spent = BudgetState::new(budget);
        spent.begin();
        std::thread::sleep(Duration::from_millis(1));
        assert!(spent.exceeded().is_some_and(|text| text.contains("longer than 1ns")));
        let mut spent = BudgetState::new(Budget { time: None, memory: Some(u64::MAX) });
        spent.begin();
        assert_eq!(spent.exceeded(), None);
    }
}
