//! FDDI: thirteen bytes of header and eight of LLC; the payload is assumed to be IP.

use super::Network;
use super::Step;
use crate::weird::Weird;

pub(super) const SOURCE: &str = "FDDI";
const LEN: usize = 13 + 8;

pub(super) fn step(data: &[u8]) -> Result<Step<'_>, Weird> {
    match data.split_at_checked(LEN) {
        Some((_, inner)) if !inner.is_empty() => Ok(Step::Network(Network::Ip(inner))),
        _ => Err(Weird::global("FDDI_analyzer_failed", SOURCE)),
    }
}

#[cfg(test)]
mod tests {
    use crate::Network;
    use crate::Scope;
    use crate::link;

    #[test]
    fn ip_after_the_headers() {
        assert_eq!(link(10, &[1; 25], 25).unwrap().network, Network::Ip(&[1; 4]));
        let e = link(10, &[1; 21], 21).unwrap_err();
        assert_eq!((e.name, e.scope), ("FDDI_analyzer_failed", Scope::Global));
    }
}
