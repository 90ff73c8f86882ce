//! A connection, an environment and their rows, for tests of analyzers.

use std::sync::Arc;
use std::sync::Mutex;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::UidSource;
use gannet_event::Events;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_event::Raised;
use gannet_files::Files;
use gannet_flow::Conn;
use gannet_log::Logs;

use crate::Context;
use crate::Env;
use crate::Options;
use crate::Replay;
use crate::Request;
use crate::Tag;

/// Everything a [`Context`] borrows.
pub(crate) struct Harness {
    pub(crate) now: Time,
    pub(crate) conn: Conn,
    pub(crate) env: Env,
    pub(crate) requests: Vec<Request>,
    pub(crate) starts: Vec<(Tag, Replay)>,
    received: Arc<Mutex<Vec<String>>>,
    texts: Arc<Mutex<Texts>>,
}

/// Texts of the lists of scripts, as pairs of list and text.
type Texts = Vec<(&'static str, &'static str)>;

/// Listener that records events as lines and decides about texts of logins.
struct RecordingListener(Arc<Mutex<Vec<String>>>, Arc<Mutex<Texts>>);

impl Listener for RecordingListener {
    fn event(&mut self, event: &Raised<'_>) {
        let mut line = Vec::new();
        gannet_event::write_json(&mut line, event);
        let line = String::from_utf8(line).unwrap();
        let (_, args) = line.split_once("\"args\":{").unwrap();
        let args = match args.split_once(":{\"id\":") {
            Some((_, conn)) => after_record(conn),
            None => args,
        };
        let args = args.strip_suffix("}}").unwrap().trim_start_matches(',');
        self.0.lock().unwrap().push(format!("{} {args}", event.decl.name));
    }

    fn decide(&mut self, question: &Raised<'_>) -> bool {
        let mut reader = question.args();
        let mut text = |at: usize| match reader.param(&question.decl.params[at]) {
            Some(gannet_event::Value::String(text)) => text,
            _ => &[],
        };
        let (list, line) = (text(0), text(1));
        let is = |(of, text): &(&str, &str)| {
            of.as_bytes() == list && memchr::memmem::find(line, text.as_bytes()).is_some()
        };
        self.1.lock().unwrap().iter().any(is)
    }
}

/// The part of a JSON record after a nested record; `record` begins within the nested one.
fn after_record(record: &str) -> &str {
    let mut depth = 1;
    let end = record.find(|c| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth == 0
    });
    &record[end.unwrap() + 1..]
}

impl Harness {
    /// A connection 10.0.0.1:1024 → 192.0.2.1:`port` that starts at 1.0.
    pub(crate) fn new(proto: Proto, port: u16) -> Self {
        let uids = UidSource::new(0);
        let id = ConnId {
            orig_h: Addr::v4([10, 0, 0, 1]),
            orig_p: 1024,
            resp_h: Addr::v4([192, 0, 2, 1]),
            resp_p: port,
        };
        let now = Time::from_secs(1);
        let logs = Logs::new(gannet_log::Options::default());
        Self {
            now,
            conn: Conn::new(uids.connection(1, 0), id, proto, 6, now),
            env: Env::new(Options::default(), logs.into(), Files::new(uids), uids),
            requests: Vec::new(),
            starts: Vec::new(),
            received: Arc::default(),
            texts: Arc::default(),
        }
    }

    /// Adds a listener for the events whose names begin with `prefix`.
    pub(crate) fn listen(&mut self, prefix: &str) {
        // Excludes the events that only count weirds or note states of logins.
        let interest = Interest::of(crate::events::all(), |decl| {
            let is_own = matches!(decl.name, "gannet::weird_seen" | "gannet::login_state");
            decl.name.starts_with(prefix) && (!is_own || decl.name == prefix)
        });
        self.env.logs.events = Events::new(
            interest,
            Box::new(RecordingListener(Arc::clone(&self.received), Arc::clone(&self.texts))),
        );
    }

    /// Puts these texts into the lists of scripts.
    pub(crate) fn answer(&mut self, texts: &[(&'static str, &'static str)]) {
        *self.texts.lock().unwrap() = texts.to_vec();
    }

    /// The events since the last call: name, and arguments as JSON without the connection.
    pub(crate) fn events(&mut self) -> Vec<String> {
        self.env.logs.events.drain();
        std::mem::take(&mut *self.received.lock().unwrap())
    }

    /// The context of a call of an analyzer.
    pub(crate) fn cx(&mut self) -> Context<'_> {
        Context {
            confirmed: None,
            now: self.now,
            conn: &mut self.conn,
            env: &mut self.env,
            requests: &mut self.requests,
            starts: &mut self.starts,
        }
    }

    /// The rows of a log so far: one map from column to text each.
    pub(crate) fn rows(&self, path: &str) -> Vec<std::collections::BTreeMap<String, String>> {
        let text = String::from_utf8_lossy(self.env.logs.pending(path)).into_owned();
        let fields = text.lines().find_map(|l| l.strip_prefix("#fields\t")).unwrap_or_default();
        let names: Vec<_> = fields.split('\t').map(str::to_owned).collect();
        let rows = text.lines().filter(|l| !l.starts_with('#'));
        rows.map(|l| names.iter().cloned().zip(l.split('\t').map(str::to_owned)).collect())
            .collect()
    }

    /// Whether a protocol was confirmed.
    pub(crate) fn confirmed(&self, tag: Tag) -> bool {
        self.requests.iter().any(|r| matches!(r, Request::Confirm(t) if *t == tag))
    }

    /// Whether a violation was reported.
    pub(crate) fn violated(&self, tag: Tag) -> bool {
        self.requests.iter().any(|r| matches!(r, Request::Violation { tag: t, .. } if *t == tag))
    }

    /// The violations that were reported, and why.
    pub(crate) fn violations(&self) -> Vec<(Tag, String)> {
        let reported = self.requests.iter().filter_map(|r| match r {
            Request::Violation { tag, reason, .. } => {
                Some((*tag, String::from_utf8_lossy(reason).into_owned()))
            }
            _ => None,
        });
        reported.collect()
    }
}
