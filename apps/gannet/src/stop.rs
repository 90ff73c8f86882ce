//! Signals end a run early, but in order: logs are completed and closed.
//!
//! SIGINT, SIGTERM and SIGHUP stop a run. While a pipe is read, the first SIGINT only means that no more data
//! follows: Ctrl-C reaches the program that writes the pipe as well, and what it has captured is still in
//! the pipe. The run then continues to the end of the pipe, and the second SIGINT stops it. A signal after the
//! one that stops a run ends the process at once.

use std::io;
use std::process::exit;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use signal_hook::consts::SIGHUP;
use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;

use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Delay after which a note explains how to end a run of scripts that continues after a signal.
const EXPLAIN_AFTER: Duration = Duration::from_secs(3);

/// Whether a signal requested the end of the run. Clones share the state.
#[derive(Clone)]
pub(crate) struct Stop(Arc<State>);

#[derive(Default)]
struct State {
    /// The signal that stops the run; 0 until one arrives.
    signal: AtomicI32,
    /// Whether a pipe is read, so that the first SIGINT does not stop the run.
    reads_pipe: AtomicBool,
    /// Whether that SIGINT arrived: the pipe is read to its end.
    drains: AtomicBool,
    /// Whether a note explains how to end a run that continues after a signal.
    explains: AtomicBool,
    /// Flags that are set when the run stops.
    set_on_stop: Mutex<Vec<Arc<AtomicBool>>>,
    /// Requests of a sensor's signals that are not yet carried out.
    reopen: AtomicBool,
    rotate: AtomicBool,
}

impl Stop {
    /// Installs the handlers of a run; that of SIGHUP only where the signal is not ignored, as it is under nohup(1).
    pub(crate) fn on_signals() -> io::Result<Self> {
        let mut numbers = vec![SIGINT, SIGTERM];
        if !is_ignored(SIGHUP) {
            numbers.push(SIGHUP);
        }
        Self::on(&numbers, State::receive)
    }

    /// Installs the handlers of a sensor: SIGINT and SIGTERM stop it, SIGHUP reopens its logs, SIGUSR1 rotates
    /// them.
    pub(crate) fn of_sensor() -> io::Result<Self> {
        Self::on(&[SIGINT, SIGTERM, SIGHUP, SIGUSR1], |state, number| match number {
            SIGHUP => state.reopen.store(true, Ordering::Relaxed),
            SIGUSR1 => state.rotate.store(true, Ordering::Relaxed),
            number => state.receive(number),
        })
    }

    /// Installs the handlers of a Lua script for signals that are not ignored. While `reads_pipe` returns true, the first SIGINT
    /// stops nothing. While `has_work` returns false, signals end the process as they do without a handler.
    #[cfg(feature = "lua")]
    pub(crate) fn of_script(has_work: fn() -> bool, reads_pipe: fn() -> bool) -> io::Result<Self> {
        let numbers = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|number| !is_ignored(*number));
        Self::on(&numbers.collect::<Vec<_>>(), move |state, number| {
            let is_first = number == SIGINT && state.signal.load(Ordering::Relaxed) == 0;
            if is_first && reads_pipe() && !state.drains.swap(true, Ordering::Relaxed) {
                return;
            }
            if state.signal.load(Ordering::Relaxed) == 0 && !has_work() {
                // If that fails, the next pipeline stops.
                signal_hook::low_level::emulate_default_handler(number).unwrap_or_default();
            }
            state.receive(number);
        })
    }

    fn on(numbers: &[i32], receive: impl Fn(&State, i32) + Send + 'static) -> io::Result<Self> {
        let mut signals = Signals::new(numbers)?;
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let receive = move || signals.forever().for_each(|number| receive(&shared, number));
        thread::Builder::new().name("signals".into()).spawn(receive)?;
        Ok(Self(state))
    }

    /// Registers a flag that is set when the run is to stop.
    pub(crate) fn set_on_stop(&self, flag: &Arc<AtomicBool>) {
        let mut set_on_stop = self.0.set_on_stop.lock().unwrap_or_else(PoisonError::into_inner);
        set_on_stop.push(Arc::clone(flag));
        flag.fetch_or(self.requested().is_some(), Ordering::Relaxed);
    }

    /// Declares that a pipe is read: the first SIGINT does not stop the run.
    pub(crate) fn drain_first(&self) {
        self.0.reads_pipe.store(true, Ordering::Relaxed);
    }

    /// Declares that scripts run, where one in a loop does not check for signals: if the run continues some seconds after a
    /// signal, a note explains how to end it.
    pub(crate) fn explain(&self) {
        self.0.explains.store(true, Ordering::Relaxed);
    }

    /// Whether SIGINT arrived while a pipe is read.
    pub(crate) fn drains(&self) -> bool {
        self.0.drains.load(Ordering::Relaxed)
    }

    /// Whether a signal requested to reopen the logs since the last call.
    pub(crate) fn take_reopen_request(&self) -> bool {
        self.0.reopen.swap(false, Ordering::Relaxed)
    }

    /// Whether a signal requested to rotate the logs since the last call.
    pub(crate) fn take_rotate_request(&self) -> bool {
        self.0.rotate.swap(false, Ordering::Relaxed)
    }

    /// The outcome of the run if a signal ends it.
    pub(crate) fn requested(&self) -> Option<Outcome> {
        match self.0.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(Outcome::Stopped(signal as u8)),
        }
    }
}

impl State {
    fn receive(&self, number: i32) {
        if self.signal.load(Ordering::Relaxed) != 0 {
            exit(128 + number);
        }
        if number == SIGINT && self.reads_pipe.swap(false, Ordering::Relaxed) {
            self.drains.store(true, Ordering::Relaxed);
            return;
        }
        self.signal.store(number, Ordering::Relaxed);
        let set_on_stop = self.set_on_stop.lock().unwrap_or_else(PoisonError::into_inner);
        set_on_stop.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
        if self.explains.load(Ordering::Relaxed) {
            let explain = || {
                thread::sleep(EXPLAIN_AFTER);
                Terminal::new(false).note(
                    &"the run has not ended yet, for example because a script loops; another signal ends it immediately",
                );
            };
            // Without a thread there is no note, but signals still work.
            let _ = thread::Builder::new().name("explanation".into()).spawn(explain);
        }
    }
}

/// Whether the process was started with this signal ignored, where the system shows it (Linux).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
