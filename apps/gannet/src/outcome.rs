//! How a run ended: the contract of the exit codes.

use std::process::ExitCode;

use gannet_capture::Error;

/// How a run ended, from the mildest to the gravest: of several files the gravest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Everything was done.
    Done,
    /// An input was cut or damaged; everything before was done.
    Damaged,
    /// A replay sent only a part of its queries, because of a fault.
    Unsent,
    /// An input is no capture or cannot be opened; also wrong usage, as clap has it.
    NoCapture,
    /// What was made could not be written.
    Failed,
    /// The exit code of the program that this one replaces.
    Code(u8),
    /// A signal of this number asked to stop; what was made until then is complete.
    Stopped(u8),
}

impl Outcome {
    /// The outcome of a capture that could not be read to its end; `begun` says whether it could
    /// be read at all.
    pub(crate) fn of(error: &Error, begun: bool) -> Self {
        if begun || error.is_partial() { Self::Damaged } else { Self::NoCapture }
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
    fn the_gravest_counts() {
        let all =
            [Outcome::Done, Outcome::Damaged, Outcome::Unsent, Outcome::NoCapture, Outcome::Failed];
        assert!(all.is_sorted());
        assert_eq!(all.map(Outcome::code), [0, 3, 4, 2, 1]);
        assert_eq!(Outcome::Failed.max(Outcome::Stopped(15)).code(), 143);
    }
}
