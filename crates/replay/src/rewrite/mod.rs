//! Rewriting of queries: changed EDNS options, and signatures (TSIG).
//!
//! A query is changed once, when it is read, so that a retry has the same bytes. A [`Rewriter`]
//! finds the OPT record (RFC 6891) and the signature of a query, removes or replaces them, and adds
//! a new signature at the end. Queries that cannot be changed are sent unchanged; their number and
//! the first reason are recorded.

mod layout;
mod subnet;
mod tsig;

use std::borrow::Cow;
use std::time::Duration;

use layout::Layout;
pub use subnet::Subnet;
pub use subnet::SubnetError;
pub use tsig::Tsig;
pub use tsig::TsigError;

/// Payload size of an added OPT record if no size is given (RFC 9715 §3.1: avoids fragmentation).
const SIZE: u16 = 1232;
/// The bit DO among the flags of EDNS (RFC 3225 §3).
const DNSSEC_OK: u16 = 0x8000;
/// The option EDNS Client Subnet (RFC 7871 §6).
const CLIENT_SUBNET: u16 = 8;
/// Maximum length of a message in bytes.
const MAX_MESSAGE: usize = 65_535;
/// Length of an OPT record without its options, in bytes.
const OPT_HEAD: usize = 11;

/// Changes to queries.
#[derive(Clone, Debug, Default)]
pub struct Rewrite {
    /// Changes to the OPT record.
    pub edns: Edns,
    /// The key for signatures.
    pub tsig: Option<Tsig>,
}

/// Changes to the OPT record of queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edns {
    /// No change.
    #[default]
    Keep,
    /// The record is removed.
    Remove,
    /// Values are set; the record is added to queries without one.
    Set {
        /// The payload size, in bytes.
        size: Option<u16>,
        /// Whether to set the DO bit, which requests DNSSEC records.
        dnssec_ok: bool,
        /// The client subnet.
        subnet: Option<Subnet>,
    },
}

impl Rewrite {
    /// Whether queries are sent unchanged.
    pub fn is_empty(&self) -> bool {
        self.edns == Edns::Keep && self.tsig.is_none()
    }
}

/// The reason why a query is sent unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unchanged {
    /// It is truncated or has bytes after its records.
    #[error("it is malformed")]
    Malformed,
    /// A change would invalidate its signature.
    #[error("its TSIG signature would become invalid; --tsig replaces it")]
    Signed,
    /// Records after the OPT record would move.
    #[error("records follow its OPT record")]
    Amid,
    /// It has several OPT records.
    #[error("it has several OPT records")]
    SeveralOpts,
    /// It would exceed 65,535 bytes, bytes of options, or records.
    #[error("it would exceed the maximum size of a DNS message")]
    TooLong,
}

/// Applies the changes to queries.
#[derive(Debug)]
pub(crate) struct Rewriter<'a> {
    rewrite: &'a Rewrite,
    out: Vec<u8>,
    /// Number of queries that were sent unchanged.
    pub(crate) unchanged: u64,
    /// The reason for the first of them.
    pub(crate) first: Option<Unchanged>,
}

impl<'a> Rewriter<'a> {
    pub(crate) fn new(rewrite: &'a Rewrite) -> Self {
        Self { rewrite, out: Vec::new(), unchanged: 0, first: None }
    }

    /// The changed query, signed as of `now` since the epoch; or the query itself if it cannot be
    /// changed.
    pub(crate) fn change<'b>(
        &'b mut self,
        query: &'b [u8],
        now: impl Fn() -> Duration,
    ) -> &'b [u8] {
        if self.rewrite.is_empty() {
            return query;
        }
        match changed(self.rewrite, query, now(), &mut self.out) {
            Ok(()) => &self.out,
            Err(why) => {
                self.unchanged += 1;
                self.first.get_or_insert(why);
                query
            }
        }
    }
}

