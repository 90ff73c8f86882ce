//! The capture filter language of pcap-filter(7), compiled to classic BPF.
//!
//! Text becomes tokens (`lexer`), a syntax tree with spans (`parser`), conditions over values of
//! the packet for one link type (`lower`), a graph of tests ([`ir`]) that is simplified
//! (`optimize`) and turned into instructions (`select`), which [`Program`] prints, validates and
//! runs. [`Compiled`] keeps every stage.
//!
//! An [`engine`] runs programs: the interpreter, or machine code.
//!
//! [`Filter`] accepts packets of any link type and compiles for each type at its first packet.
//! [`compile`] returns the program for one link type. The meaning is libpcap's; names of hosts and
//! services come from a [`Resolver`].
//!
//! ```
//! use gannet_filter::Filter;
//! let filter = Filter::parse("udp port 53 and not net 10.0.0.0/8")?;
//! let query = [
//!     0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, // IPv4, UDP inside
//!     4, 210, 0, 53, 0, 8, 0, 0, // to port 53
//! ];
//! assert!(filter.matches(gannet_wire::link_type::RAW, &query, query.len() as u32));
//! # Ok::<(), gannet_filter::Error>(())
//! ```

mod ast;
mod bpf;
mod compile;
pub mod dlt;
pub mod engine;
mod error;
pub mod ir;
mod keyword;
mod lexer;
mod lower;
mod names;
mod optimize;
mod parser;
pub mod proof;
mod select;
mod show;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub use bpf::{Insn, Invalid, MAX_STEPS, MEMORY, Program, TextError, opcode};
pub use compile::{Compiled, Dialect, Options, compile};
pub use error::Error;
pub use names::{NoNames, Resolver};

use engine::{Engine, View};
use error::{Problem, Span};

/// A parsed expression.
///
/// It is compiled for a link type at the first packet of that type. Packets of a link type for
/// which it does not compile never match; [`Filter::unanswered`] returns their number and the
/// reason.
#[derive(Clone, Debug)]
pub struct Filter(Arc<Inner>);

struct Inner {
    text: String,
    tree: Option<ast::Expr>,
    options: Options,
    names: Arc<dyn Resolver + Send + Sync>,
    /// By high and low byte of a link type.
    links: [OnceLock<Box<[OnceLock<Link>; 256]>>; 256],
}

/// A filter for one link type.
struct Link {
    engine: Result<Box<dyn Engine>, Error>,
    /// Number of packets without an engine.
    unanswered: AtomicU64,
}

/// Packets of a link type for which a filter does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Link type, numbered as in capture files.
    pub link_type: u16,
    /// Number of packets.
    pub packets: u64,
    /// The reason why the filter does not compile.
    pub error: Error,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Filter").field(&self.text).finish()
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Filter {}

