//! Linux "cooked" captures (LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2).

use super::Frame;
use super::Step;
use super::mac;
use super::network;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Field offsets of a header version.
struct Layout {
    len: usize,
    src: usize,
    protocol: usize,
}

const V1: Layout = Layout { len: 16, src: 6, protocol: 14 };
const V2: Layout = Layout { len: 20, src: 12, protocol: 0 };

pub(super) fn step<'a>(data: &'a [u8], frame: &mut Frame<'a>) -> Result<Step<'a>, Error> {
    read(data, frame, &V1).ok_or(Error::Truncated(Layer::Sll))
}

pub(super) fn step_2<'a>(data: &'a [u8], frame: &mut Frame<'a>) -> Result<Step<'a>, Error> {
    read(data, frame, &V2).ok_or(Error::Truncated(Layer::Sll2))
}

fn read<'a>(data: &'a [u8], frame: &mut Frame<'a>, layout: &Layout) -> Option<Step<'a>> {
    if data.len() <= layout.len {
        return None;
    }
    // These headers have no destination address.
    frame.src_mac = mac(data, layout.src);
    Some(network(bytes::u16_at(data, layout.protocol), bytes::from(data, layout.len)))
}

#[cfg(test)]
mod tests {
    use crate::Error;
    use crate::Layer;
    use crate::Network;
    use crate::link;

    #[test]
    fn both_versions() {
        let mut one = vec![0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0];
        assert_eq!(link(113, &one, 16).unwrap_err(), Error::Truncated(Layer::Sll));
        one.push(0x45);
        let v = link(113, &one, 17).unwrap();
        assert_eq!((v.network, v.src_mac), (Network::Ip(&[0x45]), Some([1, 2, 3, 4, 5, 6])));
        let mut two = vec![0x86, 0xdd, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0];
        assert_eq!(link(276, &two, 20).unwrap_err(), Error::Truncated(Layer::Sll2));
        two.push(0x60);
        let v = link(276, &two, 21).unwrap();
        assert_eq!((v.network, v.src_mac), (Network::Ip(&[0x60]), Some([1, 2, 3, 4, 5, 6])));
    }
}
