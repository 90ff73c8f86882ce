//! PPP over Ethernet sessions (RFC 2516).

use super::Step;
use super::ppp;
use crate::bytes;
use crate::weird::Weird;

pub(super) const SOURCE: &str = "PPPOE";
/// Bytes of the header, and of header and PPP protocol.
const HEADER_LEN: usize = 6;
const LEN: usize = 8;

mod field {
    pub(super) const PAYLOAD_LEN: usize = 4;
    pub(super) const PROTOCOL: usize = 6;
}

pub(super) fn step<'a>(data: &'a [u8], odd: &mut impl FnMut(Weird)) -> Result<Step<'a>, Weird> {
    if data.len() <= LEN {
        return Err(Weird::packet("truncated_pppoe_header", SOURCE));
    }
    let stated = usize::from(bytes::u16_at(data, field::PAYLOAD_LEN));
    let captured = data.len() - HEADER_LEN;
    if stated < captured {
        odd(Weird::packet("pppoe_extra_data_after_payload", SOURCE));
    } else if stated > captured {
        odd(Weird::global("pppoe_truncated_payload", SOURCE));
    }
    let inner = bytes::cut(bytes::from(data, LEN), stated.saturating_sub(LEN - HEADER_LEN));
    Ok(ppp::ip_only(bytes::u16_at(data, field::PROTOCOL), inner))
}

#[cfg(test)]
mod tests {
    use crate::Network;
    use crate::link_with;

    fn session(len: u8, inner: &[u8]) -> (Vec<u8>, Vec<&'static str>) {
        let mut f = vec![0; 12];
        f.extend_from_slice(&[0x88, 0x64, 0x11, 0, 0, 1, 0, len, 0, 0x21]);
        f.extend_from_slice(inner);
        let mut names = Vec::new();
        let v = link_with(1, &f, f.len() as u32, 0, &mut |w| names.push(w.name)).unwrap();
        let Network::Ip(ip) = v.network else { panic!("no IP") };
        (ip.to_vec(), names)
    }

    #[test]
    fn lengths_that_agree_or_not() {
        assert_eq!(session(5, &[0x45, 1, 2]), (vec![0x45, 1, 2], vec![]));
        let extra = vec!["pppoe_extra_data_after_payload"];
        assert_eq!(session(3, &[0x45, 1, 2]), (vec![0x45], extra.clone()));
        assert_eq!(session(0, &[0x45, 1, 2]), (vec![], extra));
        let cut = vec!["pppoe_truncated_payload"];
        assert_eq!(session(9, &[0x45, 1, 2]), (vec![0x45, 1, 2], cut));
    }
}
