//! Raises the event of a record, by its type and data.

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;

use super::super::events::*;
use super::super::message::Cursor;
use super::super::message::Notes;
use super::super::names::rr;
use super::super::records::Data;
use super::super::records::Record;
use super::Raiser;

impl Raiser<'_, '_> {
    /// Raises the event of a record, whose valid data was parsed from `raw`.
    pub(super) fn data(
        &mut self,
        ans: Answer<'_>,
        record: &Record,
        data: &Data<'_>,
        mut raw: Cursor<'_>,
    ) {
        let len = usize::from(record.len);
        match (record.kind, data) {
            (rr::A, Data::A(a)) => self.raise(|c, msg| AReply { c, msg, ans, a: *a }),
            (rr::AAAA, Data::Aaaa(a)) => self.raise(|c, msg| AaaaReply { c, msg, ans, a: *a }),
            (rr::A6, Data::A6(a)) => self.raise(|c, msg| A6Reply { c, msg, ans, a: *a }),
            (rr::NS, Data::Name(name)) => self.raise(|c, msg| NsReply { c, msg, ans, name }),
            (rr::CNAME, Data::Name(name)) => self.raise(|c, msg| CnameReply { c, msg, ans, name }),
            (rr::PTR, Data::Name(name)) => self.raise(|c, msg| PtrReply { c, msg, ans, name }),
            (rr::MX, Data::Name(name)) => {
                let preference = raw.u16();
                self.raise(|c, msg| MxReply { c, msg, ans, name, preference });
            }
            (rr::SRV, Data::Name(target)) => {
                let (priority, weight, p) = (raw.u16(), raw.u16(), raw.u16());
                self.raise(|c, msg| SrvReply { c, msg, ans, target, priority, weight, p });
            }
            (rr::SOA, Data::Name(mname)) => self.soa(ans, mname, raw),
            (_, Data::Wks) => self.raise(|c, msg| WksReply { c, msg, ans }),
            (rr::HINFO, _) => self.hinfo(ans, raw, len),
            (_, Data::Txt(strings)) => {
                self.raise(|c, msg| TxtReply { c, msg, ans, strs: strings.collect() });
            }
            (_, Data::Spf(strings)) => {
                self.raise(|c, msg| SpfReply { c, msg, ans, strs: strings.collect() });
            }
            (rr::CAA, _) => self.caa(ans, raw, len),
            (_, Data::Naptr { order, preference, flags, service, regexp, replacement }) => {
                let (order, preference) = (*order, *preference);
                let naptr = Naptr { order, preference, flags, service, regexp, replacement };
                self.raise(|c, msg| NaptrReply { c, msg, ans, naptr });
            }
            (_, Data::Rrsig { covered, signer }) => self.rrsig(ans, (*covered, signer), raw, len),
            (_, Data::Dnskey { .. }) => self.dnskey(ans, raw, len),
            (_, Data::Nsec(next_name)) => {
                let start = raw.pos();
                raw.name(&mut Vec::new(), self.context.netbios_server, &mut Vec::new());
                let bitmaps = bitmaps(&mut raw, start, len);
                self.raise(|c, msg| NsecReply { c, msg, ans, next_name, bitmaps });
            }
            (_, Data::Nsec3) => self.nsec3(ans, raw, len),
            (_, Data::Nsec3Param) => self.nsec3param(ans, raw),
            (_, Data::Ds { algorithm, digest }) => self.ds(ans, (*algorithm, *digest), raw, len),
            (_, Data::BindSigning) => self.binds(ans, raw),
            (_, Data::Sshfp(fingerprint)) => {
                let (algo, fptype) = (u64::from(raw.u8()), u64::from(raw.u8()));
                self.raise(|c, msg| SshfpReply { c, msg, ans, algo, fptype, fingerprint });
            }
            (_, Data::Loc(..)) => self.loc(ans, raw),
            (rr::OPT, _) => self.edns(ans, record, raw),
            (rr::SVCB | rr::HTTPS, _) => self.binding(ans, record, raw),
            (rr::TKEY, _) => self.tkey(ans, raw),
            (rr::TSIG, _) => self.tsig(ans, raw),
            (_, Data::Unknown(_)) => self.raise(|c, msg| UnknownReply { c, msg, ans }),
            _ => {}
        }
    }

    /// Start of authority (RFC 1035 §3.3.13).
    fn soa(&mut self, ans: Answer<'_>, mname: &[u8], mut raw: Cursor<'_>) {
        let rname = self.second_name(&mut raw);
        let seconds = |n: u32| Interval::from_secs(i64::from(n));
        let soa = Soa {
            mname,
            rname: &rname,
            serial: raw.u32(),
            refresh: seconds(raw.u32()),
            retry: seconds(raw.u32()),
            expire: seconds(raw.u32()),
            minimum: seconds(raw.u32()),
        };
        self.raise(|c, msg| SoaReply { c, msg, ans, soa });
    }

