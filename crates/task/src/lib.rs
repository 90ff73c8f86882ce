//! Analyses that return their logs as Arrow batches: of whole captures, or divided into tasks for many machines.
//!
//! [`Scan`] runs an analysis in its own thread and returns the rows of its logs as record batches. The thread blocks
//! while two batches are queued for the caller, so that memory does not grow with the capture. [`Settings`] are the
//! options of an analysis; they can be written as JSON.
//!
//! [`plan`] divides consecutive captures into [`Task`]s, and [`Task::scan`] runs one of them:
//!
//! ```text
//! files      a          b          c          d          e
//! task 2          ├ warm-up ┤├── own ──┤├─ run-on ─┤
//! ```
//!
//! A task owns the connections whose first packet is in its own files, and returns only their rows. It first reads
//! earlier files, for the time that a connection may be idle (the *warm-up*), so that a connection that began earlier
//! is not treated as a new one. After its own files it continues to read until its connections have ended (the
//! *run-on*). Packets have the same numbers as in a run over all files, so uids are the same in every task. The union
//! of the rows of all tasks equals the rows of one run, for any number of tasks; a task that is repeated returns the
//! same rows. Logs that depend on all traffic cannot be divided: see [`divisible`].

mod births;
mod error;
mod output;
mod plan;
mod scan;
mod settings;
mod task;
mod unanswered;

pub use error::Error;
pub use plan::Plan;
pub use plan::PlanOptions;
pub use plan::WARM_UP;
pub use plan::plan;
pub use scan::LogBatch;
pub use scan::Next;
pub use scan::Scan;
pub use settings::Settings;
pub use settings::fields_of;
pub use settings::schema_of;
pub use task::Task;
pub use task::TaskFile;
pub use task::divisible;
pub use unanswered::check_answered;
