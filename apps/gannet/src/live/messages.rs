//! Messages of a sensor on standard error: lines of text or JSON objects.

use std::fmt;
use std::io;

use tracing::Event;
use tracing::Level;
use tracing::Subscriber;
use tracing::field::Field;
use tracing::field::Visit;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::FormatEvent;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;

use super::args::LogFormat;

/// Installs the subscriber that writes messages; with `quiet` only errors.
pub(super) fn install(format: LogFormat, quiet: bool) {
    let min = if quiet { Level::ERROR } else { Level::INFO };
    // Messages of libraries are left out: the command reports their errors itself.
    let filter = Targets::new().with_target("gannet", min);
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let layer = match format {
        LogFormat::Text => layer.event_format(Lines).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_target(false).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    // If a subscriber is installed already, it stays.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Formats events like `warning: eth0 is down`: the level as in the command's other messages, then the message, which
/// includes the fields.
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => "note",
        };
        write!(to, "{level}: ")?;
        let mut message = Message { to: to.by_ref(), result: Ok(()) };
        event.record(&mut message);
        message.result?;
        writeln!(to)
    }
}

/// Writes the message of an event, without its other fields.
struct Message<'a> {
    to: Writer<'a>,
    result: fmt::Result,
}

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.result = write!(self.to, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::Mutex;

    /// Collects what is written.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_has_the_level_and_the_message_alone() {
        let written = Written::default();
        let to = written.clone();
        let layer = tracing_subscriber::fmt::layer().with_writer(move || to.clone());
        let subscriber = tracing_subscriber::registry().with(layer.event_format(Lines));
        tracing::subscriber::with_default(subscriber, || {
            let name = "eth0";
            tracing::warn!(interface = name, "{name} is down");
            tracing::info!(rows = 3, "on");
            tracing::error!("no");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "warning: eth0 is down\nnote: on\nerror: no\n");
    }
}
