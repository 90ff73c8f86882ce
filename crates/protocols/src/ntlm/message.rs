//! Messages ([MS-NLMP] §2.2.1). Integers are little-endian; offsets are relative to the start of
//! the message.
//!
//! [MS-NLMP]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-nlmp

use crate::support::OutOfBound;
use crate::support::Record;
use crate::support::RecordFault;

/// Negotiated flags (§2.2.2.5).
const DOMAIN: u32 = 0x1000;
const WORKSTATION: u32 = 0x2000;
const TARGET: u32 = 0x4;
const TARGET_INFO: u32 = 0x0080_0000;
const VERSION: u32 = 0x0200_0000;

/// Lengths of the fixed parts, in bytes; the payload follows.
const NEGOTIATE_LENGTH: u32 = 32;
const CHALLENGE_LENGTH: u32 = 48;
const AUTHENTICATE_LENGTH: u32 = 64;

/// Length of the version in bytes, if there is one before the payload's first value.
const VERSION_LENGTH: usize = 8;

/// Version of an operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Major and minor version.
    pub number: [u8; 2],
    /// Build number.
    pub build: u16,
    /// Revision of NTLMSSP.
    pub revision: u8,
}

/// NEGOTIATE_MESSAGE of a client; its names are in UTF-16, or in an OEM code page if the flags say
/// so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Negotiate<'a> {
    /// Flags that the client offers.
    pub flags: u32,
    /// The client's domain.
    pub domain: Option<&'a [u8]>,
    /// The client's name.
    pub workstation: Option<&'a [u8]>,
    /// The client's operating system.
    pub version: Option<Version>,
}

/// CHALLENGE_MESSAGE of a server; its names are in UTF-16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Challenge<'a> {
    /// Flags that the server chose.
    pub flags: u32,
    /// The server's challenge.
    pub challenge: u64,
    /// The server's name.
    pub target: Option<&'a [u8]>,
    /// The server's operating system.
    pub version: Option<Version>,
    /// Whether there is a list of attributes of the server (TargetInfo).
    pub has_info: bool,
    /// Whether that list has no end mark (MsvAvEOL).
    pub is_unterminated: bool,
    /// NetBIOS name of the domain.
    pub netbios_domain: Option<&'a [u8]>,
    /// DNS name of the domain.
    pub dns_domain: Option<&'a [u8]>,
    /// Whether authentication is constrained.
    pub constrained: Option<bool>,
    /// The server's clock, in units of 100 ns since 1601.
    pub timestamp: Option<u64>,
    /// Machine ID.
    pub machine: Option<u64>,
    /// Service principal name (SPN) of the target.
    pub service: Option<&'a [u8]>,
    /// NetBIOS name of the computer.
    pub netbios_computer: Option<&'a [u8]>,
    /// DNS name of the computer.
    pub dns_computer: Option<&'a [u8]>,
    /// DNS name of the forest.
    pub dns_tree: Option<&'a [u8]>,
}

