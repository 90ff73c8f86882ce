use gannet_base::Dir;

use super::rows::Calls;
use super::stream::Stream;
use crate::Analyze;
use crate::Context;
use crate::gssapi::Logins;

/// The analyzer of a TCP connection.
pub struct Analyzer {
    stream: Stream,
    calls: Calls,
    logins: Logins,
    /// A gap ended the analysis.
    gap: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            stream: Stream::new(0),
            calls: Calls::default(),
            logins: Logins::default(),
            gap: false,
        }
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if !self.gap {
            self.stream.deliver(cx, &mut self.calls, &mut self.logins, from, data);
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.gap = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.calls.finish(cx);
        self.logins.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::bind;
    use super::super::message::tests::bind_ack;
    use super::super::message::tests::packet;
    use super::super::message::tests::request;
    use super::super::message::tests::response;
    use super::*;
    use crate::Tag;
    use crate::testing::Harness;
    use gannet_base::Interval;
    use gannet_base::Proto;

    #[test]
    fn calls_by_name() {
        let mut h = Harness::new(Proto::Tcp, 135);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &bind());
        a.stream(&mut h.cx(), Dir::Resp, &bind_ack(b"135\0"));
        for b in request(64) {
            a.stream(&mut h.cx(), Dir::Orig, &[b]);
        }
        h.now += Interval::from_secs(2);
        a.stream(&mut h.cx(), Dir::Resp, &response());
        a.finish(&mut h.cx());
        assert!(h.confirmed(Tag::DceRpc));
        let rows = h.rows("dce_rpc");
        assert_eq!(rows.len(), 1);
        let r = &rows[0];
        assert_eq!((&*r["ts"], &*r["rtt"], &*r["named_pipe"]), ("1.000000", "2.000000", "135"));
        assert_eq!((&*r["endpoint"], &*r["operation"]), ("samr", "SamrConnect5"));
    }

    #[test]
    fn fragments_and_their_limits() {
        let mut h = Harness::new(Proto::Tcp, 135);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &bind());
        // Each fragment of a call has a context and an operation; their number is not limited.
        let part = |kind, flags, operation| {
            let stub = [&[0, 0, 0, 0, 1, 0, operation, 0][..], &[7; 20_000]].concat();
            packet(kind, flags, 7, &stub)
        };
        for flags in [1, 0, 0, 2] {
            a.stream(&mut h.cx(), Dir::Orig, &part(0, flags, 0));
        }
        for flags in [1, 0, 2] {
            assert!(h.rows("dce_rpc").is_empty());
            a.stream(&mut h.cx(), Dir::Resp, &part(2, flags, 0));
        }
        assert_eq!(h.rows("dce_rpc")[0]["operation"], "SamrConnect");
        assert!(h.rows("weird").is_empty());
        for call in 0..=20 {
            a.stream(&mut h.cx(), Dir::Orig, &packet(0, 1, call, b""));
        }
        assert_eq!(h.rows("weird")[0]["name"], "too_many_dce_rpc_msgs_in_reassembly");
        let mut h = Harness::new(Proto::Tcp, 135);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &packet(0, 1, 7, &[0; 30_001]));
        assert_eq!(h.rows("weird")[0]["name"], "too_much_dce_rpc_fragment_data");
    }

    #[test]
    fn a_packet_that_exceeds_a_limit_is_still_analyzed() {
        let mut h = Harness::new(Proto::Tcp, 135);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &bind());
        a.stream(&mut h.cx(), Dir::Orig, &request(0));
        let first = packet(2, 1, 9, b"");
        a.stream(&mut h.cx(), Dir::Resp, &[&first[..], &first, &response()].concat());
        assert_eq!(h.rows("weird")[0]["name"], "multiple_first_fragments_in_dce_rpc_reassembly");
        assert_eq!(h.rows("dce_rpc").len(), 1);
        a.stream(&mut h.cx(), Dir::Resp, &response());
        assert_eq!(h.rows("dce_rpc").len(), 1);
    }

    #[test]
    fn each_pipe_has_an_analyzer() {
        let mut h = Harness::new(Proto::Tcp, 445);
        h.listen("analyzer_");
        let (mut calls, mut logins) = (Calls::default(), Logins::default());
        let mut pipes = [1, 2].map(|pipe| Stream::nested(&mut h.cx(), pipe));
        for stream in &mut pipes {
            for data in [&bind()[..], &bind(), b"SMB, not DCE/RPC"] {
                stream.deliver(&mut h.cx(), &mut calls, &mut logins, Dir::Orig, data);
            }
        }
        let events = h.events();
        let number = |at: usize| events[at].split_once("\"aid\":").unwrap().1[..1].to_owned();
        let kind = |at: usize| events[at].split_once(' ').unwrap().0;
        assert_eq!(events.len(), 4, "{events:?}");
        assert_eq!([0, 1].map(kind), ["analyzer_confirmation_info", "analyzer_violation_info"]);
        assert_eq!([0, 1, 2, 3].map(number), ["1", "1", "2", "2"]);
    }

    #[test]
    fn headers_are_reported_before_their_packets() {
        let mut h = Harness::new(Proto::Tcp, 135);
        h.listen("dce_rpc_");
        let mut a = Analyzer::new(&mut h.cx());
        let kinds = |h: &mut Harness| {
            let events = h.events();
            events.iter().map(|e| e.split_once(' ').unwrap().0.to_owned()).collect::<Vec<_>>()
        };
        let bind = bind();
        for (part, n) in [(&bind[..15], 0), (&bind[15..16], 1), (&bind[16..30], 0)] {
            a.stream(&mut h.cx(), Dir::Orig, part);
            assert_eq!(kinds(&mut h).len(), n);
        }
        let mut broken = request(0);
        broken[10] = 200;
        a.stream(&mut h.cx(), Dir::Orig, &[&bind[30..], &broken].concat());
        assert_eq!(kinds(&mut h), ["dce_rpc_bind", "dce_rpc_message"]);
    }

    #[test]
    fn other_bytes_are_ignored() {
        let mut h = Harness::new(Proto::Tcp, 135);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"GET / HTTP/1.1\r\n");
        assert!(h.requests.is_empty());
        // They are only counted: a header of another version, and a truncated request.
        for _ in 0..500 {
            a.stream(&mut h.cx(), Dir::Resp, b"HTTP/1.1 200 OK\r\n");
            a.stream(&mut h.cx(), Dir::Orig, &packet(0, 3, 1, &[0; 7]));
        }
        let rows = h.rows("weird");
        assert_eq!(
            (&*rows[0]["name"], &*rows[0]["source"]),
            ("too_many_analyzer_violations", "DCE_RPC")
        );
        a.stream(&mut h.cx(), Dir::Orig, &packet(0, 3, 1, &[0; 7]));
        assert_eq!(h.rows("weird").len(), 1);
        assert!(h.requests.is_empty());
    }
}
