//! Numbers of analyzers: what scripts name one analyzer of a connection by (`aid`).
//!
//! Zeek counts the analyzers of all connections together. A connection begins with one for its transport,
//! then one that detects protocols, then those of its port with their splitters of lines or messages, and
//! last one that counts its bytes; analyzers that start later follow. Numbers are given out only in an
//! analysis whose events have a listener.

use gannet_base::Proto;
use gannet_base::Uid;
use gannet_base::UidMap;
use gannet_event::Events;

use crate::Tag;

/// The numbers of the analyzers of each connection. The queue of events gives them out.
#[derive(Debug, Default)]
pub(crate) struct AnalyzerIds {
    conns: UidMap<OfConn>,
}

/// What is numbered of a connection.
#[derive(Debug, Default)]
struct OfConn {
    /// The first number that it began with.
    first: u64,
    analyzers: Vec<Numbered>,
    /// Certificates that events showed as files.
    certificates: u64,
}

#[derive(Debug)]
struct Numbered {
    tag: Tag,
    id: u64,
    state: State,
    violations: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its port or an announcement asks for it.
    Planned,
    Started,
    Stopped,
}

impl AnalyzerIds {
    /// A connection begins, with analyzers that its port or an announcement asks for. Returns the first and the last of
    /// the numbers.
    pub(crate) fn begin(
        &mut self,
        events: &mut Events,
        conn: Uid,
        proto: Proto,
        tags: &[Tag],
    ) -> (u64, u64) {
        // Its transport, and at the end what counts its bytes.
        let mut count = 2;
        let mut places = Vec::new();
        if matches!(proto, Proto::Tcp | Proto::Udp) {
            places.push((Tag::Detector, 1));
            count += 1;
            for tag in tags {
                places.push((*tag, count - 1));
                count += 1 + splitters(proto, *tag);
            }
        }
        let first = events.number_analyzers(count);
        let planned = |(tag, place)| Numbered {
            tag,
            id: first + place,
            state: State::Planned,
            violations: 0,
        };
        let analyzers = places.into_iter().map(planned).collect();
        self.conns.insert(conn, OfConn { first, analyzers, certificates: 0 });
        (first, first + count - 1)
    }

    /// An analyzer starts: it has the number planned for it, or a new one if another of its kind stopped.
    pub(crate) fn start(&mut self, events: &mut Events, conn: Uid, proto: Proto, tag: Tag) {
        let list = &mut self.conns.entry(conn).or_default().analyzers;
        if let Some(known) = list.iter_mut().find(|n| n.tag == tag && n.state != State::Stopped) {
            let again = tag == Tag::Detector && known.state == State::Started;
            if !again {
                known.state = State::Started;
                return;
            }
        }
        if let Some(old) = list.iter().position(|n| n.tag == tag) {
            events.forget_number(list.remove(old).id);
        }
        // The analyzers that a protocol's own brings with it follow it.
        let id = events.number_analyzers(1 + splitters(proto, tag));
        list.push(Numbered { tag, id, state: State::Started, violations: 0 });
    }

    /// An analyzer stops. Events may still name it.
    pub(crate) fn stop(&mut self, conn: Uid, tag: Tag) {
        let list = self.conns.get_mut(&conn);
        let known = list.and_then(|of| of.analyzers.iter_mut().find(|n| n.tag == tag));
        if let Some(known) = known {
            known.state = State::Stopped;
        }
    }

    /// The number of an analyzer; one that is part of another analyzer gets its own when it is asked for.
    pub(crate) fn of(&mut self, events: &mut Events, conn: Uid, proto: Proto, tag: Tag) -> u64 {
        let known = |of: &OfConn| of.analyzers.iter().find(|n| n.tag == tag).map(|n| n.id);
        if let Some(known) = self.conns.get(&conn).and_then(known) {
            return known;
        }
        self.start(events, conn, proto, tag);
        self.conns.get(&conn).and_then(|of| of.analyzers.last()).map_or(0, |n| n.id)
    }

