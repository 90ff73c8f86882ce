//! Whether a certificate is valid for a host (RFC 2818 section 3.1, RFC 6125 section 6.4).

use std::borrow::Cow;

use super::Certificate;
use super::extensions::hosts;

/// The names of a certificate with which hosts are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Alternative names, encoded. If there are any, or an extension that does not parse, the
    /// common name is ignored.
    pub(crate) alternative: Option<Vec<u8>>,
    /// The last common name of the subject.
    pub(crate) common: Option<Vec<u8>>,
}

impl Certificate {
    /// Whether the certificate is valid for `host`, possibly through a wildcard.
    pub fn matches_host(&self, host: &[u8]) -> bool {
        self.name_of_host(host).is_some()
    }

    /// The name that makes the certificate valid for `host`.
    pub fn name_of_host(&self, host: &[u8]) -> Option<Cow<'_, [u8]>> {
        // An empty host matches no name.
        if host.is_empty() {
            return None;
        }
        match &self.names.alternative {
            Some(names) => hosts(names).find(|name| name_matches(host, name)),
            None => {
                let common = self.names.common.as_deref()?;
                name_matches(host, common).then_some(Cow::Borrowed(common))
            }
        }
    }

    /// Whether the extension of alternative names does not parse.
    pub fn has_broken_names(&self) -> bool {
        self.names.alternative.as_ref().is_some_and(Vec::is_empty)
    }
}

/// Whether a name in a certificate matches a host: it is equal, or has at least three labels, the
/// leftmost of which ends with a wildcard.
fn name_matches(host: &[u8], name: &[u8]) -> bool {
    if host == name {
        return true;
    }
    let position = |bytes: &[u8], wanted: u8| bytes.iter().position(|&byte| byte == wanted);
    let (Some(wildcard), Some(name_dot), Some(host_dot)) =
        (position(name, b'*'), position(name, b'.'), position(host, b'.'))
    else {
        return false;
    };
    wildcard + 1 == name_dot
        && name[name_dot + 1..].contains(&b'.')
        && host[host_dot..] == name[name_dot..]
        && host.get(..wildcard) == Some(&name[..wildcard])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_one_label() {
        assert!(name_matches(b"a.example.com", b"a.example.com"));
        assert!(name_matches(b"a.example.com", b"*.example.com"));
        assert!(name_matches(b"abc.example.com", b"ab*.example.com"));
        assert!(!name_matches(b"b.a.example.com", b"*.example.com"));
        assert!(!name_matches(b"example.com", b"*.com"));
        assert!(!name_matches(b"a.example.com", b"*a.example.com"));
        assert!(!name_matches(b"a.example.com", b"b*.example.com"));
        assert!(!name_matches(b"A.example.com", b"a.example.com"));
        assert!(!name_matches(b"", b"*.example.com"));
    }

    #[test]
    fn alternative_names_shadow_the_common_name() {
        let mut certificate = Certificate::default();
        certificate.names.common = Some(b"a.example.com".to_vec());
        assert!(certificate.matches_host(b"a.example.com"));
        assert!(!certificate.has_broken_names());
        certificate.names.alternative = Some(Vec::new());
        assert!(!certificate.matches_host(b"a.example.com") && certificate.has_broken_names());
        certificate.names.alternative = Some(b"\x30\x08\x81\x01m\x82\x03b.c".to_vec());
        assert!(certificate.matches_host(b"b.c") && !certificate.has_broken_names());
        assert_eq!(certificate.name_of_host(b"b.c").as_deref(), Some(&b"b.c"[..]));
        assert!(!certificate.matches_host(b"m") && !certificate.matches_host(b""));
    }
}
