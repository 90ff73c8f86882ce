//! The outcome of a run, and its exit code.

use std::process::ExitCode;

use gannet_capture::Error;

/// The outcome of a run, from best to worst: of several files the worst counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Everything was done.
    Done,
    /// An input is truncated or damaged; everything before the damage was analysed.
    Damaged,
    /// A replay sent only a part of its queries, because of an error.
    Unsent,
    /// An input is no capture or cannot be opened; also wrong usage, as clap has it.
    NoCapture,
    /// Output could not be written.
    Failed,
    /// The exit code of the program that this one replaces.
    Code(u8),
    /// A signal, of this number, ended the run early; the output up to then is complete.
    Stopped(u8),
}

impl Outcome {
    /// The outcome of a capture that could not be read to its end; `is_read` says whether some packets
    /// were read.
    pub(crate) fn of(error: &Error, is_read: bool) -> Self {
        if is_read || error.is_partial() { Self::Damaged } else { Self::NoCapture }
    }

    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::NoCapture => 2,
            Self::Damaged => 3,
            Self::Unsent => 4,
            Self::Code(code) => code,
            Self::Stopped(signal) => 128 + signal,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        outcome.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_outcome_counts() {
        let all =
            [Outcome::Done, Outcome::Damaged, Outcome::Unsent, Outcome::NoCapture, Outcome::Failed];
        assert!(all.is_sorted());
        assert_eq!(all.map(Outcome::code), [0, 3, 4, 2, 1]);
        assert_eq!(Outcome::Failed.max(Outcome::Stopped(15)).code(), 143);
    }
}
