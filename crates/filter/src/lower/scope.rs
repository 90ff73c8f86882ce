//! The scoped dialect: what `and` joins to an encapsulating header refers to its payload;
//! alternatives, and what follows a negation, start over. After alternatives that all lead to the
//! same headers, those headers apply.

use super::Lower;
use super::state::{Offset, State};
use crate::Dialect;

/// The header offsets at a point of the expression; `None` in the dialect without scopes.
#[derive(Clone, Debug)]
pub(super) struct Scope(Option<SavedOffsets>);

#[derive(Clone, Debug)]
struct SavedOffsets {
    state: State,
    outer: Option<(Offset, Offset)>,
    tagged: bool,
}

impl Lower<'_> {
    /// Saves the header offsets.
    pub(super) fn scope(&self) -> Scope {
        let scoped = self.options.dialect == Dialect::Scoped;
        Scope(scoped.then(|| SavedOffsets {
            state: self.state.clone(),
            outer: self.outer,
            tagged: self.tagged,
        }))
    }

    /// Restores the header offsets.
    pub(super) fn leave(&mut self, begin: Scope) {
        let Some(mut begin) = begin.0 else { return };
        if begin.outer.is_none() {
            // Variables of the outermost headers stay allocated once in use.
            let (header, payload) = self.outer.unwrap_or((self.state.header, self.state.payload));
            keep(&mut begin.state.header, header);
            keep(&mut begin.state.payload, payload);
        }
        self.state = begin.state;
        self.outer = begin.outer;
        self.tagged = begin.tagged;
    }

    /// Restores for the next alternative. Returns the offsets after the previous one, for
    /// [`Lower::agree`].
    pub(super) fn begin_again(&mut self, begin: &Scope) -> Option<Scope> {
        begin.0.as_ref()?;
        let before = self.scope();
        self.leave(begin.clone());
        Some(before)
    }

    /// After two alternatives: the offsets of both if equal, otherwise those before.
    pub(super) fn agree(&mut self, before: Scope, begin: &Scope) {
        let Some(mut before) = before.0 else { return };
        keep(&mut before.state.header, self.state.header);
        keep(&mut before.state.payload, self.state.payload);
        if before.state != self.state || before.tagged != self.tagged {
            self.leave(begin.clone());
        }
    }
}

/// Copies the scratch word of the same offset.
fn keep(offset: &mut Offset, other: Offset) {
    if offset.variable && other.variable && offset.word.is_none() {
        offset.word = other.word;
    }
}

#[cfg(test)]
mod tests {
    use crate::proof::check_as;
    use crate::{Dialect, NoNames, Options, compile, dlt};

    fn program(text: &str, link: u16, dialect: Dialect, kernel: bool) -> crate::Program {
        let options = Options { dialect, kernel, ..Options::default() };
        compile(text, link, &options, &NoNames).unwrap().program().clone()
    }

    /// Ethernet with tags of the given numbers, then IPv4 with UDP to port 53.
    fn tagged(tags: &[u8]) -> Vec<u8> {
        let mut f = vec![0; 12];
        for tag in tags {
            f.extend_from_slice(&[0x81, 0, 0, *tag]);
        }
        f.extend_from_slice(&[8, 0, 0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0]);
        f.extend_from_slice(&[10, 0, 0, 1, 192, 0, 2, 2, 16, 0, 0, 53, 0, 8, 0, 0]);
        f
    }

    #[test]
    fn alternatives_begin_again() {
        // Packets without a tag, with tag 2, with 3, with 3 inside 2: in libpcap's dialect, and
        // scoped.
        let frames = [&[][..], &[2], &[3], &[2, 3]].map(tagged);
        let table = [
            ("vlan 2 or vlan 3", [false, true, false, true], [false, true, true, true]),
            ("vlan or udp", [false, true, true, true], [true, true, true, true]),
            ("(vlan 2 or vlan 3) and udp", [false, false, false, true], [false, true, true, false]),
            ("vlan 2 and udp or arp", [false, true, false, false], [false, true, false, false]),
            ("(vlan and udp) or udp", [false, true, true, false], [true, true, true, false]),
            ("udp or (vlan and udp)", [true, true, true, false], [true, true, true, false]),
            ("not vlan and udp", [false; 4], [true, false, false, false]),
            ("vlan 2 and vlan 3 and udp", [false, false, false, true], [false, false, false, true]),
            ("vlan 2 and (vlan 3 or udp)", [false, false, false, true], [false, true, false, true]),
        ];
        for (text, libpcap, scoped) in table {
            for (dialect, expected) in [(Dialect::Libpcap, libpcap), (Dialect::Scoped, scoped)] {
                let p = program(text, dlt::EN10MB, dialect, false);
                let found = frames.each_ref().map(|f| p.run(f, f.len() as u32) != 0);
                assert_eq!(found, expected, "{text} {dialect:?}");
            }
        }
    }

    #[test]
    fn expressions_without_such_headers_are_the_same() {
        for text in
            ["tcp port 80 or 443 and not host 10.0.0.1", "ip or ip6", "wlan type data or ip"]
        {
            for link in [dlt::EN10MB, dlt::IEEE802_11_RADIO] {
                let options = |dialect| Options { dialect, ..Options::default() };
                let of =
                    |d| compile(text, link, &options(d), &NoNames).map(|c| c.program().clone());
                assert_eq!(of(Dialect::Scoped), of(Dialect::Libpcap), "{text}");
            }
        }
    }

    #[test]
    fn passes_keep_what_scoped_expressions_mean() {
        for text in [
            "vlan 2 or vlan 3 or mpls 4 and ip",
            "geneve and udp or vxlan 5 and tcp or udp",
            "not (pppoes 3 and ip) and (ip or pppoes and ip6)",
            "(mpls and mpls and port 161) or (mpls and port 161)",
            "vlan and (geneve or ip) or geneve and (vlan 7 or tcp) and not arp",
            "(ip or vlan and ip) and (udp or vlan and udp) and port 53",
        ] {
            for link in [dlt::EN10MB, dlt::IEEE802_11_RADIO] {
                let found = check_as(Dialect::Scoped, text, link, &NoNames, 60, 1, &[]);
                assert!(found.is_ok(), "{text}: {found:?}");
            }
        }
        // The kernel may have stripped the tag: both alternatives test both locations.
        let p = program("vlan 2 and udp or vlan 3 and udp", dlt::EN10MB, Dialect::Scoped, true);
        for asked in ["jeq      #0x2 ", "jeq      #0x3 "] {
            assert!(p.to_string().matches(asked).count() >= 2, "{p}");
        }
    }
}
