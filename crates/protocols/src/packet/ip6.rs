//! Builds the records of IPv6 extension headers (RFC 8200 section 4, RFC 6275 section 6).

use super::fields::addr6;
use super::fields::be16;
use super::fields::be32;
use super::fields::byte;
use super::headers::Ip6Ah;
use super::headers::Ip6Dstopts;
use super::headers::Ip6Esp;
use super::headers::Ip6ExtHdr;
use super::headers::Ip6Fragment;
use super::headers::Ip6Hopopts;
use super::headers::Ip6MobilityBack;
use super::headers::Ip6MobilityBe;
use super::headers::Ip6MobilityBrr;
use super::headers::Ip6MobilityBu;
use super::headers::Ip6MobilityCot;
use super::headers::Ip6MobilityCoti;
use super::headers::Ip6MobilityHdr;
use super::headers::Ip6MobilityHot;
use super::headers::Ip6MobilityHoti;
use super::headers::Ip6MobilityMsg;
use super::headers::Ip6Option;
use super::headers::Ip6Routing;

/// The extension headers after the fixed header of 40 bytes.
pub(super) fn extensions(header: &[u8], mut next: u64) -> Vec<Ip6ExtHdr> {
    let mut all = Vec::new();
    let mut rest = header.get(40..).unwrap_or_default();
    while rest.len() >= 8 {
        let (nxt, len) = (byte(rest, 0), byte(rest, 1));
        let mut one = Ip6ExtHdr {
            id: next,
            hopopts: None,
            dstopts: None,
            routing: None,
            fragment: None,
            ah: None,
            esp: None,
            mobility: None,
        };
        let mut size = (len as usize + 1) * 8;
        let body = |from: usize, size: usize| rest.get(from..size.min(rest.len())).unwrap_or(&[]);
        match next {
            0 => {
                let options = options6(body(2, size));
                one.hopopts = Some(Ip6Hopopts { nxt, len, options });
            }
            60 => {
                let options = options6(body(2, size));
                one.dstopts = Some(Ip6Dstopts { nxt, len, options });
            }
            43 => {
                let data = body(4, size).to_vec().into();
                let (rtype, segleft) = (byte(rest, 2), byte(rest, 3));
                one.routing = Some(Ip6Routing { nxt, len, rtype, segleft, data });
            }
            44 => {
                size = 8;
                let offset = be16(rest, 2);
                one.fragment = Some(Ip6Fragment {
                    nxt,
                    rsv1: len,
                    offset: offset >> 3,
                    rsv2: offset >> 1 & 3,
                    more: offset & 1 != 0,
                    id: be32(rest, 4),
                });
            }
            51 => {
                size = (len as usize + 2) * 4;
                let has = len > 0;
                one.ah = Some(Ip6Ah {
                    nxt,
                    len,
                    rsv: be16(rest, 2),
                    spi: be32(rest, 4),
                    seq: has.then(|| be32(rest, 8)),
                    data: has.then(|| body(12, size).to_vec().into()),
                });
            }
            50 => {
                one.esp = Some(Ip6Esp { spi: be32(rest, 0), seq: be32(rest, 4) });
                all.push(one);
                break;
            }
            135 => {
                one.mobility = Some(mobility(body(0, size)));
                all.push(one);
                break;
            }
            _ => break,
        }
        all.push(one);
        next = nxt;
        rest = rest.get(size..).unwrap_or_default();
    }
    all
}

