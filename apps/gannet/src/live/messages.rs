//! Messages of a sensor on standard error: lines for people, or JSON objects for programs.

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

/// Writes this process' messages from now on; with `quiet` only errors.
pub(super) fn install(format: LogFormat, quiet: bool) {
    let least = if quiet { Level::ERROR } else { Level::INFO };
    // Libraries report to us what we then report in our words.
    let own = Targets::new().with_target("gannet", least);
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let layer = match format {
        LogFormat::Text => layer.event_format(Lines).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_target(false).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(own));
    // A process that has a subscriber already keeps it.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// `warning: eth0 is down`: the level as the command's other messages name it, and the message, which has the fields
/// in its words.
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

/// Writes the message of an event and leaves its other fields out.
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
