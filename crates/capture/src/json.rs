//! A JSON writer for summaries (RFC 8259).

use std::fmt::Display;
use std::fmt::Write;

/// An object that is written field by field.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Self("{".into())
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        quote(&mut self.0, name);
        self.0.push(':');
    }

    /// Adds a value whose text is valid JSON, such as a number or a boolean; `null` for `None`.
    pub(crate) fn number(&mut self, name: &str, value: Option<impl Display>) {
        self.name(name);
        match value {
            // Writing to a string cannot fail.
            Some(value) => write!(self.0, "{value}").unwrap_or_default(),
            None => self.0.push_str("null"),
        }
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        quote(&mut self.0, value);
    }

    /// Adds a string, or `null`.
    pub(crate) fn maybe(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(name, value),
            None => self.number(name, None::<u8>),
        }
    }

    pub(crate) fn texts(&mut self, name: &str, values: &[String]) {
        self.name(name);
        self.0.push('[');
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            quote(&mut self.0, value);
        }
        self.0.push(']');
    }

    pub(crate) fn objects(&mut self, name: &str, values: impl Iterator<Item = Self>) {
        self.name(name);
        self.0.push('[');
        for (index, value) in values.enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.0.push_str(&value.finish());
        }
        self.0.push(']');
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                write!(out, "\\u{:04x}", u32::from(c)).unwrap_or_default();
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_nesting() {
        let mut o = Object::new();
        o.text("a\"b", "x\\y\n\u{1}é");
        o.number("n", Some(1.5));
        o.maybe("none", None);
        o.texts("t", &["p".into(), "q".into()]);
        o.objects("o", [Object::new(), Object::new()].into_iter());
        let json = o.finish();
        assert_eq!(
            json,
            r#"{"a\"b":"x\\y\n\u0001é","n":1.5,"none":null,"t":["p","q"],"o":[{},{}]}"#
        );
    }
}
