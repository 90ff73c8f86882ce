//! FDDI: thirteen bytes of header and eight of LLC; the payload is assumed to be IP.

use super::Network;
use super::Step;
use crate::error::Error;
use crate::error::Layer;

const LEN: usize = 13 + 8;

pub(super) fn step(data: &[u8]) -> Result<Step<'_>, Error> {
    match data.split_at_checked(LEN) {
        Some((_, inner)) if !inner.is_empty() => Ok(Step::Network(Network::Ip(inner))),
        _ => Err(Error::Truncated(Layer::Fddi)),
    }
}

#[cfg(test)]
mod tests {
    use crate::Error;
    use crate::Layer;
    use crate::Network;
    use crate::link;

    #[test]
    fn ip_after_the_headers() {
        assert_eq!(link(10, &[1; 25], 25).unwrap().network, Network::Ip(&[1; 4]));
        assert_eq!(link(10, &[1; 21], 21).unwrap_err(), Error::Truncated(Layer::Fddi));
    }
}
