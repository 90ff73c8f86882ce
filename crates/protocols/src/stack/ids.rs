//! Analyzer numbers (`aid`), by which scripts identify an analyzer of a connection.
//!
//! Zeek counts the analyzers of all connections together. A connection begins with its transport
//! analyzer, then one that detects protocols, then those of its port with their support analyzers,
//! which split data into lines or messages, and last one that counts bytes; analyzers that start
//! later follow. Numbers are assigned only if events have a listener.

use gannet_base::Proto;
use gannet_base::Uid;
use gannet_base::UidMap;
use gannet_event::Events;
use gannet_flow::Conn;
use gannet_flow::Numbers;

use crate::Tag;

/// The numbers of the analyzers of each connection, except those that follow from its first number.
/// The event queue assigns them.
#[derive(Debug, Default)]
pub(crate) struct AnalyzerIds {
    conns: UidMap<ConnNumbers>,
}

/// Numbered items of a connection.
#[derive(Debug, Default)]
struct ConnNumbers {
    analyzers: Vec<NumberedAnalyzer>,
    /// Number of certificates that were reported as files.
    certificates: u64,
}

#[derive(Debug)]
struct NumberedAnalyzer {
    tag: Tag,
    id: u64,
    state: State,
    violations: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Selected by the port or an announcement, and not started.
    Planned,
    Started,
    Stopped,
}

/// Whether connections of a transport begin with an analyzer that detects their protocol.
fn has_detector(proto: Proto) -> bool {
    matches!(proto, Proto::Tcp | Proto::Udp)
}

/// The number of the detector with which a connection begins.
fn detector_number(conn: &Conn) -> Option<u64> {
    let first = conn.numbers().first;
    (first != 0 && has_detector(conn.proto)).then_some(first + 1)
}

impl AnalyzerIds {
    /// Assigns numbers to a new connection, with the analyzers that its port or an announcement
    /// selects. Returns the first and the last number.
    pub(crate) fn begin(
        &mut self,
        events: &mut Events,
        conn: &mut Conn,
        tags: &[Tag],
    ) -> (u64, u64) {
        // The transport analyzer, and the size analyzer at the end.
        let mut count = 2;
        let mut offsets = Vec::new();
        if has_detector(conn.proto) {
            count += 1;
            for tag in tags {
                offsets.push((*tag, count - 1));
                count += 1 + support_analyzers(conn.proto, *tag);
            }
        }
        let first = events.number_analyzers(count);
        conn.set_numbers(Numbers { first, detects: false });
        // Most connections have no other analyzers.
        if !offsets.is_empty() {
            let planned = |(tag, offset)| NumberedAnalyzer {
                tag,
                id: first + offset,
                state: State::Planned,
                violations: 0,
            };
            let analyzers = offsets.into_iter().map(planned).collect();
            self.conns.insert(conn.uid, ConnNumbers { analyzers, certificates: 0 });
        }
        (first, first + count - 1)
    }

    /// The number and state of an analyzer, if it has one.
    fn entry(&mut self, conn: &Conn, tag: Tag) -> Option<&mut NumberedAnalyzer> {
        if tag == Tag::Detector
            && let Some(id) = detector_number(conn)
        {
            let list = &mut self.conns.entry(conn.uid).or_default().analyzers;
            if list.iter().all(|n| n.tag != tag) {
                let state = if conn.numbers().detects { State::Started } else { State::Planned };
                list.push(NumberedAnalyzer { tag, id, state, violations: 0 });
            }
        }
        let list = &mut self.conns.get_mut(&conn.uid)?.analyzers;
        list.iter_mut().find(|n| n.tag == tag)
    }

    /// Notes that an analyzer starts: it gets the number planned for it, or a new one if another
    /// one of its protocol stopped.
    pub(crate) fn start(&mut self, events: &mut Events, conn: &mut Conn, tag: Tag) {
        let numbers = conn.numbers();
        if tag == Tag::Detector && detector_number(conn).is_some() && !numbers.detects {
            return conn.set_numbers(Numbers { detects: true, ..numbers });
        }
        self.add(events, conn, tag);
    }

    /// Like [`start`](Self::start), for an analyzer other than the detector with which the
    /// connection begins.
    fn add(&mut self, events: &mut Events, conn: &Conn, tag: Tag) {
        let entry = self.entry(conn, tag).filter(|entry| entry.state != State::Stopped);
        if let Some(entry) = entry {
            let again = tag == Tag::Detector && entry.state == State::Started;
            if !again {
                entry.state = State::Started;
                return;
            }
        }
        let list = &mut self.conns.entry(conn.uid).or_default().analyzers;
        if let Some(old) = list.iter().position(|n| n.tag == tag) {
            events.forget_number(list.remove(old).id);
        }
        // Support analyzers of a protocol follow it.
        let id = events.number_analyzers(1 + support_analyzers(conn.proto, tag));
        list.push(NumberedAnalyzer { tag, id, state: State::Started, violations: 0 });
    }

    /// Notes that an analyzer stops. Events may still refer to it.
    pub(crate) fn stop(&mut self, conn: &Conn, tag: Tag) {
        if let Some(entry) = self.entry(conn, tag) {
            entry.state = State::Stopped;
        }
    }

    /// The number of an analyzer; an analyzer that is part of another one gets its number on first
    /// use.
    pub(crate) fn number(&mut self, events: &mut Events, conn: &Conn, tag: Tag) -> u64 {
        if let Some(entry) = self.entry(conn, tag) {
            return entry.id;
        }
        self.add(events, conn, tag);
        self.entry(conn, tag).map_or(0, |entry| entry.id)
    }

