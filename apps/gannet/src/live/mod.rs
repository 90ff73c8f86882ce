//! `gannet analyze -i`: packets of interfaces in, logs out, until a signal.
//!
//! One thread, that of [sensor], reads packets, drives the engine and does once a second what is due: rotation, rows
//! of stats.log, the snapshot for other threads. A second thread, the [archive] takes rotated files, and a
//! third one, [metrics], answers Prometheus. Neither can delay the first one.

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

/// Captures as the arguments say, until a signal comes.
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