/// AUTHENTICATE_MESSAGE of a client; its names are in UTF-16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Authenticate<'a> {
    /// Negotiated flags.
    pub flags: u32,
    /// The encrypted session key.
    pub session_key: Option<&'a [u8]>,
    /// The client's operating system.
    pub version: Option<Version>,
    /// The response to the challenge.
    pub response: Option<&'a [u8]>,
    /// The user's domain.
    pub domain: Option<&'a [u8]>,
    /// User name.
    pub user: Option<&'a [u8]>,
    /// The client's computer name.
    pub workstation: Option<&'a [u8]>,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// NEGOTIATE_MESSAGE.
    Negotiate(Negotiate<'a>),
    /// CHALLENGE_MESSAGE.
    Challenge(Challenge<'a>),
    /// AUTHENTICATE_MESSAGE.
    Authenticate(Authenticate<'a>),
    /// A message of an unknown type.
    Other,
}

/// Length and offset of a value in the payload, in bytes.
#[derive(Clone, Copy)]
struct Field {
    length: u16,
    offset: u32,
}

impl Field {
    /// Reads the field at offset `at` of the fixed part.
    fn at(fixed: &[u8], at: usize) -> Self {
        let length = word(fixed, at) as u16;
        Self { length, offset: word(fixed, at + 4) }
    }

    /// The value, in a payload that begins at `start`.
    fn value(self, payload: &[u8], start: u32) -> Result<&[u8], OutOfBound> {
        let padding = self.offset.wrapping_sub(start) as i32;
        let mut r = Record::new("NTLM_String", payload);
        r.at = payload_offset(r.record, payload, padding)?;
        r.upto("string", usize::from(self.length))
    }

    /// The value, or `None` if it is empty.
    fn non_empty(self, payload: &[u8], start: u32) -> Result<Option<&[u8]>, OutOfBound> {
        if self.length == 0 { Ok(None) } else { self.value(payload, start).map(Some) }
    }
}

/// The four-byte integer at offset `at`, zero-extended if fewer bytes remain.
fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    for (to, from) in word.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    u32::from_le_bytes(word)
}

/// Offset in the payload after a padding. Zeek reports its end and the number of bytes after it.
fn payload_offset(record: &'static str, payload: &[u8], padding: i32) -> Result<usize, OutOfBound> {
    let left = (payload.len() as i32).wrapping_sub(padding);
    usize::try_from(padding).ok().filter(|at| *at <= payload.len()).ok_or(OutOfBound::short_of(
        record,
        "pad1",
        padding.into(),
        left.into(),
    ))
}

/// Parses the version, if there is space for one before all these values.
fn version(
    flags: u32,
    payload: &[u8],
    start: u32,
    fields: &[Field],
) -> Result<Option<Version>, OutOfBound> {
    if flags & VERSION == 0 || !fields.iter().all(|f| start < f.offset) {
        return Ok(None);
    }
    let version = Record::new("NTLM_Version", payload).all(VERSION_LENGTH)?;
    let build = word(version, 2) as u16;
    Ok(Some(Version { number: [version[0], version[1]], build, revision: version[7] }))
}

/// Parses a message.
pub fn parse(data: &[u8]) -> Result<Message<'_>, RecordFault> {
    let mut token = Record::new("NTLM_SSP_Token", data);
    token.upto("signature", 8)?;
    let kind = word(token.upto("msg_type", 4)?, 0);
    Ok(match kind {
        1 => Message::Negotiate(negotiate(token.rest())?),
        2 => Message::Challenge(challenge(token.rest())?),
        3 => Message::Authenticate(authenticate(token.rest())?),
        _ => Message::Other,
    })
}

fn negotiate(data: &[u8]) -> Result<Negotiate<'_>, RecordFault> {
    let mut r = Record::new("NTLM_Negotiate", data);
    let fixed = r.upto("workstation_fields", 20)?;
    let (flags, payload) = (word(fixed, 0), r.rest());
    let [domain, workstation] = [4, 12].map(|at| Field::at(fixed, at));
    let version = version(flags, payload, NEGOTIATE_LENGTH, &[domain, workstation])?;
    let mut negotiate = Negotiate { flags, version, ..Negotiate::default() };
    if flags & DOMAIN != 0 {
        negotiate.domain = Some(domain.value(payload, NEGOTIATE_LENGTH)?);
    }
    if flags & WORKSTATION != 0 {
        negotiate.workstation = Some(workstation.value(payload, NEGOTIATE_LENGTH)?);
    }
    Ok(negotiate)
}

fn challenge(data: &[u8]) -> Result<Challenge<'_>, RecordFault> {
    let mut r = Record::new("NTLM_Challenge", data);
    let fixed = r.upto("target_info_fields", 36)?;
    let (flags, payload) = (word(fixed, 8), r.rest());
    let number = u64::from(word(fixed, 12)) | u64::from(word(fixed, 16)) << 32;
    let [target, info] = [0, 28].map(|at| Field::at(fixed, at));
    let version = version(flags, payload, CHALLENGE_LENGTH, &[target, info])?;
    let target = match flags & TARGET {
        0 => None,
        _ => Some(target.value(payload, CHALLENGE_LENGTH)?),
    };
    let mut challenge = Challenge::default();
    if flags & TARGET_INFO != 0 {
        // Here an offset counts modulo 65,536.
        let padding = i32::from(info.offset.wrapping_sub(CHALLENGE_LENGTH) as u16);
        let at = payload_offset("NTLM_AV_Pair_Sequence", payload, padding)?;
        challenge = target_info(&payload[at..])?;
        challenge.has_info = true;
        challenge.is_unterminated &= info.length != 0;
    }
    Ok(Challenge { flags, challenge: number, target, version, ..challenge })
}