    /// Processor and operating system of a host (RFC 1035 §3.3.2).
    fn hinfo(&mut self, ans: Answer<'_>, mut raw: Cursor<'_>, len: usize) {
        let remaining = &mut { len };
        let (cpu, os) = (text_within(&mut raw, remaining), text_within(&mut raw, remaining));
        self.raise(|c, msg| HinfoReply { c, msg, ans, cpu, os });
    }

    /// Certification authority authorization (RFC 8659 §4.1).
    fn caa(&mut self, ans: Answer<'_>, mut raw: Cursor<'_>, len: usize) {
        let (flags, tag) = (u64::from(raw.u8()), text(&mut raw));
        let value = raw.take(len.saturating_sub(2 + tag.len()));
        if value.is_empty() {
            return;
        }
        self.raise(|c, msg| CaaReply { c, msg, ans, flags, tag, value });
    }

    /// Signature of a record set (RFC 4034 §3.1).
    fn rrsig(
        &mut self,
        ans: Answer<'_>,
        (covered, signer): (u16, &[u8]),
        mut raw: Cursor<'_>,
        len: usize,
    ) {
        let (query, answer_type, is_query) = (ans.query, ans.answer_type, u64::from(self.is_orig));
        let start = raw.pos();
        raw.skip(2);
        let (algorithm, labels) = (u64::from(raw.u8()), u64::from(raw.u8()));
        let orig_ttl = Interval::from_secs(i64::from(raw.u32()));
        let (expires, began) = (i64::from(raw.u32()), i64::from(raw.u32()));
        let key_tag = raw.u16();
        raw.name(&mut Vec::new(), self.context.netbios_server, &mut Vec::new());
        let signature = raw.take(len.saturating_sub(raw.pos() - start));
        let rrsig = Rrsig {
            query,
            answer_type,
            type_covered: covered,
            algorithm,
            labels,
            orig_ttl,
            sig_exp: Time::from_secs(expires),
            sig_incep: Time::from_secs(began),
            key_tag,
            signer_name: signer,
            signature,
            is_query,
        };
        self.raise(|c, msg| RrsigReply { c, msg, ans, rrsig });
    }

    /// Public key of a zone (RFC 4034 §2.1).
    fn dnskey(&mut self, ans: Answer<'_>, mut raw: Cursor<'_>, len: usize) {
        let (query, answer_type, is_query) = (ans.query, ans.answer_type, u64::from(self.is_orig));
        let dnskey = Dnskey {
            query,
            answer_type,
            flags: raw.u16(),
            protocol: raw.u8().into(),
            algorithm: raw.u8().into(),
            public_key: raw.take(len.saturating_sub(4)),
            is_query,
        };
        self.raise(|c, msg| DnskeyReply { c, msg, ans, dnskey });
    }

    /// Hashed denial of existence (RFC 5155 §3.2).
    fn nsec3(&mut self, ans: Answer<'_>, mut raw: Cursor<'_>, len: usize) {
        let (query, answer_type, is_query) = (ans.query, ans.answer_type, u64::from(self.is_orig));
        let start = raw.pos();
        let (nsec_hash_algo, nsec_flags) = (u64::from(raw.u8()), u64::from(raw.u8()));
        let nsec_iter = raw.u16();
        let (salt, hash) = (text(&mut raw), text(&mut raw));
        let nsec3 = Nsec3 {
            query,
            answer_type,
            nsec_flags,
            nsec_hash_algo,
            nsec_iter,
            nsec_salt_len: salt.len() as u64,
            nsec_salt: salt,
            nsec_hlen: hash.len() as u64,
            nsec_hash: hash,
            bitmaps: bitmaps(&mut raw, start, len),
            is_query,
        };
        self.raise(|c, msg| Nsec3Reply { c, msg, ans, nsec3 });
    }

    /// Parameters of name hashing (RFC 5155 §4.2).
    fn nsec3param(&mut self, ans: Answer<'_>, mut raw: Cursor<'_>) {
        let (query, answer_type, is_query) = (ans.query, ans.answer_type, u64::from(self.is_orig));
        let (nsec_hash_algo, nsec_flags) = (u64::from(raw.u8()), u64::from(raw.u8()));
        let nsec_iter = raw.u16();
        let salt = text(&mut raw);
        let nsec3param = Nsec3Param {
            query,
            answer_type,
            nsec_flags,
            nsec_hash_algo,
            nsec_iter,
            nsec_salt_len: salt.len() as u64,
            nsec_salt: salt,
            is_query,
        };
        self.raise(|c, msg| Nsec3ParamReply { c, msg, ans, nsec3param });
    }

