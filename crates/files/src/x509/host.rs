//! Whether a certificate speaks for a host (RFC 2818 section 3.1, RFC 6125 section 6.4).

use super::Certificate;

/// The names of a certificate that hosts are held against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Alternative names; where there are any, or an extension that should hold them, the common
    /// name does not count.
    pub(crate) alternative: Option<Vec<Vec<u8>>>,
    /// The last common name of the subject.
    pub(crate) common: Option<Vec<u8>>,
}

impl Certificate {
    /// The name in the certificate that stands for `host`, maybe with a wildcard.
    pub fn matching_name(&self, host: &[u8]) -> Option<&[u8]> {
        let matching = |name: &&Vec<u8>| name_matches(host, name);
        match &self.names.alternative {
            Some(names) => names.iter().find(matching),
            None => self.names.common.iter().find(matching),
        }
        .map(Vec::as_slice)
        .filter(|name| !name.is_empty())
    }

    /// Whether the certificate speaks for `host`.
    pub fn matches_host(&self, host: &[u8]) -> bool {
        self.matching_name(host).is_some()
    }
}

/// Whether a name in a certificate stands for a host: the very same bytes, or a wildcard that
/// ends the leftmost of at least three labels.
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
    fn wildcards_stand_for_one_label() {
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
        assert_eq!(certificate.matching_name(b"a.example.com"), Some(&b"a.example.com"[..]));
        certificate.names.alternative = Some(Vec::new());
        assert!(!certificate.matches_host(b"a.example.com"));
    }
}
