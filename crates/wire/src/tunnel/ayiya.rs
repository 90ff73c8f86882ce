//! AYIYA, "anything in anything" (draft-massar-v6ops-ayiya).

use super::Inner;
use super::Refusal;
use crate::bytes;
use crate::error::Layer;
use crate::protocol;

/// Length of the header before identity and signature.
const MIN_LEN: usize = 8;
/// Operation "forward": a packet follows.
const FORWARD: u8 = 1;

mod field {
    /// Identity length as a power of two, and identity type.
    pub(super) const IDENTITY: usize = 0;
    /// Signature length in words, and hash method.
    pub(super) const SIGNATURE: usize = 1;
    /// Authentication method and operation.
    pub(super) const OPERATION: usize = 2;
    pub(super) const NEXT: usize = 3;
}

/// Parses a UDP payload as AYIYA.
///
/// # Errors
/// A violation for a truncated header, [`Error::EmptyTunnel`](crate::Error::EmptyTunnel) if nothing follows it, and
/// [`Refusal::Ignored`] for operations other than forwarding.
pub fn ayiya(data: &[u8]) -> Result<Inner<'_>, Refusal<'_>> {
    let truncated = Refusal::violation("Truncated AYIYA", &[]);
    if data.len() < MIN_LEN {
        return Err(truncated);
    }
    let identity = 1usize << (bytes::u8_at(data, field::IDENTITY) >> 4);
    let signature = usize::from(bytes::u8_at(data, field::SIGNATURE) >> 4) * 4;
    let Some(inner) = data.get(MIN_LEN + identity + signature..) else { return Err(truncated) };
    if bytes::u8_at(data, field::OPERATION) & 0x0f != FORWARD {
        return Err(Refusal::Ignored);
    }
    if inner.is_empty() {
        return Err(Refusal::empty(Layer::Ayiya));
    }
    Ok(match bytes::u8_at(data, field::NEXT) {
        protocol::IPV4 | protocol::IPV6 => Inner::Ip(inner),
        other => Inner::Other { protocol: u16::from(other), data: inner },
    })
}

/// Whether a UDP payload on any port looks like AYIYA: a forward operation with a SHA-1 signature
/// of five words that was made with a shared secret.
pub fn looks_like_ayiya(data: &[u8]) -> bool {
    data.get(1..3) == Some(&[0x52, 0x11])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn packet(operation: u8, next: u8, inner: &[u8]) -> Vec<u8> {
        let mut p = vec![0x41, 0x52, 0x10 | operation, next, 0, 0, 0, 0];
        p.extend_from_slice(&[0; 16 + 20]);
        p.extend_from_slice(inner);
        p
    }

    #[test]
    fn forwarded_packets() {
        let p = packet(1, 41, &[0x60]);
        assert!(looks_like_ayiya(&p));
        assert_eq!(ayiya(&p), Ok(Inner::Ip(&[0x60])));
        assert_eq!(ayiya(&packet(1, 59, &[9])).unwrap().data(), &[9]);
        assert_eq!(ayiya(&packet(0, 59, &[9])), Err(Refusal::Ignored));
    }

    #[test]
    fn cut_and_empty_packets() {
        let p = packet(1, 41, &[]);
        let error = Error::EmptyTunnel(Layer::Ayiya);
        assert_eq!(ayiya(&p), Err(Refusal::Faulty { error, confirmed: true }));
        for len in 0..p.len() {
            assert!(matches!(ayiya(&p[..len]), Err(Refusal::Violation { .. })));
        }
    }
}