impl Filter {
    /// Parses an expression that is valid for at least one common link type. Only well-known names
    /// are resolved.
    ///
    /// # Errors
    /// The first error, with its position.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::with(text, Options::default(), Arc::new(NoNames))
    }

    /// Parses an expression with options and a resolver.
    ///
    /// # Errors
    /// Those of [`Filter::parse`].
    pub fn with(
        text: &str,
        options: Options,
        names: Arc<dyn Resolver + Send + Sync>,
    ) -> Result<Self, Error> {
        let fail = |problem| Error::new(problem, text);
        let tree = parser::parse(text).map_err(fail)?;
        // "Matches nothing" is no error here: packets of other link types may match.
        let mut first = None;
        for link in [
            dlt::EN10MB,
            dlt::IEEE802_11_RADIO,
            dlt::LINUX_SLL2,
            dlt::PPP,
            dlt::RAW,
            dlt::FDDI,
            dlt::ARCNET,
            dlt::PFLOG,
            dlt::SUNATM,
            dlt::MTP2,
        ] {
            match compile::check(tree.as_ref(), text, link, &options, &*names) {
                Ok(()) => {
                    let links = std::array::from_fn(|_| OnceLock::new());
                    let text = text.to_owned();
                    return Ok(Self(Arc::new(Inner { text, tree, options, names, links })));
                }
                Err(problem) => first = first.or(Some(problem)),
            }
        }
        let problem = first.unwrap_or_else(|| Problem::new("no link type", Span::default()));
        Err(fail(problem))
    }

    /// Whether the filter matches everything.
    pub fn is_empty(&self) -> bool {
        self.0.tree.is_none()
    }

    fn link(&self, link_type: u16) -> &Link {
        let Inner { text, tree, options, names, links } = &*self.0;
        let [high, low] = link_type.to_be_bytes().map(usize::from);
        let links = links[high].get_or_init(|| Box::new(std::array::from_fn(|_| OnceLock::new())));
        links[low].get_or_init(|| {
            let link = dlt::of_file(link_type);
            let engine = compile::engine(tree.as_ref(), text, link, options, &**names);
            let engine = engine.map_err(|problem| Error::new(problem, text));
            Link { engine, unanswered: AtomicU64::new(0) }
        })
    }

    /// The fastest engine for frames of a link type, numbered as in capture files.
    ///
    /// # Errors
    /// The reason why no frame of that link type can match.
    pub fn engine(&self, link_type: u16) -> Result<&dyn Engine, &Error> {
        self.link(link_type).engine.as_deref()
    }

    /// Whether a frame of the given link type, numbered as in capture files, matches.
    pub fn matches(&self, link_type: u16, data: &[u8], wire_len: u32) -> bool {
        if self.0.tree.is_none() {
            return true;
        }
        let link = self.link(link_type);
        match &link.engine {
            Ok(engine) => engine.run(View::new(data, wire_len)) != 0,
            Err(_) => {
                link.unanswered.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    /// Replaces `hits` by the indices of the matching packets of one link type.
    pub fn select(&self, link_type: u16, packets: &[View<'_>], hits: &mut Vec<u32>) {
        hits.clear();
        if self.0.tree.is_none() {
            hits.extend(0..packets.len() as u32);
            return;
        }
        let link = self.link(link_type);
        match &link.engine {
            Ok(engine) => engine.select(packets, hits),
            Err(_) => {
                link.unanswered.fetch_add(packets.len() as u64, Ordering::Relaxed);
            }
        }
    }

    /// Number of packets passed to [`matches`](Filter::matches) and [`select`](Filter::select) for
    /// which no program exists, by link type, including those of clones of this filter.
    pub fn unanswered(&self) -> Vec<Unanswered> {
        let mut all = Vec::new();
        for (high, links) in (0..=u8::MAX).zip(&self.0.links) {
            let links = links.get().into_iter().flat_map(|links| links.iter());
            for (low, link) in (0..=u8::MAX).zip(links) {
                if let Some(Link { engine: Err(error), unanswered }) = link.get()
                    && let packets @ 1.. = unanswered.load(Ordering::Relaxed)
                {
                    let link_type = u16::from_be_bytes([high, low]);
                    all.push(Unanswered { link_type, packets, error: error.clone() });
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, then 10.0.0.1 → 192.0.2.2 with the given protocol and ports.
    fn v4(protocol: u8, src: u16, dst: u16) -> Vec<u8> {
        let mut f = vec![0; 12];
        f.extend_from_slice(&[8, 0, 0x45, 0, 0, 28, 0, 1, 0, 0, 64, protocol, 0, 0]);
        f.extend_from_slice(&[10, 0, 0, 1, 192, 0, 2, 2]);
        f.extend_from_slice(&src.to_be_bytes());
        f.extend_from_slice(&dst.to_be_bytes());
        f.extend_from_slice(&[0; 4]);
        f
    }

    /// Ethernet, then 2001:db8::1 → 2001:db8::2 with the given first header and ports.
    fn v6(next: u8, src: u16, dst: u16) -> Vec<u8> {
        let mut f = vec![0; 12];
        f.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, next, 64]);
        for last in [1, 2] {
            f.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        f.extend_from_slice(&src.to_be_bytes());
        f.extend_from_slice(&dst.to_be_bytes());
        f.extend_from_slice(&[0; 4]);
        f
    }

    fn arp() -> Vec<u8> {
        let mut f = vec![0; 12];
        f.extend_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        f.extend_from_slice(&[2, 2, 2, 2, 2, 2, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2]);
        f
    }

    fn matches(expression: &str, frame: &[u8]) -> bool {
        Filter::parse(expression).unwrap().matches(1, frame, frame.len() as u32)
    }

    /// Expressions and their verdicts on: TCP 4000 → 80 over IPv4, UDP 53 → 5353 over IPv6, an ICMP
    /// message, an ARP request.
    #[test]
    fn verdicts() {
        let frames = [v4(6, 4000, 80), v6(17, 53, 5353), v4(1, 0, 0), arp()];
        let table = [
            ("", [true, true, true, true]),
            ("tcp", [true, false, false, false]),
            ("udp", [false, true, false, false]),
            ("icmp", [false, false, true, false]),
            ("icmp6", [false; 4]),
            ("ip", [true, false, true, false]),
            ("ip6", [false, true, false, false]),
            ("arp", [false, false, false, true]),
            ("port 80", [true, false, false, false]),
            ("src port 80", [false; 4]),
            ("tcp dst port 80", [true, false, false, false]),
            ("udp port 80", [false; 4]),
            ("portrange 50-60 or portrange 90-80", [true, true, false, false]),
            ("host 10.0.0.1", [true, false, true, true]),
            ("dst host 10.0.0.1", [false; 4]),
            ("src net 10.0.0.0/8", [true, false, true, true]),
            ("dst net 10.0.0.0/8", [false; 4]),
            ("net 0.0.0.0/0", [true, false, true, true]),
            ("host 2001:db8::2", [false, true, false, false]),
            ("src host 2001:db8::2", [false; 4]),
            ("net 2001:db8::/32", [false, true, false, false]),
            ("not ip", [false, true, false, true]),
            ("!(tcp || arp) && ! udp", [false, false, true, false]),
            ("tcp or udp and port 53", [false, true, false, false]),
            ("tcp or (udp and port 80)", [true, false, false, false]),
        ];
        for (expression, verdicts) in table {
            assert_eq!(frames.each_ref().map(|f| matches(expression, f)), verdicts, "{expression}");
        }
    }

    #[test]
    fn packets_of_any_number_of_link_types_are_matched() {
        let filter = Filter::parse("port 80").unwrap();
        let frame = v4(6, 4000, 80);
        // Unknown link types, and some that the filter is compiled for.
        for link_type in (1_000..1_040).chain([101, 113, 276, 228, 1]) {
            let matched = filter.matches(link_type, &frame, frame.len() as u32);
            assert_eq!(matched, link_type == 1, "{link_type}");
        }
        let ip = &frame[14..];
        for _ in 0..2 {
            assert!(filter.matches(101, ip, ip.len() as u32), "raw IP as the 41st");
        }
    }

    #[test]
    fn later_fragments_have_no_ports() {
        let mut f = v4(17, 53, 53);
        f[21] = 1;
        assert!(matches("udp", &f));
        assert!(!matches("port 53", &f));
        assert!(matches("not port 53", &f));
    }

    #[test]
    fn an_ipv6_fragment_is_of_the_protocol_it_leads_to() {
        let mut f = v6(44, 0x1100, 0);
        f[54] = 17;
        assert!(matches("udp", &f));
        assert!(!matches("tcp", &f));
    }

    #[test]
    fn missing_bytes_reject_the_packet() {
        let f = v4(6, 4000, 80);
        assert!(!matches("port 80", &f[..36]));
        assert!(!matches("not port 80", &f[..36]));
        assert!(matches("tcp or port 80", &f[..36]));
    }

    #[test]
    fn link_types_without_an_answer_are_counted() {
        let filter = Filter::parse("inbound").unwrap();
        let frame = [0; 60];
        for _ in 0..3 {
            assert!(!filter.clone().matches(1, &frame, 60));
        }
        let mut hits = vec![7];
        filter.select(1, &[View::new(&frame, 60); 5], &mut hits);
        assert!(hits.is_empty());
        filter.select(113, &[View::new(&frame, 60); 5], &mut hits);
        assert_eq!(hits.len(), 5);
        let [one] = &filter.unanswered()[..] else { panic!("{:?}", filter.unanswered()) };
        assert_eq!((one.link_type, one.packets), (1, 8));
        assert!(one.error.message().contains("not a live capture, 'inbound' not supported"));
        // The number of link types is unlimited: known ones have verdicts.
        let len = Filter::parse("greater 60").unwrap();
        let answers = |link: u16| {
            let matches = len.matches(link, &frame, 60);
            assert!(!matches || len.engine(link).is_ok(), "{link}");
            matches
        };
        assert!((0..=u16::MAX).filter(|link| answers(*link)).count() > 100);
    }

    #[test]
    fn tags_hide_their_payload() {
        let mut f = v4(6, 4000, 80);
        f.splice(12..12, [0x81, 0, 0, 1]);
        assert!(!matches("tcp", &f));
        assert!(matches("not ip", &f));
    }

    #[test]
    fn long_expressions_do_not_grow_deep() {
        let long = vec!["port 1"; 100_000].join(" or ");
        assert!(!matches(&long, &v4(6, 4000, 80)));
        let f = Filter::parse(&long).unwrap();
        assert_eq!(f.clone(), f);
    }

    /// Hosts 10.0.0.0, 10.0.0.7 and so on, a network, and two of IPv6.
    struct Long;

    impl Resolver for Long {
        fn list(&self, _: &str) -> Result<String, String> {
            let host = |i: u32| format!("{}\n", std::net::Ipv4Addr::from(0x0a00_0000 + 7 * i));
            let hosts: String = (0..20_000).map(host).collect();
            Ok(hosts + "192.0.2.0/24\n2001:db8::1\n2001:db8:1::/48\n")
        }
    }

    #[test]
    fn long_lists_agree_with_their_programs() {
        let last_of_source = |frame: &[u8], number: u32| {
            let mut frame = frame.to_vec();
            frame[26..30].copy_from_slice(&(0x0a00_0000 + number).to_be_bytes());
            frame
        };
        let frame = v4(6, 4000, 80);
        let mut frames: Vec<Vec<u8>> = (0..60).map(|n| last_of_source(&frame, n)).collect();
        frames.extend([139_993, 139_994, 140_000].map(|n| last_of_source(&frame, n)));
        frames.extend([v6(17, 53, 5353), arp(), vec![0; 60]]);
        frames.extend((0..frame.len()).map(|n| frame[..n].to_vec()));
        for text in ["src host in @l", "host in @l", "not dst host in @l", "ip and net in @l"] {
            let filter = Filter::with(text, Options::default(), Arc::new(Long)).unwrap();
            let compiled = compile(text, 1, &Options::default(), &Long).unwrap();
            let mut found = 0;
            for frame in &frames {
                let wire = frame.len() as u32;
                let expected = compiled.program().run(frame, wire) != 0;
                assert_eq!(filter.matches(1, frame, wire), expected, "{text}: {frame:02x?}");
                found += usize::from(expected);
            }
            assert!(found > 0 && found < frames.len(), "{text}: {found}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(
            text in "( |tcp|udp|src|dst|port|host|net|portrange|and|or|not|&&|[|()!.:/0-9a-z-])*",
            data in proptest::collection::vec(proptest::num::u8::ANY, 0..80),
            link_type in 0u16..300,
        ) {
            match Filter::parse(&text) {
                Ok(filter) => {
                    let _ = filter.matches(link_type, &data, data.len() as u32);
                }
                Err(error) => proptest::prop_assert!(error.column() <= text.chars().count() + 1),
            }
        }
    }
}
