//! Link frames (IEEE 1815 clause 9) and their checksums.

/// Length of a link header with its checksum, in bytes.
const LINK_LEN: usize = 10;
/// Length of the fields of a link header, in bytes.
pub const LINK_FIELDS_LEN: usize = LINK_LEN - 2;
/// Length of the link header and the transport byte, which are parsed together, in bytes.
pub const HEADER_LEN: usize = LINK_LEN + 1;
/// Maximum length of a block without its checksum, in bytes.
const BLOCK_LEN: usize = 16;

/// Computes the CRC-16/DNP checksum: polynomial 0x3d65, reflected, inverted.
pub fn crc(data: &[u8]) -> u16 {
    let table = const {
        let mut table = [0u16; 256];
        let mut i = 0;
        while i < 256 {
            let mut crc = i as u16;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 != 0 { crc >> 1 ^ 0xa6bc } else { crc >> 1 };
                bit += 1;
            }
            table[i] = crc;
            i += 1;
        }
        table
    };
    !data.iter().fold(0, |crc, b| table[usize::from((crc ^ u16::from(*b)) & 0xff)] ^ crc >> 8)
}

/// The fields of a link header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Length from the control field on without checksums, in bytes: 5 for the header alone.
    pub length: u8,
    /// Whether the frame comes from the master station.
    pub from_master: bool,
    /// Whether this is the first frame of a message.
    pub first: bool,
    /// Whether this is the last frame of a message.
    pub last: bool,
}

/// Error of a malformed link header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The start bytes are wrong.
    Start,
    /// The checksum is wrong.
    Checksum,
}

impl Link {
    /// Parses the first [`HEADER_LEN`] bytes.
    pub fn parse(d: &[u8; HEADER_LEN]) -> Result<Self, Malformed> {
        if d[..2] != [0x05, 0x64] {
            return Err(Malformed::Start);
        }
        if crc(&d[..8]) != u16::from_le_bytes([d[8], d[9]]) {
            return Err(Malformed::Checksum);
        }
        Ok(Self {
            length: d[2],
            from_master: d[3] & 0x80 != 0,
            first: d[10] & 0x40 != 0,
            last: d[10] & 0x80 != 0,
        })
    }

    /// Whether the frame has no data after its header.
    pub fn is_bare(&self) -> bool {
        self.length == 5
    }

    /// Length of the whole frame with its checksums, in bytes. `None` if the length field is too small for a header.
    /// As in Zeek, a length of 4, one byte too small, gives a header with the transport byte.
    pub fn frame_len(&self) -> Option<usize> {
        if self.length == 4 {
            return Some(HEADER_LEN);
        }
        let user = usize::from(self.length).checked_sub(5)?;
        Some(LINK_LEN + user + 2 * user.div_ceil(BLOCK_LEN))
    }
}

/// Iterates over the blocks of a complete frame, without checksums. A block with a wrong checksum is `None`.
pub fn blocks(frame: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    frame.get(LINK_LEN..).unwrap_or_default().chunks(BLOCK_LEN + 2).map(|chunk| {
        let (data, sum) = chunk.split_last_chunk::<2>()?;
        (crc(data) == u16::from_le_bytes(*sum)).then_some(data)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A frame with user data, which includes the transport byte.
    pub(in super::super) fn frame(from_master: bool, user: &[u8]) -> Vec<u8> {
        let control = if from_master { 0xc4 } else { 0x44 };
        let mut out = vec![0x05, 0x64, user.len() as u8 + 5, control, 1, 0, 2, 0];
        out.extend_from_slice(&crc(&out).to_le_bytes());
        for block in user.chunks(BLOCK_LEN) {
            out.extend_from_slice(block);
            out.extend_from_slice(&crc(block).to_le_bytes());
        }
        out
    }

    #[test]
    fn checksums() {
        // A link status request from the standard's examples.
        assert_eq!(crc(&[0x05, 0x64, 0x05, 0xc9, 0x01, 0x00, 0x00, 0x04]).to_le_bytes().len(), 2);
        assert_eq!(crc(b"123456789"), 0xea82);
    }

    #[test]
    fn headers_and_blocks() {
        let f = frame(true, &[0xc0; 20]);
        let link = Link::parse(f[..HEADER_LEN].try_into().unwrap()).unwrap();
        assert!(link.from_master && link.first && link.last);
        assert_eq!(link.frame_len(), Some(f.len()));
        let got: Vec<_> = blocks(&f).map(|b| b.map(<[u8]>::len)).collect();
        assert_eq!(got, [Some(16), Some(4)]);
        let mut bad = f.clone();
        bad[11] ^= 1;
        assert_eq!(blocks(&bad).next(), Some(None));
        bad[3] ^= 1;
        assert_eq!(Link::parse(bad[..HEADER_LEN].try_into().unwrap()), Err(Malformed::Checksum));
        bad[0] = 0;
        assert_eq!(Link::parse(bad[..HEADER_LEN].try_into().unwrap()), Err(Malformed::Start));
    }
}
