//! Messages and progress on standard error.

use std::fmt::Display;
use std::io;
use std::io::IsTerminal;
use std::io::Write;
use std::time::Duration;
use std::time::Instant;

use gannet_capture::Stream;
use gannet_script::support::text::levenshtein;
use indicatif::HumanCount;
use indicatif::ProgressBar;
use indicatif::ProgressDrawTarget;
use indicatif::ProgressStyle;

/// Interval at which the progress bar is redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Receives the messages about a stream.
pub(crate) trait Messages {
    /// Reports that the stream could not be read to its end.
    fn error(&mut self, what: &dyn Display);
    /// Reports that something was left out.
    fn warning(&mut self, what: &dyn Display);
    /// Shows the progress of reading.
    fn progress(&mut self, stream: &Stream);
}

/// The name with the smallest edit distance to `name`, if the distance is small.
pub(crate) fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    let edits = |other: &&str| levenshtein(name.as_bytes(), other.as_bytes());
    let near = names.iter().copied().min_by_key(edits)?;
    (edits(&near) <= name.len().div_ceil(3) as u64).then_some(near)
}

/// An error and its causes in one line. A cause that the text before it contains is left out.
pub(crate) fn causes(error: &anyhow::Error) -> String {
    let mut all = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if all.is_empty() {
            all = cause;
        } else if !all.ends_with(&cause) {
            all.push_str(": ");
            all.push_str(&cause);
        }
    }
    all
}

impl Messages for Terminal {
    fn error(&mut self, what: &dyn Display) {
        Terminal::error(self, what);
    }

    fn warning(&mut self, what: &dyn Display) {
        Terminal::warning(self, what);
    }

    fn progress(&mut self, stream: &Stream) {
        Terminal::progress(self, stream);
    }
}

/// Buffered messages; the flag marks errors.
#[derive(Default)]
pub(crate) struct Collected(Vec<(bool, String)>);

impl Collected {
    /// Prints the messages.
    pub(crate) fn print(&self, terminal: &Terminal) {
        for (is_error, text) in &self.0 {
            if *is_error { terminal.error(text) } else { terminal.warning(text) }
        }
    }
}

impl Messages for Collected {
    fn error(&mut self, what: &dyn Display) {
        self.0.push((true, what.to_string()));
    }

    fn warning(&mut self, what: &dyn Display) {
        self.0.push((false, what.to_string()));
    }

    fn progress(&mut self, _: &Stream) {}
}

/// Standard error: messages, and on a terminal a progress bar below them.
pub(crate) struct Terminal {
    quiet: bool,
    bar: ProgressBar,
    started: Instant,
    drawn: Instant,
}

impl Terminal {
    /// With `quiet` only errors are printed.
    pub(crate) fn new(quiet: bool) -> Self {
        let now = Instant::now();
        Self { quiet, bar: ProgressBar::hidden(), started: now, drawn: now }
    }

    /// Whether standard error is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    pub(crate) fn error(&self, what: &dyn Display) {
        self.print_lines(&format_args!("error: {what}"));
    }

    pub(crate) fn warning(&self, what: &dyn Display) {
        if !self.quiet {
            self.print_lines(&format_args!("warning: {what}"));
        }
    }

    pub(crate) fn note(&self, what: &dyn Display) {
        if !self.quiet {
            self.print_lines(&format_args!("note: {what}"));
        }
    }

    pub(crate) fn hint(&self, what: &dyn Display) {
        if !self.quiet {
            self.print_lines(&format_args!("hint: {what}"));
        }
    }

    /// Prints one or more lines unchanged.
    pub(crate) fn print_lines(&self, text: &dyn Display) {
        // If standard error is closed, nothing can be reported.
        self.bar.suspend(|| writeln!(io::stderr(), "{text}").unwrap_or_default());
    }

    /// Starts to show the progress of a stream, on a terminal.
    pub(crate) fn begin(&mut self, stream: &Stream) {
        if !self.is_terminal() {
            return;
        }
        self.bar = match stream.bytes_total() {
            Some(total) => ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr())
                .with_style(style("{bar:24} {bytes}/{total_bytes}, {msg}, {eta} left")),
            None => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
                .with_style(style("{spinner} {bytes}, {msg}")),
        };
        self.started = Instant::now();
    }

    /// Updates the progress bar.
    pub(crate) fn progress(&mut self, stream: &Stream) {
        if self.bar.is_hidden() || self.drawn.elapsed() < REDRAW_INTERVAL {
            return;
        }
        self.drawn = Instant::now();
        let (packets, bytes) = (stream.packets(), stream.bytes_done());
        let seconds = self.started.elapsed().as_secs_f64().max(1e-9);
        self.bar.set_position(bytes);
        self.bar.set_message(format!(
            "{} packets, {}/s, {:.2} Gbit/s",
            HumanCount(packets),
            HumanCount((packets as f64 / seconds) as u64),
            bytes as f64 * 8e-9 / seconds
        ));
    }

    /// Removes the progress bar.
    pub(crate) fn end(&mut self) {
        self.bar.finish_and_clear();
        self.bar = ProgressBar::hidden();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_reported_once() {
        let file = gannet_capture::Error::Io {
            file: "x.pcap".into(),
            source: io::ErrorKind::NotFound.into(),
        };
        let message = file.to_string();
        let error = anyhow::Error::new(file);
        assert_eq!(causes(&error), message);
        assert_eq!(causes(&error.context("while writing")), format!("while writing: {message}"));
    }

    #[test]
    fn templates_are_valid() {
        for template in ["{bar:24} {bytes}/{total_bytes}, {msg}, {eta} left", "{spinner} {bytes}"] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn names_with_a_small_edit_distance_are_near() {
        let names = ["conn", "dns", "http", "x509"];
        assert_eq!(nearest("con", &names), Some("conn"));
        assert_eq!(nearest("htpt", &names), Some("http"));
        assert_eq!(nearest("DNS", &["dns"]), None);
        assert_eq!(nearest("kerberos", &names), None);
    }
}
