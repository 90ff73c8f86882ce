//! IEEE 802.11 data frames, and the radiotap header that some captures have before them.

use super::Frame;
use super::Kind;
use super::Network;
use super::Step;
use super::link_type;
use super::mac;
use super::network;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Length of the header of a data frame with three addresses.
const LEN: usize = 24;
const ADDR_LEN: usize = 6;
const QOS_LEN: usize = 2;
/// Length of destination, source and length before each subframe of an aggregate.
const SUBFRAME_LEN: usize = 14;
/// Length of LLC and SNAP before the network layer.
const SNAP_LEN: usize = 8;
/// LLC and SNAP header before an EtherType.
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

mod field {
    pub(super) const CONTROL: usize = 0;
    pub(super) const FLAGS: usize = 1;
    pub(super) const ADDR_1: usize = 4;
    pub(super) const ADDR_2: usize = 10;
    pub(super) const ADDR_3: usize = 16;
    pub(super) const ADDR_4: usize = 24;
    pub(super) const RADIOTAP_LEN: usize = 2;
    pub(super) const SUBFRAME_LEN: usize = 12;
}

/// Link types whose 802.11 frames follow a header other than radiotap.
mod prefix_type {
    /// AbsoluteValue Systems' header.
    pub(super) const AVS: u16 = 163;
    /// Per-packet information.
    pub(super) const PPI: u16 = 192;
    /// Prism's header.
    pub(super) const PRISM: u16 = 119;
}

/// Bits of the first byte of frame control: control frame, data frame, data frame without data,
/// data frame with a QoS field.
const CONTROL: u8 = 0x04;
const DATA: u8 = 0x08;
const NO_DATA: u8 = 0x40;
const QOS: u8 = 0x80;
/// Bits of the second byte of frame control: to and from the distribution system, and encrypted.
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const PROTECTED: u8 = 0x40;
/// Bit of the QoS field: the payload is an aggregate (A-MSDU).
const AGGREGATE: u8 = 0x80;

/// Whether a captured frame passes `ip or not ip`, Zeek's default capture filter, as libpcap
/// evaluates it.
///
/// The filter passes every frame that it can decide without reading bytes. For 802.11 it reads the
/// type field of data frames, which follow headers of several lengths, and a filter that reads
/// beyond the captured bytes rejects the frame. So data frames that are truncated or have no data
/// are rejected and report no fault.
pub fn passes(link_type: u16, data: &[u8]) -> bool {
    let has = |n: usize| data.len() >= n;
    let little = || usize::from(bytes::u16_at(data, field::RADIOTAP_LEN).swap_bytes());
    let big = |at| bytes::u32_at(data, at) as usize;
    let (header, start) = match link_type {
        link_type::IEEE802_11 => (0, 0),
        link_type::IEEE802_11_RADIO => (4, little()),
        prefix_type::AVS => (8, big(4)),
        // The filter only accepts 802.11 frames after this header.
        prefix_type::PPI if bytes::u32_at(data, 4) != 0x6900_0000 => return false,
        prefix_type::PPI => (8, little()),
        // The first word may be that of an AVS header.
        prefix_type::PRISM if has(4) && bytes::u32_at(data, 0) & 0xffff_f000 == 0x8021_1000 => {
            (8, big(4))
        }
        prefix_type::PRISM => (4, 0x90),
        _ => return true,
    };
    let Some(control) = data.get(start).filter(|_| has(header)) else { return false };
    if control & (CONTROL | DATA) != DATA {
        return true;
    }
    let mut end = start + LEN;
    if control & QOS != 0 {
        end += QOS_LEN;
    }
    if link_type == link_type::IEEE802_11_RADIO {
        match is_padded(data) {
            Some(true) => end = end.next_multiple_of(4),
            Some(false) => {}
            None => return false,
        }
    }
    has(end + SNAP_LEN)
}

