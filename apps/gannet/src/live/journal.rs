//! Messages of a sensor: lines for people, or JSON objects for programs.

use std::fmt::Display;
use std::fmt::Write as _;
use std::io;
use std::io::Write as _;

use gannet_live::Source;

use super::args::LogFormat;

/// Writes messages to standard error.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    format: LogFormat,
    quiet: bool,
}

impl Journal {
    /// `quiet` leaves errors only.
    pub(crate) fn new(format: LogFormat, quiet: bool) -> Self {
        Self { format, quiet }
    }

    /// Something failed.
    pub(crate) fn error(&self, words: &dyn Display) {
        self.write("error", words);
    }

    /// Something is not as it should be.
    pub(crate) fn warning(&self, words: &dyn Display) {
        if !self.quiet {
            self.write("warning", words);
        }
    }

    /// Something happened.
    pub(crate) fn note(&self, words: &dyn Display) {
        if !self.quiet {
            self.write("note", words);
        }
    }

    /// Lines for people, whatever the format.
    pub(crate) fn table(&self, words: &dyn Display) {
        if !self.quiet && self.format == LogFormat::Text {
            let _ = writeln!(io::stderr(), "{words}");
        }
    }

    fn write(&self, level: &str, words: &dyn Display) {
        let line = match self.format {
            LogFormat::Text => format!("{level}: {words}"),
            LogFormat::Json => {
                let time = Source::clock().as_secs_f64();
                let mut line = format!("{{\"ts\":{time:.6},\"level\":\"{level}\",\"message\":\"");
                escape(&words.to_string(), &mut line);
                line.push_str("\"}");
                line
            }
        };
        // Where standard error is closed, the message has no reader.
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Appends text, escaped for a JSON string.
pub(crate) fn escape(text: &str, to: &mut String) {
    for letter in text.chars() {
        match letter {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            control if control < ' ' => {
                let _ = write!(to, "\\u{:04x}", u32::from(control));
            }
            letter => to.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        let mut out = String::new();
        escape("a\"b\\c\nd\u{1}é", &mut out);
        assert_eq!(out, "a\\\"b\\\\c\\nd\\u0001é");
    }
}