fn authenticate(data: &[u8]) -> Result<Authenticate<'_>, RecordFault> {
    let mut r = Record::new("NTLM_Authenticate", data);
    let fixed = r.upto("flags", 52)?;
    let [response, domain, user, workstation, key] =
        [8, 16, 24, 32, 40].map(|at| Field::at(fixed, at));
    let (flags, payload, start) = (word(fixed, 48), r.rest(), AUTHENTICATE_LENGTH);
    let version = version(flags, payload, start, &[domain, user, workstation, key])?;
    Ok(Authenticate {
        flags,
        version,
        response: response.non_empty(payload, start)?,
        domain: domain.non_empty(payload, start)?,
        user: user.non_empty(payload, start)?,
        workstation: workstation.non_empty(payload, start)?,
        session_key: key.non_empty(payload, start)?,
    })
}

/// Parses a list of attributes (§2.2.2.1), up to its end mark or the last byte.
fn target_info(mut data: &[u8]) -> Result<Challenge<'_>, RecordFault> {
    const RECORD: &str = "NTLM_AV_Pair";
    let mut c = Challenge { is_unterminated: true, ..Challenge::default() };
    while !data.is_empty() {
        let mut r = Record::new(RECORD, data);
        let head = word(r.upto("length", 4)?, 0);
        let length = (head >> 16) as usize;
        match head & 0xffff {
            0 => {
                c.is_unterminated = false;
                break;
            }
            1 => c.netbios_computer = Some(r.upto("nb_computer_name", length)?),
            2 => c.netbios_domain = Some(r.upto("nb_domain_name", length)?),
            3 => c.dns_computer = Some(r.upto("dns_computer_name", length)?),
            4 => c.dns_domain = Some(r.upto("dns_domain_name", length)?),
            5 => c.dns_tree = Some(r.upto("dns_tree_name", length)?),
            6 => c.constrained = Some(word(r.upto("av_flags", 4)?, 0) & 1 != 0),
            7 => {
                let time = r.upto("timestamp", 8)?;
                c.timestamp = Some(u64::from(word(time, 0)) | u64::from(word(time, 4)) << 32);
            }
            8 => c.machine = Some(machine(&mut r)?),
            9 => c.service = Some(r.upto("target_name", length)?),
            10 => drop(r.upto("channel_bindings", 2)?),
            index => return Err(RecordFault::Case { record: RECORD, index }),
        }
        data = r.rest();
    }
    Ok(c)
}