    /// Digest of a key of a delegated zone (RFC 4034 §5.1).
    fn ds(
        &mut self,
        ans: Answer<'_>,
        (algorithm, digest): (u8, u8),
        mut raw: Cursor<'_>,
        len: usize,
    ) {
        let (query, answer_type, is_query) = (ans.query, ans.answer_type, u64::from(self.is_orig));
        let key_tag = raw.u16();
        raw.skip(2);
        let ds = Ds {
            query,
            answer_type,
            key_tag,
            algorithm: u64::from(algorithm),
            digest_type: u64::from(digest),
            digest_val: raw.take(len.saturating_sub(4)),
            is_query,
        };
        self.raise(|c, msg| DsReply { c, msg, ans, ds });
    }

    /// Signing state of a zone of BIND 9.
    fn binds(&mut self, ans: Answer<'_>, mut raw: Cursor<'_>) {
        let (query, answer_type, is_query) = (ans.query, ans.answer_type, u64::from(self.is_orig));
        let binds = Binds {
            query,
            answer_type,
            algorithm: raw.u8().into(),
            key_id: raw.u16(),
            removal_flag: raw.u8().into(),
            complete_flag: raw.u8().into(),
            is_query,
        };
        self.raise(|c, msg| BindsReply { c, msg, ans, binds });
    }

    /// Geographic location (RFC 1876 §2).
    fn loc(&mut self, ans: Answer<'_>, mut raw: Cursor<'_>) {
        let (query, answer_type, is_query) = (ans.query, ans.answer_type, u64::from(self.is_orig));
        let loc = Loc {
            query,
            answer_type,
            version: raw.u8().into(),
            size: raw.u8().into(),
            horiz_pre: raw.u8().into(),
            vert_pre: raw.u8().into(),
            latitude: raw.u32(),
            longitude: raw.u32(),
            altitude: raw.u32(),
            is_query,
        };
        self.raise(|c, msg| LocReply { c, msg, ans, loc });
    }

    /// Negotiation of a transaction key (RFC 2930 §2).
    fn tkey(&mut self, ans: Answer<'_>, mut raw: Cursor<'_>) {
        let (query, answer_type, is_query) = (ans.query, ans.answer_type, u64::from(self.is_orig));
        let mut name = Vec::new();
        if raw.remaining() < 16
            || !raw.name(&mut name, self.context.netbios_server, &mut Notes::new())
        {
            return;
        }
        let (inception, expiration) = (i64::from(raw.u32()), i64::from(raw.u32()));
        let ans = Tkey {
            query,
            qtype: answer_type,
            alg_name: &name,
            inception: Time::from_secs(inception),
            expiration: Time::from_secs(expiration),
            mode: raw.u16(),
            rr_error: raw.u16(),
            key_data: block(&mut raw),
            is_query,
        };
        self.raise(|c, msg| TkeyReply { c, msg, ans });
    }

    /// The signature of a message (RFC 8945 §4.2).
    fn tsig(&mut self, ans: Answer<'_>, mut raw: Cursor<'_>) {
        let (query, answer_type, is_query) = (ans.query, ans.answer_type, u64::from(self.is_orig));
        let mut name = Vec::new();
        if !raw.name(&mut name, self.context.netbios_server, &mut Notes::new()) {
            return;
        }
        let (seconds, millis) = (i64::from(raw.u32()), i64::from(raw.u16()));
        let fudge = i64::from(raw.u16());
        let ans = Tsig {
            query,
            qtype: answer_type,
            alg_name: &name,
            time_signed: Time::from_nanos((seconds * 1_000 + millis) * 1_000_000),
            fudge: Time::from_secs(fudge),
            sig: block(&mut raw),
            orig_id: raw.u16(),
            rr_error: raw.u16(),
            is_query,
        };
        self.raise(|c, msg| TsigAddl { c, msg, ans });
    }

