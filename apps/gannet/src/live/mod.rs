//! `gannet analyze -i`: packets of interfaces in, logs out, until a signal.
//!
//! The thread of [sensor] reads packets, drives the engine and, once a second, rotates logs, writes rows of stats.log and
//! updates the snapshot for other threads. A second thread, [archive], processes rotated files, and a third one, [metrics],
//! answers Prometheus. Neither can delay the first.

mod archive;
mod args;
mod messages;
mod metrics;
mod notify;
pub(crate) mod reload;
mod sensor;
mod sinks;
mod snapshot;
mod talkers;
pub(crate) mod times;

use std::path::Path;

use gannet_engine::Options;

use crate::outcome::Outcome;

pub(crate) use args::Args;
pub(crate) use sensor::program;

/// Captures with these arguments until a signal arrives.
pub(crate) fn run(
    args: &Args,
    options: Options,
    filter: Option<&str>,
    folders: (&Path, Option<&Path>),
    quiet: bool,
) -> anyhow::Result<Outcome> {
    messages::install(args.log_format, quiet);
    match sensor::Sensor::open(args, options, filter, folders, quiet) {
        Ok(sensor) => sensor.run(),
        Err(sensor::Failure::Usage(words)) => {
            tracing::error!("{words}");
            Ok(Outcome::NoCapture)
        }
        Err(sensor::Failure::LeftOut) => Ok(Outcome::NoCapture),
        Err(sensor::Failure::Other(error)) => Err(error),
    }
}