/// Writes the changed query to `out`.
fn changed(
    rewrite: &Rewrite,
    query: &[u8],
    now: Duration,
    out: &mut Vec<u8>,
) -> Result<(), Unchanged> {
    let layout = Layout::of(query)?;
    if layout.signature.is_some() && (rewrite.tsig.is_none() || !layout.is_tsig) {
        return Err(Unchanged::Signed);
    }
    out.clear();
    let end = layout.signature.unwrap_or(query.len());
    let records = layout.additional - u16::from(layout.signature.is_some());
    let unsigned = query.get(..end).unwrap_or_default();
    let opt = layout.opt.clone().map(|range| (query.get(range.clone()).unwrap_or_default(), range));
    let new = match (rewrite.edns, &opt) {
        (Edns::Keep, _) => None,
        (Edns::Remove, None) => None,
        (Edns::Remove, Some(_)) => Some(Vec::new()),
        (Edns::Set { size, dnssec_ok, subnet }, opt) => {
            let old = opt.as_ref().map(|(bytes, _)| *bytes);
            Some(edns(old, size, dnssec_ok, subnet)?)
        }
    };
    let mut records = records;
    match (&new, opt) {
        (None, _) => out.extend_from_slice(unsigned),
        (Some(new), Some((old, range))) => {
            // Compressed names refer to offsets, so the following records must not move.
            if range.end != end && new.len() != old.len() {
                return Err(Unchanged::Amid);
            }
            out.extend_from_slice(query.get(..range.start).unwrap_or_default());
            out.extend_from_slice(new);
            out.extend_from_slice(query.get(range.end..end).unwrap_or_default());
            records -= u16::from(new.is_empty());
        }
        (Some(new), None) => {
            out.extend_from_slice(unsigned);
            out.extend_from_slice(new);
            records = records.checked_add(1).ok_or(Unchanged::TooLong)?;
        }
    }
    if let Some(place) = out.get_mut(10..12) {
        place.copy_from_slice(&records.to_be_bytes());
    }
    if let Some(tsig) = &rewrite.tsig {
        tsig.sign(out, now);
        let records = records.checked_add(1).ok_or(Unchanged::TooLong)?;
        if let Some(place) = out.get_mut(10..12) {
            place.copy_from_slice(&records.to_be_bytes());
        }
    }
    if out.len() > MAX_MESSAGE { Err(Unchanged::TooLong) } else { Ok(()) }
}