/// Whether a radiotap header states that the 802.11 header is padded to a multiple of four bytes;
/// `None` if it is truncated. Like the filter, this ignores a second word of present flags.
fn is_padded(data: &[u8]) -> Option<bool> {
    const FLAGS: u8 = 0x02;
    const TIME: u8 = 0x01;
    const MORE_FIELDS: u8 = 0x80;
    const PADDED: u8 = 0x20;
    let fields: &[u8; 4] = data.get(4..)?.first_chunk()?;
    if fields[0] & FLAGS == 0 || fields[3] & MORE_FIELDS != 0 {
        return Some(false);
    }
    let flags = data.get(if fields[0] & TIME != 0 { 16 } else { 8 })?;
    Some(flags & PADDED != 0)
}

pub(super) fn step_radiotap(data: &[u8]) -> Result<Step<'_>, Error> {
    let len = usize::from(bytes::u16_at(data, field::RADIOTAP_LEN).swap_bytes());
    if data.len() <= 3 || data.len() <= len {
        return Err(Error::Truncated(Layer::Radiotap));
    }
    Ok(Step::Into(Kind::Ieee80211, bytes::from(data, len)))
}

pub(super) fn step<'a>(data: &'a [u8], frame: &mut Frame<'a>) -> Result<Step<'a>, Error> {
    let truncated = Error::Truncated(Layer::Ieee80211);
    let mut len = LEN;
    if data.len() <= len {
        return Err(truncated);
    }
    let control = bytes::u8_at(data, field::CONTROL);
    if control & DATA == 0 || control & NO_DATA != 0 {
        return Ok(Step::Stop(Network::Nothing));
    }
    let flags = bytes::u8_at(data, field::FLAGS);
    let direction = flags & (TO_DS | FROM_DS);
    if direction == TO_DS | FROM_DS {
        len += ADDR_LEN;
    }
    if data.len() <= len {
        return Err(truncated);
    }
    let mut aggregate = false;
    if control & QOS != 0 {
        aggregate = bytes::u8_at(data, len) & AGGREGATE != 0;
        if flags & PROTECTED != 0 {
            return Ok(Step::Stop(Network::Nothing));
        }
        len += QOS_LEN;
    }
    if data.len() <= len {
        return Err(truncated);
    }
    let (src, dst) = match direction {
        TO_DS => (field::ADDR_2, field::ADDR_3),
        FROM_DS => (field::ADDR_3, field::ADDR_1),
        0 => (field::ADDR_2, field::ADDR_1),
        _ => (field::ADDR_4, field::ADDR_3),
    };
    frame.src_mac = mac(data, src);
    frame.dst_mac = mac(data, dst);
    let inner = bytes::from(data, len);
    if aggregate { Ok(Step::Stop(Network::Aggregate(inner))) } else { snap(inner) }
}

/// The bytes that follow an 802.11 header; LLC control frames are skipped.
fn snap(data: &[u8]) -> Result<Step<'_>, Error> {
    if data.len() < SNAP_LEN {
        return Err(Error::TruncatedIeee80211Llc);
    }
    if !data.starts_with(&SNAP) {
        return Ok(Step::Stop(Network::Nothing));
    }
    Ok(network(bytes::u16_at(data, SNAP.len()), bytes::from(data, SNAP_LEN)))
}

/// The subframes of an A-MSDU (IEEE 802.11-2016 §9.3.2.2), in order. The first invalid one ends the
/// aggregate: the iterator returns its fault, then [`Error::InvalidSubframe`].
#[derive(Clone, Debug)]
pub struct Subframes<'a> {
    outer: Frame<'a>,
    data: &'a [u8],
    whole_len: usize,
    failed: bool,
}

impl<'a> Subframes<'a> {
    pub(super) fn new(outer: &Frame<'a>) -> Self {
        let data = match outer.network {
            Network::Aggregate(data) => data,
            _ => &[],
        };
        Self { outer: *outer, data, whole_len: data.len(), failed: false }
    }

    /// Ends the aggregate. The caller must do so after a subframe whose network layer is invalid.
    pub fn fail(&mut self) {
        self.data = &[];
        self.failed = true;
    }

