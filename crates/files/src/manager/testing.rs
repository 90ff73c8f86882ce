//! Helpers shared by the tests of files: the start of a file, and a listener that records events.

use std::sync::Arc;
use std::sync::Mutex;

use gannet_base::Dir;
use gannet_event::Events;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_event::Raised;

use crate::FileStart;

/// A file that a server sends over HTTP.
pub(super) fn start() -> FileStart {
    FileStart { source: "HTTP", from: Dir::Resp, ..FileStart::default() }
}

/// The events so far, one line each.
pub(super) type Lines = Arc<Mutex<Vec<String>>>;

/// Records the events with these names: for each the result of `describe` for its name and JSON.
pub(super) fn listening(names: &[&str], describe: fn(&str, &str) -> String) -> (Events, Lines) {
    let lines = Lines::default();
    let declared = crate::events::EVENTS.iter().copied();
    let interest = Interest::of(declared, |decl| names.contains(&decl.name));
    let listener = Noting { describe, lines: Arc::clone(&lines) };
    (Events::new(interest, Box::new(listener)), lines)
}

/// The number of bytes that an event shows as seen.
pub(super) fn seen_bytes(json: &str) -> String {
    let (_, seen) = json.split_once("\"seen_bytes\":").unwrap_or_default();
    seen.chars().take_while(char::is_ascii_digit).collect()
}

struct Noting {
    describe: fn(&str, &str) -> String,
    lines: Lines,
}

impl Listener for Noting {
    fn event(&mut self, event: &Raised<'_>) {
        let mut json = Vec::new();
        gannet_event::write_json(&mut json, event);
        let json = String::from_utf8(json).unwrap();
        let name = event.decl.name;
        self.lines.lock().unwrap().push(format!("{name} {}", (self.describe)(name, &json)));
    }
}