/// The machine ID in a single-host attribute.
fn machine(pair: &mut Record<'_>) -> Result<u64, OutOfBound> {
    let mut r = Record::new("NTLM_Single_Host", pair.rest());
    if word(r.upto("data_present", 12)?, 8) & 1 != 0 {
        r.upto("custom_data", 4)?;
    }
    let number = word(r.upto("machine_id", 4)?, 0);
    pair.at += r.at;
    Ok(number.into())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// A negotiate message without flags.
    pub(crate) fn negotiate() -> Vec<u8> {
        [&b"NTLMSSP\0\x01\0\0\0\x07\x82\x08\0"[..], &[0; 16]].concat()
    }

    /// A challenge of the server `SRV` in `example.org`.
    pub(crate) fn challenge() -> Vec<u8> {
        let mut info = Vec::new();
        for (id, text) in [(2, "DOM"), (1, "SRV"), (3, "srv.example.org"), (5, "example.org")] {
            let text = wide(text);
            info.extend_from_slice(&[id, 0, text.len() as u8, 0]);
            info.extend_from_slice(&text);
        }
        info.extend_from_slice(&[0; 4]);
        let n = info.len() as u8;
        let mut m = b"NTLMSSP\0\x02\0\0\0\0\0\0\0\0\0\0\0\x01\0\x80\0".to_vec();
        m.extend_from_slice(&[0; 16]);
        m.extend_from_slice(&[n, 0, n, 0, 48, 0, 0, 0]);
        m.extend_from_slice(&info);
        m
    }

    /// An authenticate message of user `u` in domain `D`, without a workstation name.
    pub(crate) fn authenticate() -> Vec<u8> {
        let mut m = b"NTLMSSP\0\x03\0\0\0".to_vec();
        m.extend_from_slice(&[0; 16]);
        m.extend_from_slice(&[2, 0, 2, 0, 64, 0, 0, 0, 2, 0, 2, 0, 66, 0, 0, 0]);
        m.extend_from_slice(&[0; 16]);
        m.extend_from_slice(b"\x01\0\0\0D\0u\0");
        m
    }

    fn wrong(data: &[u8]) -> String {
        crate::support::error_text(parse(data).unwrap_err())
    }

    #[test]
    fn what_is_cut_short() {
        let (n, c, a) = (negotiate(), challenge(), authenticate());
        assert_eq!(wrong(&n[..7]), "out_of_bound: NTLM_SSP_Token:signature: 8 > 7");
        assert_eq!(wrong(&n[..9]), "out_of_bound: NTLM_SSP_Token:msg_type: 12 > 9");
        let fields = "out_of_bound: NTLM_Negotiate:workstation_fields: 20 > 19";
        assert_eq!(wrong(&n[..31]), fields);
        let fields = "out_of_bound: NTLM_Challenge:target_info_fields: 36 > 0";
        assert_eq!(wrong(&c[..12]), fields);
        assert_eq!(wrong(&a[..63]), "out_of_bound: NTLM_Authenticate:flags: 52 > 51");
        assert_eq!(wrong(&a[..67]), "out_of_bound: NTLM_String:string: 4 > 3");
        assert_eq!(wrong(&a[..64]), "out_of_bound: NTLM_String:string: 2 > 0");
        assert_eq!(wrong(&a[..65]), "out_of_bound: NTLM_String:string: 2 > 1");
        assert_eq!(wrong(&c[..50]), "out_of_bound: NTLM_AV_Pair:length: 4 > 2");
        assert_eq!(wrong(&c[..57]), "out_of_bound: NTLM_AV_Pair:nb_domain_name: 10 > 9");
    }

    #[test]
    fn positions_that_do_not_fit() {
        let mut a = authenticate();
        a[32..36].copy_from_slice(&[60, 0, 0, 0]);
        assert_eq!(wrong(&a), "out_of_bound: NTLM_String:pad1: -4 > 8");
        a[32..36].copy_from_slice(&[80, 0, 0, 0]);
        assert_eq!(wrong(&a), "out_of_bound: NTLM_String:pad1: 16 > -12");
        let mut c = challenge();
        c[44] = 0xff;
        assert_eq!(
            wrong(&c),
            format!(
                "out_of_bound: NTLM_AV_Pair_Sequence:pad1: 207 > {}",
                c.len() as i64 - 48 - 207
            )
        );
        c[44] = 48;
        c[48] = 11;
        assert_eq!(wrong(&c), "invalid index for case: NTLM_AV_Pair: 11");
        c.truncate(48);
        c.extend_from_slice(&[8, 0, 0, 0]);
        c.extend_from_slice(&[1; 14]);
        assert_eq!(wrong(&c), "out_of_bound: NTLM_Single_Host:custom_data: 16 > 14");
        c[60] = 0;
        assert_eq!(wrong(&c), "out_of_bound: NTLM_Single_Host:machine_id: 16 > 14");
    }

    #[test]
    fn a_login() {
        let plain = Negotiate { flags: 0x0008_8207, ..Negotiate::default() };
        assert_eq!(parse(&negotiate()), Ok(Message::Negotiate(plain)));
        let m = challenge();
        let Ok(Message::Challenge(c)) = parse(&m) else { panic!("no challenge") };
        assert_eq!(c.netbios_computer, Some(&wide("SRV")[..]));
        assert_eq!(c.dns_computer, Some(&wide("srv.example.org")[..]));
        assert_eq!(c.dns_tree, Some(&wide("example.org")[..]));
        let m = authenticate();
        let Ok(Message::Authenticate(a)) = parse(&m) else { panic!("no answer") };
        assert_eq!((a.domain, a.user, a.workstation), (Some(&b"D\0"[..]), Some(&b"u\0"[..]), None));
    }

    #[test]
    fn values_outside() {
        let mut m = authenticate();
        m[32] = 63;
        assert!(parse(&m).is_err(), "before the payload");
        m[32] = 67;
        assert!(parse(&m).is_err(), "beyond the end");
        assert_eq!(parse(b"NTLMSSP\0\x09\0\0\0"), Ok(Message::Other));
        assert!(parse(b"NTLMSSP\0\x01\0\0\0").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(kind in 0u8..4, data in prop::collection::vec(any::<u8>(), 0..120)) {
            let message = [&b"NTLMSSP\0"[..], &[kind, 0, 0, 0], &data].concat();
            let _ = parse(&message);
            let _ = parse(&data);
        }
    }
}
