//! Arguments of a live capture.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use gannet_live::Mode;
use gannet_log::Names;

use super::reload::Reload;
use super::sinks;
use super::sinks::KafkaOptions;
use super::sinks::SpoolOptions;
use super::sinks::Target;
use super::times;
use crate::limits;

/// Options of the capture and of its logs.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "live")]
#[command(next_help_heading = "Live capture")]
pub(crate) struct Args {
    /// Capture on this interface until Ctrl-C; may be given several times
    #[arg(short, long = "interface", value_name = "IFACE",
          conflicts_with_all = ["files", "read", "each", "index"])]
    pub(crate) interfaces: Vec<String>,
    /// Memory of the capture ring of each interface
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = limits::size)]
    pub(crate) ring_size: u64,
    /// Rings on each interface, which share its packets by flow
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) sockets: u16,
    /// Capture only packets addressed to this host
    #[arg(long)]
    pub(crate) no_promiscuous: bool,
    /// End after this time, like 60s or 10min
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    pub(crate) duration: Option<Duration>,
    /// Start new files at this interval, like 1h or 1d, at multiples of it
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    pub(crate) rotate: Option<Duration>,
    /// Move rotated files to this folder, in which %Y, %m, %d, %H and %M stand for the time of their start
    #[arg(long, value_name = "DIR", value_parser = times::template)]
    pub(crate) rotate_to: Option<String>,
    /// Compress rotated files
    #[arg(long, value_name = "HOW")]
    pub(crate) rotate_compress: Option<Compress>,
    /// When files get their names: conn.log that is renamed, or conn.2026-11-23-17-00-00.log from the start
    #[arg(long, value_name = "WHEN", default_value = "renamed")]
    pub(crate) rotate_names: NamesArg,
    /// Run this program for each rotated file, with Zeek's arguments: FILE LOG OPENED CLOSED TERMINATING ascii
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) postprocessor: Option<PathBuf>,
    /// Remove the oldest rotated files: beyond an age, like 30d, or beyond a total size, like 200G
    #[arg(long, value_name = "AGE|SIZE", value_delimiter = ',', value_parser = times::keep)]
    pub(crate) keep: Vec<times::Keep>,
    /// Serve metrics for Prometheus here, like 127.0.0.1:9911
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Send rows as JSON lines as well: tcp://HOST:PORT, unix:PATH, syslog:, or syslog://HOST:PORT (UDP); may be given several times
    #[arg(long, value_name = "TARGET")]
    pub(crate) to: Vec<Target>,
    /// Send rows as JSON to Kafka as well, keyed by uid: HOST:PORT of brokers, with commas between them
    #[arg(long, value_name = "BROKERS", value_parser = sinks::brokers)]
    pub(crate) kafka: Option<String>,
    /// Name of a log's topic, in which {log} stands for the log
    #[arg(long, value_name = "NAME", default_value = "zeek.{log}", requires = "kafka")]
    pub(crate) kafka_topic: String,
    /// Use TLS to the brokers, with the certificates that the system trusts
    #[arg(long, requires = "kafka")]
    pub(crate) kafka_tls: bool,
    /// Store rows for --to and --kafka in this folder while the target is unavailable or the sensor is not running
    #[arg(long, value_name = "DIR")]
    pub(crate) spool: Option<PathBuf>,
    /// Size of the spool of each target; above it, the oldest rows are dropped and counted
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = limits::size, requires = "spool")]
    pub(crate) spool_size: u64,
    /// Run as this user after the rings are open: a name, or UID:GID
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Drop capabilities and access to files and system calls that are not needed after the rings are open
    #[arg(long, value_name = "MODE", default_value = "best-effort")]
    pub(crate) sandbox: SandboxMode,
    /// Form of messages on standard error
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// Reads the options again on SIGHUP, if they come from a file.
    #[arg(skip)]
    pub(crate) reload: Option<Reload>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compress {
    /// conn.2026-11-23-17-00-00.log.gz
    Gzip,
    /// conn.2026-11-23-17-00-00.log.zst
    Zstd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NamesArg {
    /// Files are named when they are rotated
    Renamed,
    /// Files are named when they are opened: for programs that follow files by name
    Opened,
}

impl From<NamesArg> for Names {
    fn from(names: NamesArg) -> Self {
        match names {
            NamesArg::Renamed => Self::Renamed,
            NamesArg::Opened => Self::Opened,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text
    Text,
    /// One JSON object per line
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxMode {
    /// Nothing is dropped
    Off,
    /// As much as the system allows; a message states what is not enforced
    BestEffort,
    /// Everything, or an error
    Required,
}

impl From<SandboxMode> for Mode {
    fn from(mode: SandboxMode) -> Self {
        match mode {
            SandboxMode::Off => Self::Off,
            SandboxMode::BestEffort => Self::BestEffort,
            SandboxMode::Required => Self::Required,
        }
    }
}

impl Args {
    /// Whether a live capture is requested.
    pub(crate) fn is_requested(&self) -> bool {
        !self.interfaces.is_empty()
    }

    /// The first given option that has no effect on captures in files.
    pub(crate) fn only_live(&self) -> Option<&'static str> {
        let given = [
            ("--no-promiscuous", self.no_promiscuous),
            ("--duration", self.duration.is_some()),
            ("--rotate", self.rotate.is_some()),
            ("--rotate-to", self.rotate_to.is_some()),
            ("--rotate-compress", self.rotate_compress.is_some()),
            ("--postprocessor", self.postprocessor.is_some()),
            ("--keep", !self.keep.is_empty()),
            ("--metrics", self.metrics.is_some()),
            ("--to", !self.to.is_empty()),
            ("--kafka", self.kafka.is_some()),
            ("--spool", self.spool.is_some()),
            ("--user", self.user.is_some()),
            ("--sandbox required", matches!(self.sandbox, SandboxMode::Required)),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// All targets of rows.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let kafka = self.kafka.clone().map(|brokers| {
            let topic = self.kafka_topic.clone();
            Target::Kafka(KafkaOptions { brokers, topic, tls: self.kafka_tls })
        });
        self.to.iter().cloned().chain(kafka).collect()
    }

    /// The spool for rows whose target is unavailable.
    pub(crate) fn spool(&self) -> Option<SpoolOptions> {
        let folder = self.spool.clone()?;
        Some(SpoolOptions { folder, limit: self.spool_size })
    }
}