    fn end(&mut self, error: Error) -> Option<Result<Frame<'a>, Error>> {
        self.data = &[];
        Some(Err(error))
    }

    fn frame(&self, network: Network<'a>, at: usize) -> Frame<'a> {
        let wire_len = self.outer.wire_len.saturating_sub(at as u32);
        Frame { network, wire_len, depth: self.outer.depth + 1, ..self.outer }
    }
}

impl<'a> Iterator for Subframes<'a> {
    type Item = Result<Frame<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            self.failed = false;
            return self.end(Error::InvalidSubframe);
        }
        if self.data.is_empty() {
            return None;
        }
        if self.data.len() < SUBFRAME_LEN {
            return self.end(Error::TruncatedSubframeHeader);
        }
        let len = usize::from(bytes::u16_at(self.data, field::SUBFRAME_LEN));
        let Some(inner) = self.data.get(SUBFRAME_LEN..SUBFRAME_LEN + len) else {
            return self.end(Error::TruncatedSubframe);
        };
        let at = self.whole_len - self.data.len() + SUBFRAME_LEN + SNAP_LEN;
        let rest = bytes::from(self.data, SUBFRAME_LEN + len);
        // All subframes except the last one are padded to a multiple of four bytes. Like Zeek, this
        // skips `len % 4` bytes.
        self.data = rest.get(len % 4..).unwrap_or(rest);
        match snap(inner) {
            Ok(Step::Network(network @ (Network::Ip(_) | Network::Arp(_)))) => {
                Some(Ok(self.frame(network, at)))
            }
            Ok(_) => {
                self.fail();
                self.next()
            }
            Err(error) => {
                self.fail();
                Some(Err(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link;
    use crate::link_with;

    /// A header with addresses of 1s, 2s and 3s, followed by `more`.
    fn header(control: u8, flags: u8, more: &[u8]) -> Vec<u8> {
        let mut h = vec![control, flags, 0, 0];
        for a in [1, 2, 3] {
            h.extend_from_slice(&[a; 6]);
        }
        h.extend_from_slice(&[0, 0]);
        h.extend_from_slice(more);
        h
    }

    const IP: [u8; 9] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45];

    #[test]
    fn addresses_by_direction() {
        let macs = |flags| {
            let more = [&[4; 6][..], &IP].concat();
            let f = header(DATA, flags, if flags == 3 { &more } else { &IP });
            let v = link(105, &f, f.len() as u32).unwrap();
            assert_eq!(v.network, Network::Ip(&[0x45]));
            (v.src_mac.unwrap()[0], v.dst_mac.unwrap()[0])
        };
        assert_eq!([0, 1, 2, 3].map(macs), [(2, 1), (2, 3), (3, 1), (4, 3)]);
    }

    #[test]
    fn frames_without_network_layer() {
        let nothing = |f: &[u8]| link(105, f, f.len() as u32).unwrap().network == Network::Nothing;
        assert!(nothing(&header(0x80, 0, &[0; 9])));
        assert!(nothing(&header(DATA | NO_DATA, 0, &[0; 9])));
        assert!(nothing(&header(DATA | QOS, PROTECTED, &[0; 9])));
        assert!(nothing(&header(DATA, 0, &[0x42; 9])));
        let e = |f: &[u8]| link_with(105, f, f.len() as u32, 1, &mut |_| {}).unwrap_err();
        assert_eq!(e(&header(DATA, 0, &[])), Error::Truncated(Layer::Ieee80211));
        assert_eq!(e(&header(DATA, 3, &[0; 6])), Error::Truncated(Layer::Ieee80211));
        assert_eq!(e(&header(DATA | QOS, 0, &[0; 2])), Error::Truncated(Layer::Ieee80211));
        assert_eq!(e(&header(DATA, 0, &[0; 7])), Error::TruncatedIeee80211Llc);
    }

    #[test]
    fn frames_that_the_filter_passes() {
        let ack = [0xd4, 0, 0, 0, 1, 2, 3, 4, 5, 6];
        let null = header(DATA | NO_DATA, 0, &[]);
        let data = header(DATA, 0, &IP);
        let quality = header(DATA | QOS, 0, &[&[0, 0][..], &IP].concat());
        for (frame, at_least) in [(&ack[..], 1), (&null, 32), (&data, 32), (&quality, 34)] {
            let long = [frame, &[0; 16]].concat();
            for n in 0..long.len() {
                assert_eq!(passes(105, &long[..n]), n >= at_least, "{frame:?} {n}");
                // After 12 bytes: flags that are clear, flags that state padding, and a time field
                // before such flags.
                for (fields, flags, padding) in [(0, 0, 0), (2, 0, 0), (2, 0x20, 2)] {
                    let padding = if at_least == 34 { padding } else { 0 };
                    let radio = [&[0, 0, 12, 0, fields, 0, 0, 0, flags, 0, 0, 0], &long[..n]];
                    assert_eq!(passes(127, &radio.concat()), n >= at_least + padding);
                }
                let avs = [&[0x80, 0x21, 0x10, 1, 0, 0, 0, 8], &long[..n]].concat();
                assert_eq!(passes(163, &avs), n >= at_least);
                assert_eq!(passes(119, &avs), n >= at_least);
                let prism = [&[0; 0x90], &long[..n]].concat();
                assert_eq!(passes(119, &prism), n >= at_least);
                for (kind, known) in [(105, true), (1, false)] {
                    let ppi = [&[0, 0, 8, 0, kind, 0, 0, 0], &long[..n]].concat();
                    assert_eq!(passes(192, &ppi), known && n >= at_least);
                }
            }
        }
        assert!(passes(1, b"") && passes(101, b""));
        assert!(!passes(127, &[0, 0, 0xff, 0xff]) && !passes(163, &[0xff; 8]) && !passes(119, b""));
        // Without the filter, these frames are faulty.
        for frame in [&null, &data[..24], &ack[..]] {
            let e = link(105, frame, frame.len() as u32).unwrap_err();
            assert_eq!(e, Error::Truncated(Layer::Ieee80211));
        }
    }

    #[test]
    fn radiotap_is_skipped() {
        let mut f = vec![0, 0, 5, 0, 9];
        let e = link_with(127, &f, 5, 1, &mut |_| {}).unwrap_err();
        assert_eq!(e, Error::Truncated(Layer::Radiotap));
        f.extend_from_slice(&header(DATA | QOS, 0, &[&[0, 0][..], &IP].concat()));
        assert_eq!(link(127, &f, 99).unwrap().network, Network::Ip(&[0x45]));
    }

    #[test]
    fn aggregates() {
        let sub = |inner: &[u8]| {
            let mut s = vec![0; 12];
            s.extend_from_slice(&(inner.len() as u16).to_be_bytes());
            s.extend_from_slice(inner);
            s
        };
        let mut subs = vec![AGGREGATE, 0];
        subs.extend_from_slice(&sub(&IP));
        subs.push(0);
        subs.extend_from_slice(&sub(&IP));
        subs.extend_from_slice(&[0]);
        subs.extend_from_slice(&sub(&[0x42; 8]));
        subs.extend_from_slice(&sub(&IP));
        let f = header(DATA | QOS, 0, &subs);
        let v = link(105, &f, f.len() as u32).unwrap();
        assert_eq!(v.wire_len as usize, subs.len() - 2);
        let got: Vec<_> = v.subframes().map(|s| s.map(|f| (f.network, f.wire_len))).collect();
        let left = |at: usize| (subs.len() - 2 - at) as u32;
        let ip = Network::Ip(&[0x45]);
        assert_eq!(got, [Ok((ip, left(22))), Ok((ip, left(46))), Err(Error::InvalidSubframe)]);
        let errors = |more: &[u8]| {
            let f = header(DATA | QOS, 0, &[&[AGGREGATE, 0][..], more].concat());
            let v = link(105, &f, f.len() as u32).unwrap();
            v.subframes().filter_map(|s| s.err()).collect::<Vec<_>>()
        };
        assert_eq!(errors(&[0; 13]), [Error::TruncatedSubframeHeader]);
        assert_eq!(errors(&[1; 15]), [Error::TruncatedSubframe]);
        assert_eq!(errors(&[0; 14]), [Error::TruncatedIeee80211Llc, Error::InvalidSubframe]);
    }
}