    /// Assigns a number to one more analyzer nested in another one, regardless of others of its
    /// protocol.
    pub(crate) fn instance(&mut self, events: &mut Events, conn: Uid, tag: Tag) -> u64 {
        let id = events.number_analyzers(1);
        let numbered = NumberedAnalyzer { tag, id, state: State::Started, violations: 0 };
        self.conns.entry(conn).or_default().analyzers.push(numbered);
        id
    }

    /// Counts a violation of a numbered analyzer, and returns the total.
    pub(crate) fn count_violation(&mut self, conn: &Conn, tag: Tag) -> u64 {
        self.entry(conn, tag).map_or(1, |entry| {
            entry.violations += 1;
            entry.violations
        })
    }

    /// The analyzer with a number.
    pub(crate) fn tag(&self, conn: &Conn, aid: u64) -> Option<Tag> {
        let list = self.conns.get(&conn.uid).map_or(&[][..], |of| &of.analyzers);
        let is_first =
            detector_number(conn) == Some(aid) && list.iter().all(|n| n.tag != Tag::Detector);
        let entry = list.iter().find(|n| n.id == aid).map(|n| n.tag);
        entry.or(is_first.then_some(Tag::Detector))
    }

    /// Number of certificates of a connection that were reported as files before this one.
    pub(crate) fn next_certificate(&mut self, conn: Uid) -> u64 {
        let count = &mut self.conns.entry(conn).or_default().certificates;
        *count += 1;
        *count - 1
    }

    /// Removes the numbers of a connection that ended.
    pub(crate) fn end(&mut self, events: &mut Events, conn: &Conn) {
        events.forget_numbers(conn.numbers().first);
        if self.conns.is_empty() {
            return;
        }
        if let Some(of) = self.conns.remove(&conn.uid) {
            of.analyzers.iter().for_each(|n| events.forget_numbers(n.id));
        }
    }
}

/// Number of support analyzers of a protocol, which split lines or messages of each side.
fn support_analyzers(proto: Proto, tag: Tag) -> u64 {
    match tag {
        Tag::Http | Tag::Ftp | Tag::Smtp | Tag::Pop3 | Tag::Irc => 2,
        Tag::Finger | Tag::Ident => 2,
        Tag::Dns if proto == Proto::Tcp => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Addr;
    use gannet_base::ConnId;
    use gannet_base::Time;
    use gannet_base::UidSource;

    use super::*;

    /// A connection with a unique identifier for each number.
    fn conn(number: u32, proto: Proto) -> Conn {
        let id = ConnId {
            orig_h: Addr::v4([10, 0, 0, 1]),
            resp_h: Addr::v4([10, 0, 0, 2]),
            orig_p: 1024,
            resp_p: 80,
        };
        Conn::new(UidSource::new(0).connection(1, number), id, proto, 0, Time::ZERO)
    }

    #[test]
    fn analyzers_of_all_connections_are_counted_together() {
        let mut ids = AnalyzerIds::default();
        let mut events = Events::default();
        let events = &mut events;
        let (mut a, mut b, mut c) =
            (conn(0, Proto::Tcp), conn(1, Proto::Icmp), conn(2, Proto::Udp));
        assert_eq!(ids.begin(events, &mut a, &[Tag::Http, Tag::Socks]), (1, 7));
        assert_eq!(
            [Tag::Detector, Tag::Http, Tag::Socks].map(|t| ids.number(events, &a, t)),
            [2, 3, 6]
        );
        assert_eq!(ids.begin(events, &mut b, &[]), (8, 9));
        ids.begin(events, &mut c, &[Tag::Dns]);
        assert_eq!(ids.number(events, &c, Tag::Dns), 12);
        // An analyzer that is detected later follows, and a restarted one gets a new number.
        ids.start(events, &mut a, Tag::Http);
        ids.start(events, &mut a, Tag::Ssl);
        assert_eq!([Tag::Http, Tag::Ssl].map(|t| ids.number(events, &a, t)), [3, 14]);
        ids.stop(&a, Tag::Http);
        assert_eq!(ids.number(events, &a, Tag::Http), 3);
        ids.start(events, &mut a, Tag::Http);
        assert_eq!(ids.number(events, &a, Tag::Http), 15);
        events.skip_numbers(2);
        assert_eq!(ids.number(events, &a, Tag::Ssh), 20);
        assert_eq!([1, 2].map(|_| ids.count_violation(&a, Tag::Ssh)), [1, 2]);
        // Analyzers nested in another one have their own numbers.
        let [one, two] = [1, 2].map(|_| ids.instance(events, a.uid, Tag::DceRpc));
        assert_eq!((one, two, ids.tag(&a, two)), (21, 22, Some(Tag::DceRpc)));
        ids.end(events, &a);
        assert!(!ids.conns.contains_key(&a.uid));
    }

    #[test]
    fn a_detector_has_the_number_behind_the_transport_until_another_one_starts() {
        let mut ids = AnalyzerIds::default();
        let mut events = Events::default();
        let events = &mut events;
        let mut conn = conn(0, Proto::Udp);
        assert_eq!(ids.begin(events, &mut conn, &[]), (1, 3));
        ids.start(events, &mut conn, Tag::Detector);
        assert!(ids.conns.is_empty());
        assert_eq!(ids.tag(&conn, 2), Some(Tag::Detector));
        assert_eq!(ids.number(events, &conn, Tag::Detector), 2);
        // One within a tunnel coexists with it.
        ids.start(events, &mut conn, Tag::Detector);
        assert_eq!(ids.number(events, &conn, Tag::Detector), 4);
        ids.stop(&conn, Tag::Detector);
        ids.start(events, &mut conn, Tag::Detector);
        assert_eq!(ids.number(events, &conn, Tag::Detector), 5);
    }
}
