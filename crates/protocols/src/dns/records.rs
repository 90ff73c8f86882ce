//! Resource records: headers and the data of every type that is understood.
//!
//! As in Zeek, a record's length field is used only if its type has no lengths of its own: parsing
//! continues where the data ended, so a wrong length affects the following records.

use gannet_base::Addr;

use super::message::Cursor;
use super::message::MessageContext;
use super::message::MessageNote;
use super::message::Notes;
use super::message::weird;
use super::message::weird_number;
use super::names::rr;
use super::svcb;

/// The fields between a record's name and its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Type.
    pub kind: u16,
    /// Class.
    pub class: u16,
    /// Seconds it may be cached.
    pub ttl: u32,
    /// Bytes of data.
    pub len: u16,
}

/// Character strings, each behind its length (RFC 1035 §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strings<'a>(&'a [u8]);

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.0.split_first()?;
        let (text, rest) = rest.split_at_checked(usize::from(*len))?;
        self.0 = rest;
        Some(text)
    }
}

/// The data of a record. Names are decompressed and in lower case unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// Nothing that is reported: the record was skipped, or broken.
    Nothing,
    /// A: the address.
    A(Addr),
    /// AAAA: the address.
    Aaaa(Addr),
    /// A6: the address.
    A6(Addr),
    /// NS, CNAME, PTR, the exchange of MX, the target of SRV, the primary server of SOA.
    Name(&'a [u8]),
    /// WKS; its data is not read.
    Wks,
    /// TXT.
    Txt(Strings<'a>),
    /// SPF.
    Spf(Strings<'a>),
    /// NAPTR.
    Naptr {
        /// Rank among all records.
        order: u16,
        /// Rank within an order.
        preference: u16,
        /// How the rest is to be read.
        flags: &'a [u8],
        /// The offered service.
        service: &'a [u8],
        /// Substitution expression.
        regexp: &'a [u8],
        /// Next name to ask for, in the case it came in.
        replacement: &'a [u8],
    },
    /// RRSIG.
    Rrsig {
        /// Type of the records that are signed.
        covered: u16,
        /// Whose key signed; empty for the root.
        signer: &'a [u8],
    },
    /// DNSKEY.
    Dnskey {
        /// Signature algorithm.
        algorithm: u8,
    },
    /// NSEC: the next name of the zone.
    Nsec(&'a [u8]),
    /// NSEC3.
    Nsec3,
    /// NSEC3PARAM.
    Nsec3Param,
    /// DS.
    Ds {
        /// Algorithm of the key.
        algorithm: u8,
        /// Algorithm of the digest.
        digest: u8,
    },
    /// BIND 9's state of signing.
    BindSigning,
    /// SSHFP: the fingerprint.
    Sshfp(&'a [u8]),
    /// LOC: size, horizontal and vertical precision, each as it came.
    Loc(u8, u8, u8),
    /// A type that is not understood.
    Unknown(u16),
}

/// A record's data, and whether the rest can still be parsed.
pub type Parsed<'a> = (Data<'a>, bool);

const BROKEN: Parsed<'static> = (Data::Nothing, false);
const SKIPPED: Parsed<'static> = (Data::Nothing, true);

/// Reads the data of a record. `names` is room for the names in it.
pub fn parse<'a, 'm: 'a>(
    cursor: &mut Cursor<'m>,
    record: &Record,
    place: MessageContext,
    names: &'a mut Vec<u8>,
    notes: &mut Notes,
) -> Parsed<'a> {
    names.clear();
    let len = usize::from(record.len);
    // A copy that lives no longer than the names do.
    let mut at: Cursor<'a> = *cursor;
    let mut reader = Reader { cursor: &mut at, place, notes };
    let parsed = match record.kind {
        rr::A => reader.a(len),
        rr::AAAA => (Data::Aaaa(reader.v6()), true),
        rr::A6 => (Data::A6(reader.v6()), true),
        rr::NS | rr::CNAME | rr::PTR => reader.named(0, len, names),
        rr::MX => reader.named(2, len, names),
        rr::SRV if place.netbios_server => SKIPPED,
        rr::SRV => reader.named(6, len, names),
        rr::SOA => reader.soa(len, names),
        rr::WKS => (Data::Wks, true),
        rr::HINFO if place.hinfo => reader.hinfo(len),
        rr::CAA if place.caa => reader.caa(len),
        rr::HINFO | rr::CAA | rr::TKEY | rr::NB => reader.skip(len),
        rr::TXT => reader.strings(len, Data::Txt),
        rr::SPF => reader.strings(len, Data::Spf),
        rr::NAPTR => reader.naptr(len, names),
        rr::OPT => reader.opt(len),
        rr::TSIG => reader.tsig(names),
        rr::RRSIG => reader.rrsig(len, names),
        rr::DNSKEY => reader.dnskey(len),
        rr::NSEC => reader.nsec(len, names),
        rr::NSEC3 => reader.nsec3(len),
        rr::NSEC3PARAM => reader.nsec3param(),
        rr::DS => reader.ds(len),
        rr::BIND_SIGNING => reader.bind_signing(),
        rr::SSHFP => reader.sshfp(len),
        rr::LOC => reader.loc(len),
        rr::SVCB | rr::HTTPS => {
            (Data::Nothing, svcb::check(reader.cursor, len, place, names, reader.notes))
        }
        kind => {
            weird_number(reader.notes, "DNS_RR_unknown_type", kind);
            reader.cursor.skip(len);
            (Data::Unknown(kind), true)
        }
    };
    cursor.skip(at.pos() - cursor.pos());
    parsed
}

struct Reader<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    place: MessageContext,
    notes: &'c mut Notes,
}