/// A mobility header with its message, if the header's length contains one.
fn mobility(header: &[u8]) -> Ip6MobilityHdr {
    let id = byte(header, 2);
    let mut msg = Ip6MobilityMsg { id, ..Default::default() };
    let be64 = |at: usize| be32(header, at) << 32 | be32(header, at + 4);
    let options = |at: usize| header.get(at..).map(options6);
    match id {
        0 => msg.brr = options(8).map(|options| Ip6MobilityBrr { rsv: be16(header, 6), options }),
        1 => {
            msg.hoti = options(16).map(|options| {
                let (rsv, cookie) = (be16(header, 6), be64(8));
                Ip6MobilityHoti { rsv, cookie, options }
            });
        }
        2 => {
            msg.coti = options(16).map(|options| {
                let (rsv, cookie) = (be16(header, 6), be64(8));
                Ip6MobilityCoti { rsv, cookie, options }
            });
        }
        3 => {
            msg.hot = options(24).map(|options| {
                let (nonce_idx, cookie, token) = (be16(header, 6), be64(8), be64(16));
                Ip6MobilityHot { nonce_idx, cookie, token, options }
            });
        }
        4 => {
            msg.cot = options(24).map(|options| {
                let (nonce_idx, cookie, token) = (be16(header, 6), be64(8), be64(16));
                Ip6MobilityCot { nonce_idx, cookie, token, options }
            });
        }
        5 => {
            let flags = be16(header, 8);
            msg.bu = options(12).map(|options| Ip6MobilityBu {
                seq: be16(header, 6),
                acknowledge: flags & 0x8000 != 0,
                home: flags & 0x4000 != 0,
                link_local: flags & 0x2000 != 0,
                key: flags & 0x1000 != 0,
                life: be16(header, 10),
                options,
            });
        }
        6 => {
            msg.back = options(12).map(|options| Ip6MobilityBack {
                status: byte(header, 6),
                key: byte(header, 7) & 0x80 != 0,
                seq: be16(header, 8),
                life: be16(header, 10),
                options,
            });
        }
        7 => {
            msg.be = options(24).map(|options| {
                let (status, hoa) = (byte(header, 6), addr6(header, 8));
                Ip6MobilityBe { status, hoa, options }
            });
        }
        _ => {}
    }
    Ip6MobilityHdr {
        nxt: byte(header, 0),
        len: byte(header, 1),
        mh_type: id,
        rsv: byte(header, 3),
        chksum: be16(header, 4),
        msg,
    }
}

fn options6(mut rest: &[u8]) -> Vec<Ip6Option> {
    let mut all = Vec::new();
    // A single byte at the end is not an option, even if it is padding.
    while rest.len() >= 2 {
        let otype = byte(rest, 0);
        if otype == 0 {
            all.push(Ip6Option { otype, len: 0, data: Default::default() });
            rest = &rest[1..];
            continue;
        }
        let len = byte(rest, 1) as usize;
        let Some(data) = rest.get(2..2 + len) else { break };
        all.push(Ip6Option { otype, len: len as u64, data: data.to_vec().into() });
        rest = &rest[2 + len..];
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_mobile_ipv6() {
        let header = [
            59, 3, 5, 0, 0xab, 0xcd, 0, 7, 0x90, 0, 0, 60, 1, 2, 0, 0, 0xc9, 1, 9, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0,
        ];
        let all = mobility(&header);
        assert_eq!((all.nxt, all.len, all.mh_type, all.chksum), (59, 3, 5, 0xabcd));
        let bu = all.msg.bu.unwrap();
        assert_eq!((bu.seq, bu.life), (7, 60));
        assert_eq!((bu.acknowledge, bu.home, bu.link_local, bu.key), (true, false, false, true));
        assert_eq!((bu.options[0].otype, bu.options[0].len), (1, 2));
        assert_eq!((bu.options[1].otype, bu.options[1].len), (0xc9, 1));
        // A single byte at the end is not an option.
        assert_eq!(bu.options.len(), 2 + 12);
        // The header is too short for its type.
        assert!(mobility(&header[..8]).msg.bu.is_none());
        let kinds = [0, 1, 2, 3, 4, 6, 7, 8].map(|kind| {
            let mut header = header;
            header[2] = kind;
            let m = mobility(&header).msg;
            let found = [
                m.brr.is_some(),
                m.hoti.is_some(),
                m.coti.is_some(),
                m.hot.is_some(),
                m.cot.is_some(),
                m.back.is_some(),
                m.be.is_some(),
            ];
            found.iter().position(|is_some| *is_some)
        });
        let each = [Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6), None];
        assert_eq!(kinds, each);
    }
}
