//! IEEE 802.2 LLC, SNAP, and Novell's raw IEEE 802.3.

use super::Network;
use super::Step;
use super::network;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Offset of the destination service access point in an LLC header.
const DESTINATION: usize = 0;
/// Length of OUI and protocol after the LLC header.
const SNAP_LEN: usize = 5;

/// Length of the LLC header, `None` if it is truncated: unnumbered frames have one control byte,
/// the others two.
fn header_len(data: &[u8]) -> Option<usize> {
    data.get(2).map(|control| if control & 3 == 3 { 3 } else { 4 })
}

/// No service access point is dissected: the whole frame is returned.
pub(super) fn step(data: &[u8]) -> Result<Step<'_>, Error> {
    match header_len(data) {
        Some(len) if len <= data.len() => {
            let ethertype = u32::from(bytes::u8_at(data, DESTINATION));
            Ok(Step::Network(Network::Other { ethertype, data }))
        }
        _ => Err(Error::Truncated(Layer::Llc)),
    }
}

pub(super) fn step_snap(data: &[u8]) -> Result<Step<'_>, Error> {
    let Some(llc) = header_len(data) else {
        return Err(Error::TruncatedSnapLlc);
    };
    if data.len() < llc + SNAP_LEN {
        return Err(Error::Truncated(Layer::Snap));
    }
    let kind = bytes::u16_at(data, llc + 3);
    let inner = bytes::from(data, llc + SNAP_LEN);
    // Protocol numbers are EtherTypes only for OUI 0.
    let organisation = bytes::u24_at(data, llc);
    if organisation != 0 {
        let ethertype = organisation << 16 | u32::from(kind);
        return Ok(Step::Network(Network::Other { ethertype, data: inner }));
    }
    Ok(network(kind, inner))
}

/// The payload is IPX, which is not dissected.
pub(super) fn novell() -> Error {
    Error::NotDissected(Layer::Novell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llc_is_not_dissected() {
        // An unknown protocol is returned with its number and the bytes from the LLC header on.
        let other = step(&[0x42, 0x43, 3, 0]);
        let data = &[0x42, 0x43, 3, 0];
        assert!(
            matches!(other, Ok(Step::Network(n)) if n == Network::Other { ethertype: 0x42, data })
        );
        assert_eq!(step(&[0x42, 0x42, 0]).err(), Some(Error::Truncated(Layer::Llc)));
        assert_eq!(step(&[0x42, 0x42]).err(), Some(Error::Truncated(Layer::Llc)));
    }

    #[test]
    fn snap_leads_to_ip_in_organisation_zero() {
        let snap = |oui: u8| [0xaa, 0xaa, 3, 0, 0, oui, 8, 0, 0x45];
        let d = snap(0);
        assert!(matches!(step_snap(&d), Ok(Step::Network(Network::Ip(&[0x45])))));
        let d = snap(0x0c);
        let other = step_snap(&d);
        assert!(matches!(other, Ok(Step::Network(Network::Other { ethertype: 0xc_0800, .. }))));
        assert_eq!(step_snap(&d[..7]).err(), Some(Error::Truncated(Layer::Snap)));
        assert_eq!(step_snap(&d[..2]).err(), Some(Error::TruncatedSnapLlc));
    }
}
