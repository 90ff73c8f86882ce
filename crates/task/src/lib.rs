//! Analyses whose logs are Arrow batches: of captures as a whole, and of tasks that many machines share.
//!
//! [`Scan`] runs an analysis in a thread of its own and returns the rows of its logs as record batches, one after
//! the other. The thread waits while two batches wait for the caller, so that memory does not grow with the
//! capture. [`Settings`] say what is analysed; they can be written as JSON.
//!
//! [`plan`] divides captures that follow each other into [`Task`]s, and [`Task::scan`] runs one of them:
//!
//! ```text
//! files      a          b          c          d          e
//! task 2          ├ warm-up ┤├── own ──┤├─ run-on ─┤
//! ```
//!
//! A task owns the connections whose first packet is in its own files, and returns their rows and no others. It
//! first reads the files before them for as long as a connection may be idle (the *warm-up*), so that a
//! connection that began earlier is not taken for a new one, and reads on behind them until its connections have
//! ended (the *run-on*). Packets have the numbers that they have in a run over all files, so uids are the same
//! in every task. The rows of all tasks together are those of one run, whatever the number of tasks; a task that
//! runs again returns the same rows. Logs that are about all of the traffic cannot be divided: [`divisible`] says
//! which, and why.

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
