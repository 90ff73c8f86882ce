//! Resource records: headers, and the data of every supported type.
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
    /// Time that the record may be cached, in seconds.
    pub ttl: u32,
    /// Length of the data, in bytes.
    pub len: u16,
}

/// Character strings, each with a length prefix (RFC 1035 §3.3).
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
    /// No data: the record was skipped or is malformed.
    Nothing,
    /// A: the address.
    A(Addr),
    /// AAAA: the address.
    Aaaa(Addr),
    /// A6: the address.
    A6(Addr),
    /// NS, CNAME, PTR, the exchange of MX, the target of SRV, the primary server of SOA.
    Name(&'a [u8]),
    /// WKS; its data is not parsed.
    Wks,
    /// TXT.
    Txt(Strings<'a>),
    /// SPF.
    Spf(Strings<'a>),
    /// NAPTR.
    Naptr {
        /// Order in which the records are processed.
        order: u16,
        /// Preference among records of the same order.
        preference: u16,
        /// Flags that control the interpretation of the other fields.
        flags: &'a [u8],
        /// The offered service.
        service: &'a [u8],
        /// Substitution expression.
        regexp: &'a [u8],
        /// Next name to query, in its original case.
        replacement: &'a [u8],
    },
    /// RRSIG.
    Rrsig {
        /// Type of the records that are signed.
        covered: u16,
        /// Name of the signer; empty for the root.
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
    /// Signing state of BIND 9.
    BindSigning,
    /// SSHFP: the fingerprint.
    Sshfp(&'a [u8]),
    /// LOC: size, horizontal and vertical precision, each in its encoded form.
    Loc(u8, u8, u8),
    /// A record of an unknown type.
    Unknown(u16),
}

/// The data of a record, and whether the rest of the message can still be parsed.
pub type Parsed<'a> = (Data<'a>, bool);

const MALFORMED: Parsed<'static> = (Data::Nothing, false);
const SKIPPED: Parsed<'static> = (Data::Nothing, true);

/// Parses the data of a record. `names` is a buffer for the names in it.
pub fn parse<'a, 'm: 'a>(
    cursor: &mut Cursor<'m>,
    record: &Record,
    context: MessageContext,
    names: &'a mut Vec<u8>,
    notes: &mut Notes,
) -> Parsed<'a> {
    names.clear();
    let len = usize::from(record.len);
    // A copy with the lifetime of `names`.
    let mut at: Cursor<'a> = *cursor;
    let mut reader = Reader { cursor: &mut at, context, notes };
    let parsed = match record.kind {
        rr::A => reader.a(len),
        rr::AAAA => (Data::Aaaa(reader.v6()), true),
        rr::A6 => (Data::A6(reader.v6()), true),
        rr::NS | rr::CNAME | rr::PTR => reader.named(0, len, names),
        rr::MX => reader.named(2, len, names),
        rr::SRV if context.netbios_server => SKIPPED,
        rr::SRV => reader.named(6, len, names),
        rr::SOA => reader.soa(len, names),
        rr::WKS => (Data::Wks, true),
        rr::HINFO if context.hinfo => reader.hinfo(len),
        rr::CAA if context.caa => reader.caa(len),
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
            (Data::Nothing, svcb::check(reader.cursor, len, context, names, reader.notes))
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
    context: MessageContext,
    notes: &'c mut Notes,
}

impl<'a> Reader<'_, 'a> {
    fn name(&mut self, out: &mut Vec<u8>) -> bool {
        self.cursor.name(out, self.context.netbios_server, self.notes)
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
            return MALFORMED;
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

    /// Parses a name after `before` bytes of numbers.
    fn named(&mut self, before: usize, len: usize, names: &'a mut Vec<u8>) -> Parsed<'a> {
        let start = self.cursor.pos();
        for _ in 0..before / 2 {
            self.cursor.u16();
        }
        if !self.name(names) {
            return MALFORMED;
        }
        self.check_len(start, len);
        (Data::Name(names), true)
    }

    fn soa(&mut self, len: usize, names: &'a mut Vec<u8>) -> Parsed<'a> {
        let start = self.cursor.pos();
        if !self.name(names) {
            return MALFORMED;
        }
        let primary = names.len();
        if !self.name(names) || self.cursor.remaining() < 20 {
            return MALFORMED;
        }
        self.cursor.skip(20);
        self.check_len(start, len);
        (Data::Name(&names[..primary]), true)
    }

    /// Parses a character string within `remaining` bytes of data.
    fn string(&mut self, remaining: &mut usize) -> Option<&'a [u8]> {
        if *remaining == 0 {
            return None;
        }
        let len = usize::from(self.cursor.u8());
        *remaining -= 1;
        if len > *remaining {
            weird(self.notes, "DNS_TXT_char_str_past_rdlen");
            return None;
        }
        *remaining -= len;
        Some(self.cursor.take(len))
    }

    /// Parses two character strings. If they do not fill the record, the rest of the message is not parsed.
    fn hinfo(&mut self, len: usize) -> Parsed<'a> {
        let mut remaining = len;
        self.string(&mut remaining);
        self.string(&mut remaining);
        (Data::Nothing, remaining == 0)
    }

    /// Parses flags, a length-prefixed tag, and a value. It is an error if the tag leaves no space for a value.
    fn caa(&mut self, len: usize) -> Parsed<'a> {
        let tag = usize::from(self.cursor.u16() & 0xff);
        if tag + 2 >= len {
            weird(self.notes, "DNS_CAA_char_str_past_rdlen");
            return MALFORMED;
        }
        self.skip(len - 2)
    }

    fn strings(&mut self, len: usize, make: fn(Strings<'a>) -> Data<'a>) -> Parsed<'a> {
        let all = self.cursor.rest();
        let (mut remaining, mut good) = (len, 0);
        while let Some(text) = self.string(&mut remaining) {
            good += 1 + text.len();
        }
        (make(Strings(&all[..good])), remaining == 0)
    }

    fn naptr(&mut self, len: usize, names: &'a mut Vec<u8>) -> Parsed<'a> {
        let order = self.cursor.u16();
        let preference = self.cursor.u16();
        if self.cursor.remaining() == 0 || len <= 4 {
            self.notes.push(MessageNote::Violation("DNS_NAPTR_too_short"));
            return MALFORMED;
        }
        let mut remaining = len - 4;
        let texts =
            [self.string(&mut remaining), self.string(&mut remaining), self.string(&mut remaining)];
        let named = self.cursor.name_as_is(names, self.context.netbios_server, self.notes);
        let ([Some(flags), Some(service), Some(regexp)], true) = (texts, named) else {
            self.notes.push(MessageNote::Violation("DNS_NAPTR_RR_too_short"));
            return MALFORMED;
        };
        (Data::Naptr { order, preference, flags, service, regexp, replacement: names }, true)
    }

    /// Parses EDNS options (RFC 6891 §6.1.2), if an answer section contains an OPT record.
    fn opt(&mut self, len: usize) -> Parsed<'a> {
        let mut remaining = len;
        while remaining >= 4 {
            let code = self.cursor.u16();
            let size = usize::from(self.cursor.u16());
            remaining -= 4;
            if size > remaining {
                weird(self.notes, "EDNS_truncated_option");
                return MALFORMED;
            }
            let data = self.cursor.take(size);
            match code {
                8 => self.client_subnet(data),
                11 if self.context.udp && matches!(size, 0 | 2) => {
                    weird(self.notes, "EDNS_TCP_Keepalive_In_UDP");
                }
                _ => {}
            }
            remaining -= size;
        }
        if remaining != 0 {
            weird(self.notes, "EDNS_truncated_option");
            return MALFORMED;
        }
        SKIPPED
    }

    /// Checks a client subnet option (RFC 7871 §6).
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

    /// Skips a length-prefixed block of bytes, at most to the end.
    fn block(&mut self) {
        let len = usize::from(self.cursor.u16());
        self.cursor.skip(len);
    }

    fn tsig(&mut self, names: &mut Vec<u8>) -> Parsed<'a> {
        if !self.name(names) {
            return MALFORMED;
        }
        self.cursor.u32(); // time signed, upper 32 bits
        self.cursor.u16(); // time signed, lower 16 bits
        self.cursor.u16(); // fudge
        self.block(); // MAC
        self.cursor.u16(); // original ID
        self.cursor.u16(); // error
        self.block(); // other data
        SKIPPED
    }

    fn rrsig(&mut self, len: usize, names: &'a mut Vec<u8>) -> Parsed<'a> {
        if self.cursor.remaining() < 18 {
            return MALFORMED;
        }
        let covered = self.cursor.u16();
        let algorithm = self.cursor.u8();
        self.cursor.skip(15); // labels, original TTL, expiration, inception, key tag
        let start = self.cursor.pos();
        if !self.name(names) {
            return MALFORMED;
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
            return MALFORMED;
        }
        let flags = self.cursor.u16();
        let protocol = self.cursor.u8();
        let algorithm = self.cursor.u8();
        self.cursor.skip(len.saturating_sub(4));
        // Only the bits zone key, revoked and secure entry point are defined (RFC 5011 §7).
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

    /// Skips the window blocks of a type bitmap (RFC 4034 §4.1.2).
    fn type_bitmaps(&mut self, start: usize, len: usize, empty: &'static str) {
        let mut remaining = len as i64 - (self.cursor.pos() - start) as i64;
        while remaining > 0 && self.cursor.remaining() > 0 {
            let [window, size] = self.cursor.u16().to_be_bytes();
            if size == 0 {
                weird_number(self.notes, empty, window);
                break;
            }
            self.cursor.skip(usize::from(size));
            remaining -= 2 + i64::from(size);
        }
    }

    fn nsec(&mut self, len: usize, names: &'a mut Vec<u8>) -> Parsed<'a> {
        let start = self.cursor.pos();
        if !self.name(names) {
            return MALFORMED;
        }
        self.type_bitmaps(start, len, "DNSSEC_NSEC_bitmapLen0");
        (Data::Nsec(names), true)
    }

    fn nsec3(&mut self, len: usize) -> Parsed<'a> {
        if self.cursor.remaining() < 6 {
            return MALFORMED;
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
            return MALFORMED;
        }
        self.cursor.skip(4); // hash algorithm, flags, iterations
        let salt = usize::from(self.cursor.u8());
        self.cursor.skip(salt);
        (Data::Nsec3Param, true)
    }

    fn ds(&mut self, len: usize) -> Parsed<'a> {
        if self.cursor.remaining() < 4 {
            return MALFORMED;
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
            return MALFORMED;
        }
        self.cursor.skip(5); // algorithm, key ID, removal flag, complete flag
        (Data::BindSigning, true)
    }

    fn sshfp(&mut self, len: usize) -> Parsed<'a> {
        if self.cursor.remaining() < 2 {
            return MALFORMED;
        }
        self.cursor.skip(2); // key algorithm, fingerprint type
        (Data::Sshfp(self.cursor.take(len.saturating_sub(2))), true)
    }

    fn loc(&mut self, len: usize) -> Parsed<'a> {
        let (16, Some([version, size, horizontal, vertical])) =
            (len, self.cursor.rest().first_chunk())
        else {
            weird(self.notes, "dns_invalid_loc_length");
            return MALFORMED;
        };
        self.cursor.skip(len);
        if *version != 0 {
            weird_number(self.notes, "DNS_LOC_version_unrecognized", *version);
        }
        (Data::Loc(*size, *horizontal, *vertical), true)
    }
}

/// Status of a DNSSEC algorithm for zone signing.
enum Algorithm {
    Known,
    NotRecommended,
    Indirect,
    PrivateDns,
    PrivateOid,
    Unknown,
}

/// Returns the status of an algorithm number of the DNSSEC registry (RFC 4034 appendix A.1 and its successors).
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
