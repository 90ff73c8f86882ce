//! SIGINT and SIGTERM end a run early, but in order: logs are completed and closed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::flag;

use crate::outcome::Outcome;

/// Whether somebody asked to stop. Clones ask the same.
#[derive(Clone)]
pub(crate) struct Stop {
    /// The signal, 0 before it comes.
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// Takes SIGINT and SIGTERM over. A second one of either kind ends the process at once.
    pub(crate) fn on_signals() -> io::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        let again = Arc::new(AtomicBool::new(false));
        for number in [SIGINT, SIGTERM] {
            // The order matters: a first signal must not find `again` set by itself.
            flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&again))?;
            flag::register(number, Arc::clone(&again))?;
            flag::register_usize(number, Arc::clone(&signal), number as usize)?;
        }
        Ok(Self { signal })
    }

    /// Sets a flag as well when the signal comes.
    pub(crate) fn also(&self, flag: &Arc<AtomicBool>) -> io::Result<()> {
        for number in [SIGINT, SIGTERM] {
            flag::register(number, Arc::clone(flag))?;
        }
        Ok(())
    }

    /// How the run ends if it has to end now.
    pub(crate) fn asked(&self) -> Option<Outcome> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(Outcome::Stopped(signal as u8)),
        }
    }
}
