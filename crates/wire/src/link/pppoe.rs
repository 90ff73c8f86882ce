//! PPP over Ethernet sessions (RFC 2516).

use super::Step;
use super::ppp;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Length of the header, and of header and PPP protocol.
const HEADER_LEN: usize = 6;
const LEN: usize = 8;

mod field {
    pub(super) const SESSION: usize = 2;
    pub(super) const PAYLOAD_LEN: usize = 4;
    pub(super) const PROTOCOL: usize = 6;
}

pub(super) fn step<'a>(
    data: &'a [u8],
    on_fault: &mut impl FnMut(Error),
) -> Result<Step<'a>, Error> {
    if data.len() <= LEN {
        return Err(Error::Truncated(Layer::Pppoe));
    }
    let stated = usize::from(bytes::u16_at(data, field::PAYLOAD_LEN));
    let captured = data.len() - HEADER_LEN;
    if stated < captured {
        on_fault(Error::PppoeTooLong);
    } else if stated > captured {
        on_fault(Error::PppoeTooShort);
    }
    let inner = bytes::cut(bytes::from(data, LEN), stated.saturating_sub(LEN - HEADER_LEN));
    Ok(ppp::ip_only(bytes::u16_at(data, field::PROTOCOL), inner))
}

/// The session id of a complete header.
pub(super) fn session(data: &[u8]) -> Option<u16> {
    (data.len() >= HEADER_LEN).then(|| bytes::u16_at(data, field::SESSION))
}

#[cfg(test)]
mod tests {
    use crate::Error;
    use crate::Network;
    use crate::link_with;

    fn session(len: u8, inner: &[u8]) -> (Vec<u8>, Vec<Error>) {
        let mut f = vec![0; 12];
        f.extend_from_slice(&[0x88, 0x64, 0x11, 0, 0, 1, 0, len, 0, 0x21]);
        f.extend_from_slice(inner);
        let mut faults = Vec::new();
        let v = link_with(1, &f, f.len() as u32, 0, &mut |w| faults.push(w)).unwrap();
        let Network::Ip(ip) = v.network else { panic!("no IP") };
        (ip.to_vec(), faults)
    }

    #[test]
    fn lengths_that_agree_or_not() {
        assert_eq!(session(5, &[0x45, 1, 2]), (vec![0x45, 1, 2], vec![]));
        let extra = vec![Error::PppoeTooLong];
        assert_eq!(session(3, &[0x45, 1, 2]), (vec![0x45], extra.clone()));
        assert_eq!(session(0, &[0x45, 1, 2]), (vec![], extra));
        let cut = vec![Error::PppoeTooShort];
        assert_eq!(session(9, &[0x45, 1, 2]), (vec![0x45, 1, 2], cut));
    }

    #[test]
    fn the_session_of_a_frame() {
        let header = [0x11, 0, 0x02, 0x3a, 0, 3, 0, 0x21, 0x45];
        let frame = |ethertypes: &[u8], len: usize| {
            let mut frame = vec![0; 12];
            frame.extend_from_slice(ethertypes);
            frame.extend_from_slice(&header[..len]);
            crate::pppoe_session(1, &frame)
        };
        assert_eq!(frame(&[0x88, 0x64], 9), Some(0x023a));
        let tagged = [0x81, 0, 0, 7, 0x88, 0x64];
        assert_eq!(frame(&tagged, 9), Some(0x023a));
        assert_eq!((frame(&tagged, 6), frame(&tagged, 5)), (Some(0x023a), None));
        assert_eq!(frame(&[0x08, 0], 9), None);
    }
}