/// An OPT record with these values; the other values are those of `old`.
fn edns(
    old: Option<&[u8]>,
    size: Option<u16>,
    dnssec_ok: bool,
    subnet: Option<Subnet>,
) -> Result<Vec<u8>, Unchanged> {
    let mut head = [0, 0, 41, 0, 0, 0, 0, 0, 0, 0, 0];
    head[3..5].copy_from_slice(&SIZE.to_be_bytes());
    if let Some(old) = old.and_then(|old| old.first_chunk::<OPT_HEAD>()) {
        head = *old;
    }
    if let Some(size) = size {
        head[3..5].copy_from_slice(&size.to_be_bytes());
    }
    if dnssec_ok {
        let flags = u16::from_be_bytes([head[7], head[8]]) | DNSSEC_OK;
        head[7..9].copy_from_slice(&flags.to_be_bytes());
    }
    let options = old.and_then(|old| old.get(OPT_HEAD..)).unwrap_or_default();
    let options: Cow<'_, [u8]> = match subnet {
        None => options.into(),
        Some(subnet) => {
            let mut with = Vec::new();
            for option in layout::options(options) {
                let option = option?;
                if option.code != CLIENT_SUBNET {
                    with.extend_from_slice(option.bytes);
                }
            }
            subnet.write(&mut with);
            with.into()
        }
    };
    let len = u16::try_from(options.len()).map_err(|_| Unchanged::TooLong)?;
    head[9..11].copy_from_slice(&len.to_be_bytes());
    Ok([&head, &*options].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Duration = Duration::from_secs(1_700_000_000);

    /// `a A` with records in the additional section.
    fn query(additional: &[&[u8]]) -> Vec<u8> {
        let mut m = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01".to_vec();
        m[11] = additional.len() as u8;
        m.extend(additional.concat());
        m
    }

    /// An OPT record of 4,096 bytes with a cookie.
    const OPT: &[u8] = b"\0\0\x29\x10\0\0\0\0\0\0\x0c\0\x0a\0\x08cookie!!";
    /// An address.
    const A: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04\xc0\0\x02\x01";

    fn set(size: Option<u16>, dnssec_ok: bool, subnet: Option<&str>) -> Rewrite {
        let subnet = subnet.map(|text| text.parse().unwrap());
        Rewrite { edns: Edns::Set { size, dnssec_ok, subnet }, tsig: None }
    }

    fn rewritten(rewrite: &Rewrite, query: &[u8]) -> Result<Vec<u8>, Unchanged> {
        let mut out = Vec::new();
        changed(rewrite, query, NOW, &mut out).map(|()| out)
    }

    #[test]
    fn a_query_without_edns_gets_a_record() {
        let added = rewritten(&set(None, true, None), &query(&[])).unwrap();
        assert_eq!(added, query(&[b"\0\0\x29\x04\xd0\0\0\x80\0\0\0"]));
        let added = rewritten(&set(Some(4096), false, Some("192.0.2.0/23")), &query(&[])).unwrap();
        assert_eq!(
            added,
            query(&[b"\0\0\x29\x10\0\0\0\0\0\0\x0b\0\x08\0\x07\0\x01\x17\0\xc0\0\x02"])
        );
    }

    #[test]
    fn other_values_of_the_record_are_kept() {
        let changed = rewritten(&set(Some(512), true, None), &query(&[A, OPT])).unwrap();
        let opt = b"\0\0\x29\x02\0\0\0\x80\0\0\x0c\0\x0a\0\x08cookie!!";
        assert_eq!(changed, query(&[A, opt]));
        // A subnet replaces another one.
        let first = rewritten(&set(None, false, Some("10.0.0.0/8")), &query(&[OPT])).unwrap();
        let second = rewritten(&set(None, false, Some("2001:db8::/32")), &first).unwrap();
        let opt = b"\0\0\x29\x10\0\0\0\0\0\0\x18\0\x0a\0\x08cookie!!\0\x08\0\x08\0\x02\x20\0\x20\x01\x0d\xb8";
        assert_eq!(second, query(&[opt]));
    }

    #[test]
    fn the_record_is_removed() {
        let remove = Rewrite { edns: Edns::Remove, tsig: None };
        assert_eq!(rewritten(&remove, &query(&[A, OPT])).unwrap(), query(&[A]));
        assert_eq!(rewritten(&remove, &query(&[])).unwrap(), query(&[]));
        assert_eq!(rewritten(&remove, &query(&[OPT, A])), Err(Unchanged::Amid));
    }

    #[test]
    fn records_after_the_one_do_not_move() {
        let changed = rewritten(&set(Some(512), false, None), &query(&[OPT, A])).unwrap();
        assert_eq!(changed[22..24], [2, 0]);
        assert_eq!(changed.len(), query(&[OPT, A]).len());
        let subnet = set(None, false, Some("10.0.0.0/8"));
        assert_eq!(rewritten(&subnet, &query(&[OPT, A])), Err(Unchanged::Amid));
    }

    #[test]
    fn queries_that_cannot_be_changed_are_counted_and_sent_unchanged() {
        let signature = [b"\x01k\0\0\xfa\0\xff\0\0\0\0\0\x01".as_slice(), b"x"].concat();
        let sig0 = [b"\0\0\x18\0\xff\0\0\0\0\0\x02".as_slice(), b"\0\0"].concat();
        let long = [b"\0\xff\xff\0\x01\0\0\0\0\xff\x00".as_slice(), &[7; 0xff00]].concat();
        let mut cut = query(&[OPT]);
        cut.pop();
        let mut trailing = query(&[]);
        trailing.push(0);
        let mut option = query(&[OPT]);
        let at = option.len() - 9;
        option[at] = 9;
        let cases = [
            (cut, Unchanged::Malformed),
            (trailing, Unchanged::Malformed),
            (option, Unchanged::Malformed),
            (b"\0\0\0\0\0\0".to_vec(), Unchanged::Malformed),
            (query(&[OPT, OPT]), Unchanged::SeveralOpts),
            (query(&[&signature]), Unchanged::Signed),
            (query(&[&sig0]), Unchanged::Signed),
            // The added record makes it too long.
            (
                query(&[&long, &[&b"\0\xff\xff\0\x01\0\0\0\0\0\xdc"[..], &[7; 220]].concat()]),
                Unchanged::TooLong,
            ),
        ];
        let rewrite = set(Some(512), true, Some("10.0.0.0/24"));
        for (query, why) in &cases {
            let mut rewriter = Rewriter::new(&rewrite);
            assert_eq!(rewriter.change(query, || NOW), query);
            assert_eq!((rewriter.unchanged, rewriter.first), (1, Some(*why)), "{query:02x?}");
        }
    }

    #[test]
    fn a_signature_replaces_another_one() {
        let tsig: Tsig = "k:hmac-sha256:c2VjcmV0".parse().unwrap();
        let rewrite = Rewrite { edns: Edns::Keep, tsig: Some(tsig) };
        let once = rewritten(&rewrite, &query(&[A])).unwrap();
        assert_eq!(once[11], 2);
        assert_eq!(rewritten(&rewrite, &once).unwrap(), once);
        // Other changes are made before signing.
        let both =
            Rewrite { edns: Edns::Set { size: None, dnssec_ok: true, subnet: None }, ..rewrite };
        let signed = rewritten(&both, &once).unwrap();
        assert_eq!(signed[11], 3);
        assert_eq!(rewritten(&both, &query(&[A])).unwrap(), signed);
    }

    proptest! {
        /// Arbitrary bytes are either rewritten to a message that can be rewritten again, or
        /// unchanged.
        #[test]
        fn any_bytes_are_changed_or_not(
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
            count in 0_u8..3,
        ) {
            let mut bytes = bytes;
            if bytes.len() > 12 {
                bytes[4..12].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, count]);
            }
            let rewrite = set(Some(512), true, Some("10.0.0.0/24"));
            if let Ok(changed) = rewritten(&rewrite, &bytes) {
                prop_assert_eq!(rewritten(&rewrite, &changed), Ok(changed.clone()));
            }
        }
    }
}
