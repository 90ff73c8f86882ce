//! Messages ([MS-NLMP] §2.2.1). Numbers are little-endian, offsets count from the message's start.
//!
//! [MS-NLMP]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-nlmp

use crate::support::Bytes;

/// Negotiated flags (§2.2.2.5).
const DOMAIN: u32 = 0x1000;
const WORKSTATION: u32 = 0x2000;
const TARGET: u32 = 0x4;
const TARGET_INFO: u32 = 0x0080_0000;
const VERSION: u32 = 0x0200_0000;

/// Length of the fixed part, where the payload begins.
const NEGOTIATE_LENGTH: u32 = 32;
const CHALLENGE_LENGTH: u32 = 48;
const AUTHENTICATE_LENGTH: u32 = 64;

/// Length of the version, if there is one before the payload's first value.
const VERSION_LENGTH: usize = 8;

/// Version of a system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Major and minor version.
    pub number: [u8; 2],
    /// Build.
    pub build: u16,
    /// Revision of the protocol.
    pub revision: u8,
}

/// What a client begins with; names in UTF-16 or, where the flags say so, in a code page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Negotiate<'a> {
    /// What it offers.
    pub flags: u32,
    /// Its domain.
    pub domain: Option<&'a [u8]>,
    /// Its name.
    pub workstation: Option<&'a [u8]>,
    /// Its system.
    pub version: Option<Version>,
}

/// The server's names, in UTF-16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Challenge<'a> {
    /// What it chose.
    pub flags: u32,
    /// The challenge.
    pub challenge: u64,
    /// Its name.
    pub target: Option<&'a [u8]>,
    /// Its system.
    pub version: Option<Version>,
    /// Whether the target describes itself: there is a list of attributes (TargetInfo).
    pub has_info: bool,
    /// Whether that list has a length, but no end mark.
    pub is_endless: bool,
    /// NetBIOS name of the domain.
    pub netbios_domain: Option<&'a [u8]>,
    /// DNS name of the domain.
    pub dns_domain: Option<&'a [u8]>,
    /// Whether authentication is constrained.
    pub constrained: Option<bool>,
    /// Its clock: 100 ns since 1601.
    pub timestamp: Option<u64>,
    /// Number of the machine.
    pub machine: Option<u64>,
    /// Name of the service.
    pub service: Option<&'a [u8]>,
    /// NetBIOS name of the computer.
    pub netbios_computer: Option<&'a [u8]>,
    /// DNS name of the computer.
    pub dns_computer: Option<&'a [u8]>,
    /// DNS name of the forest.
    pub dns_tree: Option<&'a [u8]>,
}

