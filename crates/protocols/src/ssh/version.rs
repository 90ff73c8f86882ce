/// The protocol version that a version line announces (RFC 4253 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 1.x.
    One,
    /// 1.99: compatible with both.
    Both,
    /// 2.x.
    Two,
}

impl Version {
    /// Parses a line like `SSH-2.0-OpenSSH_9.9`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        match line.get(4)? {
            b'2' => Some(Self::Two),
            b'1' if line.get(6..8) == Some(b"99") => Some(Self::Both),
            b'1' => Some(Self::One),
            _ => None,
        }
    }

    /// The version that both sides use: 1 or 2. `None` if they have none in common.
    pub fn agree(a: Option<Self>, b: Option<Self>) -> Option<u8> {
        match (a?, b?) {
            (Self::Two, Self::One) | (Self::One, Self::Two) => None,
            (Self::One, _) | (_, Self::One) => Some(1),
            _ => Some(2),
        }
    }
}

/// Reason why no `version` is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disagreement {
    /// One side supports only version 1, the other only version 2.
    Mismatch,
    /// A line is too short to contain a version.
    TooShort,
}

/// The `version` column, from both lines. It differs from [`Version::agree`]: two sides of 1.99
/// give 1 if the server's line is 1.99.
pub(super) fn logged_version(client: &[u8], server: &[u8]) -> Result<Option<u64>, Disagreement> {
    if client.len() <= 4 || server.len() <= 4 {
        return Err(Disagreement::TooShort);
    }
    let is_99 = |line: &[u8]| line.get(6..8) == Some(b"99");
    match (client[4], server[4]) {
        (b'1', b'2') if is_99(client) => Ok(Some(2)),
        (b'2', b'1') if is_99(server) => Ok(Some(2)),
        (b'1', b'2') | (b'2', b'1') => Err(Disagreement::Mismatch),
        (b'1', b'1') if is_99(server) && is_99(client) => Ok(Some(2)),
        (b'1', b'1') => Ok(Some(1)),
        (b'2', b'2') => Ok(Some(2)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement() {
        let v = Version::parse;
        assert_eq!(v(b"SSH-2.0-x"), Some(Version::Two));
        assert_eq!(v(b"SSH-1.99-x"), Some(Version::Both));
        assert_eq!(v(b"SSH-1.5-x"), Some(Version::One));
        assert_eq!(v(b"SSH-"), None);
        let agree = |a, b| Version::agree(v(a), v(b));
        assert_eq!(agree(b"SSH-2.0", b"SSH-1.99"), Some(2));
        assert_eq!(agree(b"SSH-1.99", b"SSH-1.99"), Some(2));
        assert_eq!(agree(b"SSH-1.5", b"SSH-1.99"), Some(1));
        assert_eq!(agree(b"SSH-1.5", b"SSH-2.0"), None);
        assert_eq!(agree(b"SSH-x", b"SSH-2.0"), None);
    }

    #[test]
    fn the_column() {
        assert_eq!(logged_version(b"SSH-1.5-a", b"SSH-1.99-b"), Ok(Some(1)));
        assert_eq!(logged_version(b"SSH-1.99-a", b"SSH-2.0-b"), Ok(Some(2)));
        assert_eq!(logged_version(b"SSH-1.5-a", b"SSH-2.0-b"), Err(Disagreement::Mismatch));
        assert_eq!(logged_version(b"SSH-", b"SSH-2.0-b"), Err(Disagreement::TooShort));
        assert_eq!(logged_version(b"SSH-3.0", b"SSH-2.0-b"), Ok(None));
    }
}
