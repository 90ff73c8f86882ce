//! Messages after the version byte.

use gannet_base::Addr;

use crate::support::Bytes;

/// Where to: an address, a name, or both (version 4a).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Address.
    pub host: Option<Addr>,
    /// Name.
    pub name: Option<Vec<u8>>,
    /// Port.
    pub port: u16,
}

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It ends too early.
    Short,
    /// The reserved byte is not zero.
    Reserved(u8),
    /// The command is none.
    Command(u8),
}

/// A request of version 4.
pub fn request4(b: &mut Bytes<'_>) -> Result<Target, Malformed> {
    let mut read = || {
        b.u8()?; // command
        let port = b.u16()?;
        let addr: [u8; 4] = b.array()?;
        until_zero(b)?; // user
        let name = if addr[..3] == [0; 3] { Some(until_zero(b)?.to_vec()) } else { None };
        Some(Target { host: Some(Addr::v4(addr)), name, port })
    };
    read().ok_or(Malformed::Short)
}

fn until_zero<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let n = memchr::memchr(0, b.0)?;
    let text = b.take(n)?;
    b.u8()?;
    Some(text)
}

/// A reply of version 4: its status and where the server is bound.
pub fn reply4(b: &mut Bytes<'_>) -> Result<(u8, Target), Malformed> {
    let mut read = || {
        b.u8()?;
        let status = b.u8()?;
        let port = b.u16()?;
        Some((status, Target { host: Some(Addr::v4(b.array()?)), name: None, port }))
    };
    read().ok_or(Malformed::Short)
}

/// A client's methods to authenticate.
pub fn methods5(b: &mut Bytes<'_>) -> Result<(), Malformed> {
    let n = b.u8().ok_or(Malformed::Short)?;
    b.take(usize::from(n)).map(|_| ()).ok_or(Malformed::Short)
}

/// A request of version 5.
pub fn request5(b: &mut Bytes<'_>) -> Result<Target, Malformed> {
    let command = b.u8().ok_or(Malformed::Short)?;
    let reserved = b.u8().ok_or(Malformed::Short)?;
    let target = target5(b).ok_or(Malformed::Short)?;
    if reserved != 0 {
        return Err(Malformed::Reserved(reserved));
    }
    if !(1..=3).contains(&command) {
        return Err(Malformed::Command(command));
    }
    Ok(target)
}

/// A reply of version 5: its status and where the server is bound.
pub fn reply5(b: &mut Bytes<'_>) -> Result<(u8, Target), Malformed> {
    let mut read = || {
        let status = b.u8()?;
        b.u8()?;
        Some((status, target5(b)?))
    };
    read().ok_or(Malformed::Short)
}

fn target5(b: &mut Bytes<'_>) -> Option<Target> {
    let (host, name) = match b.u8()? {
        1 => (Some(Addr::v4(b.array()?)), None),
        3 => {
            let n = usize::from(b.u8()?);
            (None, Some(b.take(n)?.to_vec()))
        }
        4 => (Some(Addr::v6(b.array()?)), None),
        _ => return None,
    };
    Some(Target { host, name, port: b.u16()? })
}

/// A login with a password (RFC 1929), after its version: the user.
pub fn login<'a>(b: &mut Bytes<'a>) -> Result<&'a [u8], Malformed> {
    let mut read = || {
        let n = usize::from(b.u8()?);
        let user = b.take(n)?;
        let n = usize::from(b.u8()?);
        b.take(n)?;
        Some(user)
    };
    read().ok_or(Malformed::Short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_four() {
        let t = request4(&mut Bytes(b"\x01\x00\x50\x01\x02\x03\x04me\0")).unwrap();
        let want = Target { host: Some(Addr::v4([1, 2, 3, 4])), name: None, port: 80 };
        assert_eq!(t, want);
        let t = request4(&mut Bytes(b"\x01\x00\x50\0\0\0\x01\0a.example\0")).unwrap();
        assert_eq!(t.name, Some(b"a.example".to_vec()));
        assert_eq!(request4(&mut Bytes(b"\x01\x00\x50\0\0\0\x01\0a")), Err(Malformed::Short));
        assert_eq!(reply4(&mut Bytes(b"\x00\x5a\0\x01\0\0\0\0")).unwrap().0, 0x5a);
    }

    #[test]
    fn version_five() {
        let t = request5(&mut Bytes(b"\x01\0\x03\x01a\x01\xbb")).unwrap();
        assert_eq!(t, Target { host: None, name: Some(b"a".to_vec()), port: 443 });
        let bad = |d| request5(&mut Bytes(d)).err();
        assert_eq!(bad(b"\x01\x07\x03\x01a\x01\xbb"), Some(Malformed::Reserved(7)));
        assert_eq!(bad(b"\x09\0\x03\x01a\x01\xbb"), Some(Malformed::Command(9)));
        assert_eq!(bad(b"\x01\0\x02\x01a\x01\xbb"), Some(Malformed::Short));
        assert_eq!(login(&mut Bytes(b"\x02me\x01x")), Ok(&b"me"[..]));
    }
}