/// The client's names, in UTF-16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Authenticate<'a> {
    /// What was chosen.
    pub flags: u32,
    /// The encrypted session key.
    pub session_key: Option<&'a [u8]>,
    /// The client's system.
    pub version: Option<Version>,
    /// The answer to the challenge.
    pub response: Option<&'a [u8]>,
    /// Domain.
    pub domain: Option<&'a [u8]>,
    /// User.
    pub user: Option<&'a [u8]>,
    /// The client's computer.
    pub workstation: Option<&'a [u8]>,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The client begins.
    Negotiate(Negotiate<'a>),
    /// The server challenges.
    Challenge(Challenge<'a>),
    /// The client answers.
    Authenticate(Authenticate<'a>),
    /// Of a kind that is not known.
    Other,
}

/// Position of a value.
#[derive(Clone, Copy)]
struct Field {
    length: u16,
    offset: u32,
}

impl Field {
    fn read(b: &mut Bytes<'_>) -> Option<Self> {
        let length = b.u16_le()?;
        b.u16_le()?;
        Some(Self { length, offset: b.u32_le()? })
    }

    /// The value, in a payload that begins at `start`.
    fn value(self, payload: &[u8], start: u32) -> Option<&[u8]> {
        let at = self.offset.checked_sub(start)?;
        let mut b = Bytes(payload.get(usize::try_from(at).ok()?..)?);
        b.take(usize::from(self.length))
    }

    /// The value if it is not empty.
    fn some(self, payload: &[u8], start: u32) -> Option<Option<&[u8]>> {
        if self.length == 0 { Some(None) } else { self.value(payload, start).map(Some) }
    }
}

/// Reads the version, if there is one before all these values. `None`: it is cut short.
fn version(flags: u32, payload: &[u8], start: u32, fields: &[Field]) -> Option<Option<Version>> {
    if flags & VERSION == 0 || !fields.iter().all(|f| start < f.offset) {
        return Some(None);
    }
    let &[major, minor, a, b, _, _, _, revision] = payload.first_chunk::<VERSION_LENGTH>()?;
    let build = u16::from_le_bytes([a, b]);
    Some(Some(Version { number: [major, minor], build, revision }))
}

/// Reads a message. `None`: it is none.
pub fn parse(data: &[u8]) -> Option<Message<'_>> {
    let mut b = Bytes(data);
    b.take(8)?;
    Some(match b.u32_le()? {
        1 => {
            let flags = b.u32_le()?;
            let [domain, workstation] = [Field::read(&mut b)?, Field::read(&mut b)?];
            let payload = b.rest();
            let version = version(flags, payload, NEGOTIATE_LENGTH, &[domain, workstation])?;
            let mut negotiate = Negotiate { flags, version, ..Negotiate::default() };
            if flags & DOMAIN != 0 {
                negotiate.domain = Some(domain.value(payload, NEGOTIATE_LENGTH)?);
            }
            if flags & WORKSTATION != 0 {
                negotiate.workstation = Some(workstation.value(payload, NEGOTIATE_LENGTH)?);
            }
            Message::Negotiate(negotiate)
        }
        2 => {
            let target = Field::read(&mut b)?;
            let flags = b.u32_le()?;
            let number = u64::from_le_bytes(b.array()?);
            b.take(8)?;
            let info = Field::read(&mut b)?;
            let payload = b.rest();
            let version = version(flags, payload, CHALLENGE_LENGTH, &[target, info])?;
            let target = match flags & TARGET {
                0 => None,
                _ => Some(target.value(payload, CHALLENGE_LENGTH)?),
            };
            let mut challenge = Challenge::default();
            if flags & TARGET_INFO != 0 {
                // An offset counts modulo 65,536 here.
                let at = usize::from(info.offset.wrapping_sub(CHALLENGE_LENGTH) as u16);
                challenge = target_info(Bytes(payload.get(at..)?))?;
                challenge.has_info = true;
                challenge.is_endless &= info.length != 0;
            }
            let challenge = Challenge { flags, challenge: number, target, version, ..challenge };
            Message::Challenge(challenge)
        }
        3 => {
            let mut fields = [Field { length: 0, offset: 0 }; 6];
            for field in &mut fields {
                *field = Field::read(&mut b)?;
            }
            let [_, response, domain, user, workstation, key] = fields;
            let flags = b.u32_le()?;
            let payload = b.rest();
            let start = AUTHENTICATE_LENGTH;
            let version = version(flags, payload, start, &[domain, user, workstation, key])?;
            let authenticate = Authenticate {
                flags,
                version,
                response: response.some(payload, start)?,
                domain: domain.some(payload, start)?,
                user: user.some(payload, start)?,
                workstation: workstation.some(payload, start)?,
                session_key: key.some(payload, start)?,
            };
            Message::Authenticate(authenticate)
        }
        _ => Message::Other,
    })
}

/// A list of attributes (§2.2.2.1), up to its end mark or the last byte.
fn target_info<'a>(mut b: Bytes<'a>) -> Option<Challenge<'a>> {
    let mut c = Challenge { is_endless: true, ..Challenge::default() };
    while !b.is_empty() {
        let id = b.u16_le()?;
        let length = usize::from(b.u16_le()?);
        match id {
            0 => {
                c.is_endless = false;
                break;
            }
            1 => c.netbios_computer = Some(b.take(length)?),
            3 => c.dns_computer = Some(b.take(length)?),
            5 => c.dns_tree = Some(b.take(length)?),
            2 => c.netbios_domain = Some(b.take(length)?),
            4 => c.dns_domain = Some(b.take(length)?),
            9 => c.service = Some(b.take(length)?),
            6 => c.constrained = Some(b.u32_le()? & 1 != 0),
            7 => c.timestamp = Some(u64::from_le_bytes(b.array()?)),
            8 => {
                b.take(8)?;
                let custom = b.u32_le()? & 1 != 0;
                let rest = b.take(if custom { 8 } else { 4 })?;
                let machine = rest.last_chunk().map_or(0, |m| u32::from_le_bytes(*m));
                c.machine = Some(machine.into());
            }
            10 => drop(b.take(2)?),
            _ => return None,
        }
    }
    Some(c)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// The client begins; asks for nothing.
    pub(crate) fn negotiate() -> Vec<u8> {
        [&b"NTLMSSP\0\x01\0\0\0\x07\x82\x08\0"[..], &[0; 16]].concat()
    }

    /// A server `SRV` in `example.org`.
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

    /// The user `u` of the domain `D`, from no named computer.
    pub(crate) fn authenticate() -> Vec<u8> {
        let mut m = b"NTLMSSP\0\x03\0\0\0".to_vec();
        m.extend_from_slice(&[0; 16]);
        m.extend_from_slice(&[2, 0, 2, 0, 64, 0, 0, 0, 2, 0, 2, 0, 66, 0, 0, 0]);
        m.extend_from_slice(&[0; 16]);
        m.extend_from_slice(b"\x01\0\0\0D\0u\0");
        m
    }

    #[test]
    fn a_login() {
        let plain = Negotiate { flags: 0x0008_8207, ..Negotiate::default() };
        assert_eq!(parse(&negotiate()), Some(Message::Negotiate(plain)));
        let m = challenge();
        let Some(Message::Challenge(c)) = parse(&m) else { panic!("no challenge") };
        assert_eq!(c.netbios_computer, Some(&wide("SRV")[..]));
        assert_eq!(c.dns_computer, Some(&wide("srv.example.org")[..]));
        assert_eq!(c.dns_tree, Some(&wide("example.org")[..]));
        let m = authenticate();
        let Some(Message::Authenticate(a)) = parse(&m) else { panic!("no answer") };
        assert_eq!((a.domain, a.user, a.workstation), (Some(&b"D\0"[..]), Some(&b"u\0"[..]), None));
    }

    #[test]
    fn values_outside() {
        let mut m = authenticate();
        m[32] = 63;
        assert_eq!(parse(&m), None, "before the payload");
        m[32] = 67;
        assert_eq!(parse(&m), None, "beyond the end");
        assert_eq!(parse(b"NTLMSSP\0\x09\0\0\0"), Some(Message::Other));
        assert_eq!(parse(b"NTLMSSP\0\x01\0\0\0"), None);
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