    /// EDNS and its options.
    fn edns(&mut self, ans: Answer<'_>, record: &Record, mut raw: Cursor<'_>) {
        let code = u64::from(record.ttl >> 24) << 4 | u64::from(self.header.rcode());
        let edns = Edns {
            query: ans.query,
            qtype: ans.answer_type,
            t: record.kind,
            payload_size: record.class,
            extended_rcode: code,
            version: u64::from(record.ttl >> 16 & 0xff),
            z_field: u64::from(record.ttl & 0xffff),
            ttl: ans.ttl,
            is_query: u64::from(self.is_orig),
        };
        self.raise(|c, msg| EdnsAddl { c, msg, ans: edns });
        let mut remaining = usize::from(record.len);
        while remaining >= 4 {
            let (code, size) = (raw.u16(), usize::from(raw.u16()));
            remaining -= 4;
            if size > remaining {
                return;
            }
            remaining -= size;
            match (code, raw.take(size)) {
                (8, data) => {
                    if let Some(opt) = subnet(data) {
                        self.raise(|c, msg| EdnsEcsOption { c, msg, opt });
                    }
                }
                (10, data) if matches!(size, 8 | 16..=40) => {
                    let (client_cookie, server) = data.split_at(8);
                    let server_cookie = (!server.is_empty()).then_some(server);
                    let opt = EdnsCookie { client_cookie, server_cookie };
                    self.raise(|c, msg| EdnsCookieOption { c, msg, opt });
                }
                (11, data) if matches!(size, 0 | 2) => {
                    let time = <[u8; 2]>::try_from(data).ok().map(u16::from_be_bytes);
                    let opt = EdnsKeepalive {
                        keepalive_timeout_omitted: time.is_none(),
                        keepalive_timeout: time.unwrap_or_default().into(),
                    };
                    self.raise(|c, msg| EdnsKeepaliveOption { c, msg, opt });
                }
                _ => {}
            }
        }
    }

    /// A service binding.
    fn binding(&mut self, ans: Answer<'_>, record: &Record, mut raw: Cursor<'_>) {
        let (start, len) = (raw.pos(), usize::from(record.len));
        let svc_priority = raw.u16();
        let mut target = Vec::new();
        if len < 3 || !raw.name_as_is(&mut target, self.context.netbios_server, &mut Notes::new()) {
            return;
        }
        let remaining = len.saturating_sub(raw.pos() - start);
        let target_name = if target.is_empty() { b"." } else { &target[..] };
        let svc_params = (remaining > 0).then(|| parameters(raw.take(remaining)));
        let svcb = Svcb { svc_priority, target_name, svc_params };
        if record.kind == rr::SVCB {
            self.raise(|c, msg| SvcbReply { c, msg, ans, svcb });
        } else {
            self.raise(|c, msg| HttpsReply { c, msg, ans, https: svcb });
        }
    }

    /// Returns the second of two consecutive names.
    fn second_name(&self, raw: &mut Cursor<'_>) -> Vec<u8> {
        let (mut name, mut notes) = (Vec::new(), Vec::new());
        raw.name(&mut Vec::new(), self.context.netbios_server, &mut notes);
        raw.name(&mut name, self.context.netbios_server, &mut notes);
        name
    }
}

/// Parses the client subnet option (RFC 7871 §6).
fn subnet(data: &[u8]) -> Option<EdnsEcs> {
    let [f0, f1, source, scope, address @ ..] = data else { return None };
    let bytes = usize::from(*source).div_ceil(8);
    let shown = address.get(..bytes).filter(|_| !address.is_empty())?;
    let (family, address) = match u16::from_be_bytes([*f0, *f1]) {
        1 if bytes <= 4 => {
            let mut octets = [0; 4];
            octets[..bytes].copy_from_slice(shown);
            ("v4", Addr::v4(octets))
        }
        2 if bytes <= 16 => {
            let mut octets = [0; 16];
            octets[..bytes].copy_from_slice(shown);
            ("v6", Addr::v6(octets))
        }
        _ => return None,
    };
    let (source_prefix_len, scope_prefix_len) = (u64::from(*source), u64::from(*scope));
    Some(EdnsEcs { family, source_prefix_len, scope_prefix_len, address })
}

/// Parses the parameters of a service binding.
fn parameters(mut data: &[u8]) -> Vec<SvcbParam<'_>> {
    let mut all = Vec::new();
    while let [k0, k1, l0, l1, rest @ ..] = data {
        let (key, len) =
            (u16::from_be_bytes([*k0, *k1]), usize::from(u16::from_be_bytes([*l0, *l1])));
        let is_truncated = len > rest.len();
        let (value, rest) = rest.split_at(len.min(rest.len()));
        data = rest;
        let (mandatory, alpn, p, hint, ech, raw) = (None, None, None, None, None, None);
        // As in Zeek, a parameter with a truncated value has no key.
        let known_key = (!is_truncated).then_some(key);
        let mut param = SvcbParam { key: known_key, mandatory, alpn, p, hint, ech, raw };
        let is_valid = !is_truncated && parse_value(&mut param, key, value);
        param.raw = (!is_valid).then_some(value);
        all.push(param);
    }
    all
}

