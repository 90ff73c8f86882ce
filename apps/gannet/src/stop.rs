//! Signals end a run early, but in order: logs are completed and closed.
//!
//! SIGINT, SIGTERM and SIGHUP stop a run. While a pipe is read, the first SIGINT only means that no more is
//! to come: Ctrl-C reaches the program that writes the pipe as well, and what it has captured is still in
//! the pipe. The run then goes on to the end of the pipe, and the second SIGINT stops it. A signal after the
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

/// A run of scripts usually ends within this time after a signal.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether a signal asked to stop. Clones ask the same.
#[derive(Clone)]
pub(crate) struct Stop(Arc<State>);

#[derive(Default)]
struct State {
    /// The signal that stops the run, 0 before it comes.
    signal: AtomicI32,
    /// The next SIGINT does not stop the run yet.
    reads_pipe: AtomicBool,
    /// That SIGINT came: the pipe is read to its end.
    drains: AtomicBool,
    /// Whether a message says so where the run goes on after the signal.
    explains: AtomicBool,
    /// Flags that are set when the run stops.
    also: Mutex<Vec<Arc<AtomicBool>>>,
    /// Signals of a sensor that stop nothing, and that were not taken yet.
    reopen: AtomicBool,
    rotate: AtomicBool,
}

impl Stop {
    /// Takes the signals over; SIGHUP only where it is not ignored, as under nohup(1).
    pub(crate) fn on_signals() -> io::Result<Self> {
        let mut numbers = vec![SIGINT, SIGTERM];
        if !is_ignored(SIGHUP) {
            numbers.push(SIGHUP);
        }
        Self::on(&numbers, State::receive)
    }

    /// Takes the signals of a sensor over: SIGINT and SIGTERM stop it, SIGHUP asks to reopen logs, SIGUSR1 to rotate
    /// them.
    pub(crate) fn of_sensor() -> io::Result<Self> {
        Self::on(&[SIGINT, SIGTERM, SIGHUP, SIGUSR1], |state, number| match number {
            SIGHUP => state.reopen.store(true, Ordering::Relaxed),
            SIGUSR1 => state.rotate.store(true, Ordering::Relaxed),
            number => state.receive(number),
        })
    }

    /// Takes those signals over that are not ignored. The first SIGINT stops nothing where the script `reads_pipe`. Where `has_work`
    /// says that nothing is to be completed, they end the process as they do without a handler.
    #[cfg(feature = "lua")]
    pub(crate) fn of_script(has_work: fn() -> bool, reads_pipe: fn() -> bool) -> io::Result<Self> {
        let numbers = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|number| !is_ignored(*number));
        Self::on(&numbers.collect::<Vec<_>>(), move |state, number| {
            let is_first = number == SIGINT && state.signal.load(Ordering::Relaxed) == 0;
            if is_first && reads_pipe() && !state.drains.swap(true, Ordering::Relaxed) {
                return;
            }
            if state.signal.load(Ordering::Relaxed) == 0 && !has_work() {
                // A failure leaves the signal to the next pipeline.
                signal_hook::low_level::emulate_default_handler(number).unwrap_or_default();
            }
            state.receive(number);
        })
    }

    fn on(numbers: &[i32], receive: impl Fn(&State, i32) + Send + 'static) -> io::Result<Self> {
        let mut signals = Signals::new(numbers)?;
        let state = Arc::new(State::default());
        let own = Arc::clone(&state);
        let receive = move || signals.forever().for_each(|number| receive(&own, number));
        thread::Builder::new().name("signals".into()).spawn(receive)?;
        Ok(Self(state))
    }

    /// Sets a flag as well when the run is to stop.
    pub(crate) fn also(&self, flag: &Arc<AtomicBool>) {
        let mut also = self.0.also.lock().unwrap_or_else(PoisonError::into_inner);
        also.push(Arc::clone(flag));
        flag.fetch_or(self.asked().is_some(), Ordering::Relaxed);
    }

    /// A pipe is read: the first SIGINT does not stop the run.
    pub(crate) fn drain_first(&self) {
        self.0.reads_pipe.store(true, Ordering::Relaxed);
    }

    /// Scripts run, and one that loops does not see the signal: where the run is not over some seconds later, a message
    /// says what ends it.
    pub(crate) fn explain(&self) {
        self.0.explains.store(true, Ordering::Relaxed);
    }

    /// Whether SIGINT came while a pipe is read.
    pub(crate) fn drains(&self) -> bool {
        self.0.drains.load(Ordering::Relaxed)
    }

    /// Whether logs are to be reopened: since the last call.
    pub(crate) fn takes_reopen(&self) -> bool {
        self.0.reopen.swap(false, Ordering::Relaxed)
    }

    /// Whether logs are to be rotated: since the last call.
    pub(crate) fn takes_rotate(&self) -> bool {
        self.0.rotate.swap(false, Ordering::Relaxed)
    }

    /// How the run ends if it has to end now.
    pub(crate) fn asked(&self) -> Option<Outcome> {
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
        let also = self.also.lock().unwrap_or_else(PoisonError::into_inner);
        also.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
        if self.explains.load(Ordering::Relaxed) {
            let explain = || {
                thread::sleep(PATIENCE);
                Terminal::new(false).note(
                    &"the run is not over yet, as where a script loops: another signal ends it at once",
                );
            };
            // Where there is no thread for it, the signal works all the same.
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