    /// One more analyzer inside of another: it has a number of its own, whatever others of its kind there are. Returns
    /// the number.
    pub(crate) fn instance(&mut self, events: &mut Events, conn: Uid, tag: Tag) -> u64 {
        let id = events.number_analyzers(1);
        let numbered = Numbered { tag, id, state: State::Started, violations: 0 };
        self.conns.entry(conn).or_default().analyzers.push(numbered);
        id
    }

    /// Counts a violation of a numbered analyzer: returns how many there were, with this one.
    pub(crate) fn count_violation(&mut self, conn: Uid, tag: Tag) -> u64 {
        let list = self.conns.get_mut(&conn);
        let known = list.and_then(|of| of.analyzers.iter_mut().find(|n| n.tag == tag));
        known.map_or(1, |known| {
            known.violations += 1;
            known.violations
        })
    }

    /// The analyzer of a number.
    pub(crate) fn tag(&self, conn: Uid, aid: u64) -> Option<Tag> {
        self.conns.get(&conn)?.analyzers.iter().find(|n| n.id == aid).map(|n| n.tag)
    }

    /// How many certificates events showed as files of a connection before this one.
    pub(crate) fn next_certificate(&mut self, conn: Uid) -> u64 {
        let count = &mut self.conns.entry(conn).or_default().certificates;
        *count += 1;
        *count - 1
    }

    /// A connection ends.
    pub(crate) fn end(&mut self, events: &mut Events, conn: Uid) {
        if let Some(of) = self.conns.remove(&conn) {
            events.forget_numbers(of.first);
            of.analyzers.iter().for_each(|n| events.forget_numbers(n.id));
        }
    }
}

/// Analyzers that come with one: those that split lines or messages, one for each side.
fn splitters(proto: Proto, tag: Tag) -> u64 {
    match tag {
        Tag::Http | Tag::Ftp | Tag::Smtp | Tag::Pop3 | Tag::Irc => 2,
        Tag::Finger | Tag::Ident => 2,
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
        let mut events = Events::default();
        let events = &mut events;
        let (uids, tcp, udp) = (UidSource::new(0), Proto::Tcp, Proto::Udp);
        let [a, b, c] = [0, 1, 2].map(|n| uids.connection(1, n));
        assert_eq!(ids.begin(events, a, tcp, &[Tag::Http, Tag::Socks]), (1, 7));
        assert_eq!(
            [Tag::Detector, Tag::Http, Tag::Socks].map(|t| ids.of(events, a, tcp, t)),
            [2, 3, 6]
        );
        assert_eq!(ids.begin(events, b, Proto::Icmp, &[]), (8, 9));
        ids.begin(events, c, udp, &[Tag::Dns]);
        assert_eq!(ids.of(events, c, udp, Tag::Dns), 12);
        // One that is found later follows, and one that starts again is another one.
        ids.start(events, a, tcp, Tag::Http);
        ids.start(events, a, tcp, Tag::Ssl);
        assert_eq!([Tag::Http, Tag::Ssl].map(|t| ids.of(events, a, tcp, t)), [3, 14]);
        ids.stop(a, Tag::Http);
        assert_eq!(ids.of(events, a, tcp, Tag::Http), 3);
        ids.start(events, a, tcp, Tag::Http);
        assert_eq!(ids.of(events, a, tcp, Tag::Http), 15);
        events.skip_numbers(2);
        assert_eq!(ids.of(events, a, tcp, Tag::Ssh), 20);
        assert_eq!([1, 2].map(|_| ids.count_violation(a, Tag::Ssh)), [1, 2]);
        // Others inside of an analyzer have their own.
        let [one, two] = [1, 2].map(|_| ids.instance(events, a, Tag::DceRpc));
        assert_eq!((one, two, ids.tag(a, two)), (21, 22, Some(Tag::DceRpc)));
        ids.end(events, a);
        assert!(!ids.conns.contains_key(&a));
    }
}
