//! Numbers of analyzers: what scripts name one analyzer of a connection by (`aid`).
//!
//! Zeek counts the analyzers of all connections together. A connection begins with one for its transport,
//! then one that detects protocols, then those of its port with their splitters of lines or messages, and
//! last one that counts its bytes; analyzers that start later follow. Numbers are given out only in an
//! analysis whose events have a listener.

use std::collections::HashMap;

use gannet_base::Proto;
use gannet_base::Uid;

use crate::Tag;

/// The numbers of an analysis.
#[derive(Debug, Default)]
pub(crate) struct AnalyzerIds {
    last: u64,
    conns: HashMap<Uid, Vec<Numbered>>,
}

#[derive(Debug)]
struct Numbered {
    tag: Tag,
    id: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its port or an announcement asks for it.
    Planned,
    Started,
    Stopped,
}

impl AnalyzerIds {
    /// A connection begins, with analyzers that its port or an announcement asks for.
    pub(crate) fn begin(&mut self, conn: Uid, proto: Proto, tags: &[Tag]) {
        self.last += 1;
        let mut list = Vec::new();
        if matches!(proto, Proto::Tcp | Proto::Udp) {
            self.last += 1;
            list.push(Numbered { tag: Tag::Detector, id: self.last, state: State::Planned });
            for tag in tags {
                let id = self.next(proto, *tag);
                list.push(Numbered { tag: *tag, id, state: State::Planned });
            }
        }
        self.last += 1;
        self.conns.insert(conn, list);
    }

    /// An analyzer starts: it has the number planned for it, or a new one if another of its kind stopped.
    pub(crate) fn start(&mut self, conn: Uid, proto: Proto, tag: Tag) {
        let list = self.conns.entry(conn).or_default();
        if let Some(known) = list.iter_mut().find(|n| n.tag == tag && n.state != State::Stopped) {
            let again = tag == Tag::Detector && known.state == State::Started;
            if !again {
                known.state = State::Started;
                return;
            }
        }
        list.retain(|n| n.tag != tag);
        let id = self.next(proto, tag);
        let fresh = Numbered { tag, id, state: State::Started };
        self.conns.entry(conn).or_default().push(fresh);
    }

    /// An analyzer stops. Events may still name it.
    pub(crate) fn stop(&mut self, conn: Uid, tag: Tag) {
        let list = self.conns.get_mut(&conn);
        if let Some(known) = list.and_then(|l| l.iter_mut().find(|n| n.tag == tag)) {
            known.state = State::Stopped;
        }
    }

    /// The number of an analyzer; one that is part of another analyzer gets its own when it is asked for.
    pub(crate) fn of(&mut self, conn: Uid, proto: Proto, tag: Tag) -> u64 {
        if let Some(known) = self.conns.get(&conn).and_then(|l| l.iter().find(|n| n.tag == tag)) {
            return known.id;
        }
        self.start(conn, proto, tag);
        self.conns.get(&conn).and_then(|l| l.last()).map_or(0, |n| n.id)
    }

    /// Numbers go to analyzers that have no events.
    pub(crate) fn skip(&mut self, count: u64) {
        self.last += count;
    }

    /// The analyzer of a number.
    pub(crate) fn tag(&self, conn: Uid, aid: u64) -> Option<Tag> {
        self.conns.get(&conn)?.iter().find(|n| n.id == aid).map(|n| n.tag)
    }

    /// A connection ends.
    pub(crate) fn end(&mut self, conn: Uid) {
        self.conns.remove(&conn);
    }

    /// The next number; the analyzers that a protocol's own brings with it follow it.
    fn next(&mut self, proto: Proto, tag: Tag) -> u64 {
        let id = self.last + 1;
        self.last = id + splitters(proto, tag);
        id
    }
}

/// Analyzers that come with one: those that split lines or messages, one for each side.
fn splitters(proto: Proto, tag: Tag) -> u64 {
    match tag {
        Tag::Http | Tag::Ftp | Tag::Smtp | Tag::Pop3 | Tag::Irc | Tag::Finger => 2,
        Tag::Dns if proto == Proto::Tcp => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::UidSource;

    use super::*;

    #[test]
    fn analyzers_of_all_connections_are_counted_together() {
        let mut ids = AnalyzerIds::default();
        let (uids, tcp, udp) = (UidSource::new(0), Proto::Tcp, Proto::Udp);
        let [a, b, c] = [0, 1, 2].map(|n| uids.connection(1, n));
        ids.begin(a, tcp, &[Tag::Http, Tag::Socks]);
        assert_eq!([Tag::Detector, Tag::Http, Tag::Socks].map(|t| ids.of(a, tcp, t)), [2, 3, 6]);
        ids.begin(b, Proto::Icmp, &[]);
        ids.begin(c, udp, &[Tag::Dns]);
        assert_eq!(ids.of(c, udp, Tag::Dns), 12);
        // One that is found later follows, and one that starts again is another one.
        ids.start(a, tcp, Tag::Http);
        ids.start(a, tcp, Tag::Ssl);
        assert_eq!([Tag::Http, Tag::Ssl].map(|t| ids.of(a, tcp, t)), [3, 14]);
        ids.stop(a, Tag::Http);
        assert_eq!(ids.of(a, tcp, Tag::Http), 3);
        ids.start(a, tcp, Tag::Http);
        assert_eq!(ids.of(a, tcp, Tag::Http), 15);
        ids.skip(2);
        assert_eq!(ids.of(a, tcp, Tag::Ssh), 20);
        ids.end(a);
        assert!(!ids.conns.contains_key(&a));
    }
}