impl<'a> Reader<'_, 'a> {
    fn name(&mut self, out: &mut Vec<u8>) -> bool {
        self.cursor.name(out, self.place.netbios_server, self.notes)
    }

    fn skip(&mut self, len: usize) -> Parsed<'a> {
        self.cursor.skip(len);
        SKIPPED
    }

    fn check_len(&mut self, start: usize, len: usize) {
        if self.cursor.pos() - start != len {
            weird(self.notes, "DNS_RR_length_mismatch");
        }
    }

    fn a(&mut self, len: usize) -> Parsed<'a> {
        if len != 4 {
            weird(self.notes, "DNS_RR_bad_length");
            return BROKEN;
        }
        (Data::A(Addr::v4(self.cursor.u32().to_be_bytes())), true)
    }

    fn v6(&mut self) -> Addr {
        let mut bytes = [0; 16];
        for part in bytes.chunks_exact_mut(4) {
            part.copy_from_slice(&self.cursor.u32().to_be_bytes());
        }
        Addr::v6(bytes)
    }

    /// A name behind `before` bytes of numbers.
    fn named(&mut self, before: usize, len: usize, names: &'a mut Vec<u8>) -> Parsed<'a> {
        let start = self.cursor.pos();
        for _ in 0..before / 2 {
            self.cursor.u16();
        }
        if !self.name(names) {
            return BROKEN;
        }
        self.check_len(start, len);
        (Data::Name(names), true)
    }

    fn soa(&mut self, len: usize, names: &'a mut Vec<u8>) -> Parsed<'a> {
        let start = self.cursor.pos();
        if !self.name(names) {
            return BROKEN;
        }
        let primary = names.len();
        if !self.name(names) || self.cursor.remaining() < 20 {
            return BROKEN;
        }
        self.cursor.skip(20);
        self.check_len(start, len);
        (Data::Name(&names[..primary]), true)
    }

    /// One character string out of `left` bytes of data.
    fn string(&mut self, left: &mut usize) -> Option<&'a [u8]> {
        if *left == 0 {
            return None;
        }
        let len = usize::from(self.cursor.u8());
        *left -= 1;
        if len > *left {
            weird(self.notes, "DNS_TXT_char_str_past_rdlen");
            return None;
        }
        *left -= len;
        Some(self.cursor.take(len))
    }

    /// Two character strings; nothing else is read behind them unless they fill the record.
    fn hinfo(&mut self, len: usize) -> Parsed<'a> {
        let mut left = len;
        self.string(&mut left);
        self.string(&mut left);
        (Data::Nothing, left == 0)
    }

    /// Flags, then a tag behind its length, then a value. The record is not read where its tag fills it.
    fn caa(&mut self, len: usize) -> Parsed<'a> {
        let tag = usize::from(self.cursor.u16() & 0xff);
        if tag + 2 >= len {
            weird(self.notes, "DNS_CAA_char_str_past_rdlen");
            return BROKEN;
        }
        self.skip(len - 2)
    }

    fn strings(&mut self, len: usize, make: fn(Strings<'a>) -> Data<'a>) -> Parsed<'a> {
        let all = self.cursor.rest();
        let (mut left, mut good) = (len, 0);
        while let Some(text) = self.string(&mut left) {
            good += 1 + text.len();
        }
        (make(Strings(&all[..good])), left == 0)
    }

    fn naptr(&mut self, len: usize, names: &'a mut Vec<u8>) -> Parsed<'a> {
        let order = self.cursor.u16();
        let preference = self.cursor.u16();
        if self.cursor.remaining() == 0 || len <= 4 {
            self.notes.push(MessageNote::Violation("DNS_NAPTR_too_short"));
            return BROKEN;
        }
        let mut left = len - 4;
        let texts = [self.string(&mut left), self.string(&mut left), self.string(&mut left)];
        let named = self.cursor.name_as_is(names, self.place.netbios_server, self.notes);
        let ([Some(flags), Some(service), Some(regexp)], true) = (texts, named) else {
            self.notes.push(MessageNote::Violation("DNS_NAPTR_RR_too_short"));
            return BROKEN;
        };
        (Data::Naptr { order, preference, flags, service, regexp, replacement: names }, true)
    }

    /// EDNS options (RFC 6891 §6.1.2), which only occur here if an answer section holds them.
    fn opt(&mut self, len: usize) -> Parsed<'a> {
        let mut left = len;
        while left >= 4 {
            let code = self.cursor.u16();
            let size = usize::from(self.cursor.u16());
            left -= 4;
            if size > left {
                weird(self.notes, "EDNS_truncated_option");
                return BROKEN;
            }
            let data = self.cursor.take(size);
            match code {
                8 => self.client_subnet(data),
                11 if self.place.udp && matches!(size, 0 | 2) => {
                    weird(self.notes, "EDNS_TCP_Keepalive_In_UDP");
                }
                _ => {}
            }
            left -= size;
        }
        if left != 0 {
            weird(self.notes, "EDNS_truncated_option");
            return BROKEN;
        }
        SKIPPED
    }

    /// Client subnet (RFC 7871 §6).
    fn client_subnet(&mut self, data: &[u8]) {
        let [f0, f1, source, _scope, address @ ..] = data else {
            weird(self.notes, "EDNS_ECS_invalid_option_len");
            return;
        };
        if address.is_empty() {
            weird(self.notes, "EDNS_ECS_invalid_option_len");
            return;
        }
        let (max, prefix, short) = match u16::from_be_bytes([*f0, *f1]) {
            1 => (32, "EDNS_ECS_invalid_addr_v4_prefix", "EDNS_ECS_invalid_addr_v4"),
            2 => (128, "EDNS_ECS_invalid_addr_v6_prefix", "EDNS_ECS_invalid_addr_v6"),
            _ => return,
        };
        let (need, have) = (usize::from(*source), 8 * address.len());
        if need > max {
            self.notes.push(MessageNote::Weird(prefix, format!("{need} bits")));
        } else if need > have {
            self.notes
                .push(MessageNote::Weird(short, format!("need {need} bits, have {have} bits")));
        }
    }

    /// A block of bytes behind its length, cut to what there is.
    fn block(&mut self) {
        let len = usize::from(self.cursor.u16());
        self.cursor.skip(len);
    }

    fn tsig(&mut self, names: &mut Vec<u8>) -> Parsed<'a> {
        if !self.name(names) {
            return BROKEN;
        }
        self.cursor.u32(); // time signed, seconds
        self.cursor.u16(); // and its rest
        self.cursor.u16(); // fudge
        self.block(); // MAC
        self.cursor.u16(); // original id
        self.cursor.u16(); // error
        self.block(); // other data
        SKIPPED
    }

    fn rrsig(&mut self, len: usize, names: &'a mut Vec<u8>) -> Parsed<'a> {
        if self.cursor.remaining() < 18 {
            return BROKEN;
        }
        let covered = self.cursor.u16();
        let algorithm = self.cursor.u8();
        self.cursor.skip(15); // labels, original TTL, expiration, inception, key tag
        let start = self.cursor.pos();
        if !self.name(names) {
            return BROKEN;
        }
        self.cursor.skip(len.saturating_sub(self.cursor.pos() - start + 18));
        let name = match zone_algorithm(algorithm) {
            Algorithm::Known => None,
            Algorithm::NotRecommended => Some("DNSSEC_RRSIG_NotRecommended_ZoneSignAlgo"),
            Algorithm::Indirect => Some("DNSSEC_RRSIG_Indirect_ZoneSignAlgo"),
            Algorithm::PrivateDns => Some("DNSSEC_RRSIG_PrivateDNS_ZoneSignAlgo"),
            Algorithm::PrivateOid => Some("DNSSEC_RRSIG_PrivateOID_ZoneSignAlgo"),
            Algorithm::Unknown => Some("DNSSEC_RRSIG_unknown_ZoneSignAlgo"),
        };
        if let Some(name) = name {
            weird_number(self.notes, name, algorithm);
        }
        (Data::Rrsig { covered, signer: names }, true)
    }

    fn dnskey(&mut self, len: usize) -> Parsed<'a> {
        if self.cursor.remaining() < 4 {
            return BROKEN;
        }
        let flags = self.cursor.u16();
        let protocol = self.cursor.u8();
        let algorithm = self.cursor.u8();
        self.cursor.skip(len.saturating_sub(4));
        // Zone key, revoked and secure entry point are the bits with a meaning (RFC 5011 §7).
        if flags & 0xfe7e != 0 {
            weird_number(self.notes, "DNSSEC_DNSKEY_Invalid_Flag", flags);
        }
        if flags & 0x0181 == 0x0181 {
            weird_number(self.notes, "DNSSEC_DNSKEY_Revoked_KSK", flags);
        }
        if protocol != 3 {
            weird_number(self.notes, "DNSSEC_DNSKEY_Invalid_Protocol", protocol);
        }
        let name = match zone_algorithm(algorithm) {
            Algorithm::Known => None,
            Algorithm::NotRecommended => Some("DNSSEC_DNSKEY_NotRecommended_ZoneSignAlgo"),
            Algorithm::Indirect => Some("DNSSEC_DNSKEY_Indirect_ZoneSignAlgo"),
            Algorithm::PrivateDns => Some("DNSSEC_DNSKEY_PrivateDNS_ZoneSignAlgo"),
            Algorithm::PrivateOid => Some("DNSSEC_DNSKEY_PrivateOID_ZoneSignAlgo"),
            Algorithm::Unknown => Some("DNSSEC_DNSKEY_unknown_ZoneSignAlgo"),
        };
        if let Some(name) = name {
            weird_number(self.notes, name, algorithm);
        }
        (Data::Dnskey { algorithm }, true)
    }

    /// The windows of a type bitmap (RFC 4034 §4.1.2).
    fn type_bitmaps(&mut self, start: usize, len: usize, empty: &'static str) {
        let mut left = len as i64 - (self.cursor.pos() - start) as i64;
        while left > 0 && self.cursor.remaining() > 0 {
            let [window, size] = self.cursor.u16().to_be_bytes();
            if size == 0 {
                weird_number(self.notes, empty, window);
                break;
            }
            self.cursor.skip(usize::from(size));
            left -= 2 + i64::from(size);
        }
    }

    fn nsec(&mut self, len: usize, names: &'a mut Vec<u8>) -> Parsed<'a> {
        let start = self.cursor.pos();
        if !self.name(names) {
            return BROKEN;
        }
        self.type_bitmaps(start, len, "DNSSEC_NSEC_bitmapLen0");
        (Data::Nsec(names), true)
    }

    fn nsec3(&mut self, len: usize) -> Parsed<'a> {
        if self.cursor.remaining() < 6 {
            return BROKEN;
        }
        let start = self.cursor.pos();
        self.cursor.skip(4); // hash algorithm, flags, iterations
        for _ in 0..2 {
            // Salt, next hashed owner.
            let size = usize::from(self.cursor.u8());
            self.cursor.skip(size);
        }
        self.type_bitmaps(start, len, "DNSSEC_NSEC3_bitmapLen0");
        (Data::Nsec3, true)
    }

    fn nsec3param(&mut self) -> Parsed<'a> {
        if self.cursor.remaining() < 5 {
            return BROKEN;
        }
        self.cursor.skip(4); // hash algorithm, flags, iterations
        let salt = usize::from(self.cursor.u8());
        self.cursor.skip(salt);
        (Data::Nsec3Param, true)
    }

    fn ds(&mut self, len: usize) -> Parsed<'a> {
        if self.cursor.remaining() < 4 {
            return BROKEN;
        }
        self.cursor.u16(); // key tag
        let algorithm = self.cursor.u8();
        let digest = self.cursor.u8();
        self.cursor.skip(len.saturating_sub(4));
        match digest {
            0 => weird_number(self.notes, "DNSSEC_DS_ReservedDigestType", digest),
            1..=4 => {}
            _ => weird_number(self.notes, "DNSSEC_DS_unknown_DigestType", digest),
        }
        (Data::Ds { algorithm, digest }, true)
    }

    fn bind_signing(&mut self) -> Parsed<'a> {
        if self.cursor.remaining() < 5 {
            return BROKEN;
        }
        self.cursor.skip(5); // algorithm, key id, removal flag, complete flag
        (Data::BindSigning, true)
    }

    fn sshfp(&mut self, len: usize) -> Parsed<'a> {
        if self.cursor.remaining() < 2 {
            return BROKEN;
        }
        self.cursor.skip(2); // key algorithm, fingerprint type
        (Data::Sshfp(self.cursor.take(len.saturating_sub(2))), true)
    }

    fn loc(&mut self, len: usize) -> Parsed<'a> {
        let (16, Some([version, size, horizontal, vertical])) =
            (len, self.cursor.rest().first_chunk())
        else {
            weird(self.notes, "dns_invalid_loc_length");
            return BROKEN;
        };
        self.cursor.skip(len);
        if *version != 0 {
            weird_number(self.notes, "DNS_LOC_version_unrecognized", *version);
        }
        (Data::Loc(*size, *horizontal, *vertical), true)
    }
}

/// The status of a DNSSEC algorithm that signs a zone.
enum Algorithm {
    Known,
    NotRecommended,
    Indirect,
    PrivateDns,
    PrivateOid,
    Unknown,
}

/// Algorithm numbers of the DNSSEC registry (RFC 4034 appendix A.1 and its successors).
fn zone_algorithm(number: u8) -> Algorithm {
    match number {
        1 => Algorithm::NotRecommended,
        2..=8 | 10 | 12..=16 => Algorithm::Known,
        252 => Algorithm::Indirect,
        253 => Algorithm::PrivateDns,
        254 => Algorithm::PrivateOid,
        _ => Algorithm::Unknown,
    }
}

#[cfg(test)]
mod tests;
