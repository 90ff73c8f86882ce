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
use gannet_flow::Conn;
use gannet_flow::Numbers;

use crate::Tag;

/// The numbers of the analyzers of each connection, but for those that follow from its first one. The queue of events gives
/// them out.
#[derive(Debug, Default)]
pub(crate) struct AnalyzerIds {
    conns: UidMap<OfConn>,
}

/// What is numbered of a connection.
#[derive(Debug, Default)]
struct OfConn {
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

/// Whether connections of a transport begin with an analyzer that detects their protocol.
fn has_detector(proto: Proto) -> bool {
    matches!(proto, Proto::Tcp | Proto::Udp)
}

/// The number of the detector that a connection begins with.
fn of_detector(conn: &Conn) -> Option<u64> {
    let first = conn.numbers().first;
    (first != 0 && has_detector(conn.proto)).then_some(first + 1)
}

impl AnalyzerIds {
    /// A connection begins, with analyzers that its port or an announcement asks for. Returns the first and the last of
    /// the numbers.
    pub(crate) fn begin(
        &mut self,
        events: &mut Events,
        conn: &mut Conn,
        tags: &[Tag],
    ) -> (u64, u64) {
        // Its transport, and at the end what counts its bytes.
        let mut count = 2;
        let mut places = Vec::new();
        if has_detector(conn.proto) {
            count += 1;
            for tag in tags {
                places.push((*tag, count - 1));
                count += 1 + splitters(conn.proto, *tag);
            }
        }
        let first = events.number_analyzers(count);
        conn.set_numbers(Numbers { first, detects: false });
        // Most connections have no others.
        if !places.is_empty() {
            let planned = |(tag, place)| Numbered {
                tag,
                id: first + place,
                state: State::Planned,
                violations: 0,
            };
            let analyzers = places.into_iter().map(planned).collect();
            self.conns.insert(conn.uid, OfConn { analyzers, certificates: 0 });
        }
        (first, first + count - 1)
    }

    /// The number of an analyzer and what is known of it, if it has one.
    fn known(&mut self, conn: &Conn, tag: Tag) -> Option<&mut Numbered> {
        if tag == Tag::Detector
            && let Some(id) = of_detector(conn)
        {
            let list = &mut self.conns.entry(conn.uid).or_default().analyzers;
            if list.iter().all(|n| n.tag != tag) {
                let state = if conn.numbers().detects { State::Started } else { State::Planned };
                list.push(Numbered { tag, id, state, violations: 0 });
            }
        }
        let list = &mut self.conns.get_mut(&conn.uid)?.analyzers;
        list.iter_mut().find(|n| n.tag == tag)
    }

    /// An analyzer starts: it has the number planned for it, or a new one if another of its kind stopped.
    pub(crate) fn start(&mut self, events: &mut Events, conn: &mut Conn, tag: Tag) {
        let numbers = conn.numbers();
        if tag == Tag::Detector && of_detector(conn).is_some() && !numbers.detects {
            return conn.set_numbers(Numbers { detects: true, ..numbers });
        }
        self.add(events, conn, tag);
    }

    /// The same of one that is not the detector that the connection begins with.
    fn add(&mut self, events: &mut Events, conn: &Conn, tag: Tag) {
        let known = self.known(conn, tag).filter(|known| known.state != State::Stopped);
        if let Some(known) = known {
            let again = tag == Tag::Detector && known.state == State::Started;
            if !again {
                known.state = State::Started;
                return;
            }
        }
        let list = &mut self.conns.entry(conn.uid).or_default().analyzers;
        if let Some(old) = list.iter().position(|n| n.tag == tag) {
            events.forget_number(list.remove(old).id);
        }
        // The analyzers that a protocol's own brings with it follow it.
        let id = events.number_analyzers(1 + splitters(conn.proto, tag));
        list.push(Numbered { tag, id, state: State::Started, violations: 0 });
    }

    /// An analyzer stops. Events may still name it.
    pub(crate) fn stop(&mut self, conn: &Conn, tag: Tag) {
        if let Some(known) = self.known(conn, tag) {
            known.state = State::Stopped;
        }
    }

    /// The number of an analyzer; one that is part of another analyzer gets its own when it is asked for.
    pub(crate) fn of(&mut self, events: &mut Events, conn: &Conn, tag: Tag) -> u64 {
        if let Some(known) = self.known(conn, tag) {
            return known.id;
        }
        self.add(events, conn, tag);
        self.known(conn, tag).map_or(0, |known| known.id)
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
    pub(crate) fn count_violation(&mut self, conn: &Conn, tag: Tag) -> u64 {
        self.known(conn, tag).map_or(1, |known| {
            known.violations += 1;
            known.violations
        })
    }

    /// The analyzer of a number.
    pub(crate) fn tag(&self, conn: &Conn, aid: u64) -> Option<Tag> {
        let list = self.conns.get(&conn.uid).map_or(&[][..], |of| &of.analyzers);
        let is_first =
            of_detector(conn) == Some(aid) && list.iter().all(|n| n.tag != Tag::Detector);
        let known = list.iter().find(|n| n.id == aid).map(|n| n.tag);
        known.or(is_first.then_some(Tag::Detector))
    }

    /// How many certificates events showed as files of a connection before this one.
    pub(crate) fn next_certificate(&mut self, conn: Uid) -> u64 {
        let count = &mut self.conns.entry(conn).or_default().certificates;
        *count += 1;
        *count - 1
    }

    /// A connection ends.
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
    use gannet_base::Addr;
    use gannet_base::ConnId;
    use gannet_base::Time;
    use gannet_base::UidSource;

    use super::*;

    /// A connection of a transport, with another name for each number.
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
            [Tag::Detector, Tag::Http, Tag::Socks].map(|t| ids.of(events, &a, t)),
            [2, 3, 6]
        );
        assert_eq!(ids.begin(events, &mut b, &[]), (8, 9));
        ids.begin(events, &mut c, &[Tag::Dns]);
        assert_eq!(ids.of(events, &c, Tag::Dns), 12);
        // One that is found later follows, and one that starts again is another one.
        ids.start(events, &mut a, Tag::Http);
        ids.start(events, &mut a, Tag::Ssl);
        assert_eq!([Tag::Http, Tag::Ssl].map(|t| ids.of(events, &a, t)), [3, 14]);
        ids.stop(&a, Tag::Http);
        assert_eq!(ids.of(events, &a, Tag::Http), 3);
        ids.start(events, &mut a, Tag::Http);
        assert_eq!(ids.of(events, &a, Tag::Http), 15);
        events.skip_numbers(2);
        assert_eq!(ids.of(events, &a, Tag::Ssh), 20);
        assert_eq!([1, 2].map(|_| ids.count_violation(&a, Tag::Ssh)), [1, 2]);
        // Others inside of an analyzer have their own.
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
        assert_eq!(ids.of(events, &conn, Tag::Detector), 2);
        // One inside of a tunnel is next to it.
        ids.start(events, &mut conn, Tag::Detector);
        assert_eq!(ids.of(events, &conn, Tag::Detector), 4);
        ids.stop(&conn, Tag::Detector);
        ids.start(events, &mut conn, Tag::Detector);
        assert_eq!(ids.of(events, &conn, Tag::Detector), 5);
    }
}