/// Parses the value of a parameter (RFC 9460 §7, §8). Returns whether it is valid and its key known.
fn parse_value<'a>(param: &mut SvcbParam<'a>, key: u16, value: &'a [u8]) -> bool {
    let words = || value.chunks_exact(2).map(|two| u64::from(u16::from_be_bytes([two[0], two[1]])));
    match key {
        0 if !value.is_empty() && value.len().is_multiple_of(2) => {
            param.mandatory = Some(words().collect());
        }
        1 => {
            let (mut names, mut remaining) = (Vec::new(), value);
            while let Some((len, rest)) = remaining.split_first() {
                match rest.split_at_checked(usize::from(*len)) {
                    Some((name, rest)) if !name.is_empty() => {
                        names.push(name);
                        remaining = rest;
                    }
                    _ => return false,
                }
            }
            param.alpn = (!names.is_empty()).then_some(names);
        }
        2 => return value.is_empty(),
        3 if value.len() == 2 => param.p = words().next(),
        4 if value.len().is_multiple_of(4) => {
            let hosts = value.as_chunks().0.iter().map(|host| Addr::v4(*host));
            param.hint = (!value.is_empty()).then(|| hosts.collect());
        }
        5 => param.ech = Some(base64(value)),
        6 if value.len().is_multiple_of(16) => {
            let hosts = value.as_chunks().0.iter().map(|host| Addr::v6(*host));
            param.hint = (!value.is_empty()).then(|| hosts.collect());
        }
        _ => return false,
    }
    true
}

fn base64(data: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(data.len().div_ceil(3) * 4);
    for three in data.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = char::from(DIGITS[(bits >> shift & 63) as usize]);
            out.push(if at <= three.len() { digit } else { '=' });
        }
    }
    out
}

/// Reads a block with a length prefix of two bytes, at most to the end.
fn block<'a>(raw: &mut Cursor<'a>) -> &'a [u8] {
    let len = usize::from(raw.u16());
    raw.take(len)
}

/// Reads a string with a length prefix of one byte, at most to the end.
fn text<'a>(raw: &mut Cursor<'a>) -> &'a [u8] {
    let len = usize::from(raw.u8());
    raw.take(len)
}

/// Like [`text`], within `remaining` bytes of a record. `None` if the string exceeds them; its length is consumed nevertheless.
fn text_within<'a>(raw: &mut Cursor<'a>, remaining: &mut usize) -> Option<&'a [u8]> {
    *remaining = remaining.checked_sub(1)?;
    let len = usize::from(raw.u8());
    *remaining = remaining.checked_sub(len)?;
    Some(raw.take(len))
}

/// Reads the window blocks of a type bitmap (RFC 4034 §4.1.2).
fn bitmaps<'a>(raw: &mut Cursor<'a>, start: usize, len: usize) -> Vec<&'a [u8]> {
    let mut all = Vec::new();
    let mut remaining = len as i64 - (raw.pos() - start) as i64;
    while remaining > 0 && raw.remaining() > 0 {
        let size = usize::from(raw.u16() as u8);
        if size == 0 {
            break;
        }
        all.push(raw.take(size));
        remaining -= 2 + size as i64;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_base_64_are_padded() {
        assert_eq!(base64(b"\0\xfe\r\0"), "AP4NAA==");
        assert_eq!(base64(b"ab"), "YWI=");
        assert_eq!(base64(b"abc"), "YWJj");
    }

    #[test]
    fn networks_of_clients_are_padded_to_addresses() {
        let net = subnet(&[0, 1, 24, 0, 213, 61, 29]).unwrap();
        assert_eq!((net.family, net.address), ("v4", Addr::v4([213, 61, 29, 0])));
        assert!(subnet(&[0, 1, 33, 0, 1, 2, 3, 4, 5]).is_none());
        assert!(subnet(&[0, 1, 24, 0, 213]).is_none());
    }

    #[test]
    fn parameters_of_bindings_are_parsed_or_raw() {
        let all = parameters(b"\0\x01\0\x06\x02h2\x02h3\0\x03\0\x03\x01\xbb\0\0\x04\0\x09ab");
        let [alpn, port, cut] = &all[..] else { panic!("{all:?}") };
        assert_eq!(alpn.alpn, Some(vec![&b"h2"[..], b"h3"]));
        assert_eq!((port.p, port.raw), (None, Some(&b"\x01\xbb\0"[..])));
        assert_eq!(cut.raw, Some(&b"ab"[..]));
    }
}
