use proptest::prelude::*;

use super::*;
use crate::Compression::{Gzip, Lz4, Xz, Zstd};
use crate::test::Dir;
use crate::test::Owned;
use crate::test::drained;
use crate::test::packed;
use crate::test::written;

fn sample(n: usize) -> Vec<Owned> {
    (0..n).map(|i| Owned::new(i as i64 * 1_000_000_007, &vec![i as u8; i % 90])).collect()
}

fn file_of(name: &str, packets: &[Owned]) -> Vec<u8> {
    let packets: Vec<_> = packets.iter().map(Owned::packet).collect();
    written(name, &packets)
}

fn read(bytes: &[u8]) -> Result<(Vec<Owned>, Option<Error>), Error> {
    Reader::from_read(Box::new(Cursor::new(bytes.to_vec())), "test").map(drained)
}

/// Incompressible bytes, so that compressed files are not tiny.
fn noise(n: usize) -> Vec<u8> {
    let mut state = 1_u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(n)
    .collect()
}

#[test]
fn mapped_and_streamed_are_the_same() {
    let dir = Dir::new("mapped");
    for name in ["a.pcap", "a.pcapng"] {
        let packets = sample(5_000);
        let bytes = file_of(name, &packets);
        let path = dir.file(name, &bytes);
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.bytes_total(), Some(bytes.len() as u64));
        assert!(reader.meter.is_none(), "mapped");
        let (mapped, error) = drained(reader);
        assert!(error.is_none());
        assert_eq!(mapped, packets);
        assert_eq!(read(&bytes).unwrap().0, packets);
        let reader = Reader::open_by(&path, Access::Read).unwrap();
        assert_eq!(reader.bytes_total(), Some(bytes.len() as u64));
        assert!(reader.meter.is_some() && reader.batch().bytes().map().is_none(), "not mapped");
        assert!(reader.batch().bytes().len() <= bytes.len() + 1, "no larger buffer than the file");
        let (read, error) = drained(reader);
        assert!(error.is_none());
        assert_eq!(read, packets);
    }
}

#[test]
fn compressed_files_are_recognised_by_content() {
    let dir = Dir::new("packed");
    let packets = sample(3_000);
    let bytes = file_of("x.pcap", &packets);
    for compression in [Gzip, Zstd, Xz, Lz4] {
        let mut packed = packed(&bytes, compression);
        let path = dir.file("misnamed.pcap", &packed);
        let reader = Reader::open_by(&path, Access::Read).unwrap();
        assert_eq!(reader.compression(), Some(compression));
        assert_eq!(drained(reader).0, packets, "{compression:?}");
        let mut reader = Reader::open(&path).unwrap();
        assert_eq!(reader.compression(), Some(compression));
        assert_eq!(reader.bytes_total(), Some(packed.len() as u64));
        let first = reader.next_batch().unwrap().unwrap().get(1).map(Owned::from);
        assert_eq!(first.as_ref(), Some(&packets[1]));
        let (all, error) = read(&packed).unwrap();
        assert!(error.is_none(), "{compression:?}");
        assert_eq!(all, packets, "{compression:?}");

        // Files joined by cat, the second one without its file header.
        let more: Vec<u8> = bytes[crate::pcap::HEADER..].to_vec();
        packed.extend(self::packed(&more, compression));
        let (all, error) = read(&packed).unwrap();
        assert!(error.is_none(), "{compression:?}: {error:?}");
        assert_eq!(all.len(), 6_000, "{compression:?}");
    }
}

#[test]
fn double_compression_is_rejected() {
    let bytes = packed(&packed(&file_of("x.pcap", &sample(2)), Gzip), Zstd);
    assert!(matches!(read(&bytes), Err(Error::Unsupported { .. })));
}

#[test]
fn truncation_at_any_byte_keeps_complete_packets() {
    for name in ["c.pcap", "c.pcapng"] {
        let packets = sample(12);
        let bytes = file_of(name, &packets);
        let mut ends = Vec::new();
        for cut in 0..bytes.len() {
            match read(&bytes[..cut]) {
                Ok((all, error)) => {
                    assert_eq!(all, packets[..all.len()], "{name} cut at {cut}");
                    match error {
                        None => ends.push(cut),
                        Some(Error::Cut { packet, offset, .. }) => {
                            assert_eq!(packet, all.len() as u64 + 1);
                            assert!(offset < cut as u64);
                        }
                        Some(e) => panic!("{name} cut at {cut}: {e}"),
                    }
                }
                Err(Error::NotACapture { .. }) => assert!(cut < 12),
                Err(e) => assert!(e.is_partial() && cut < 24, "{name} cut at {cut}: {e}"),
            }
        }
        // A file may end between records. The pcapng headers before these packets are two blocks.
        let blocks = if name == "c.pcap" { 12 } else { 13 };
        assert_eq!(ends.len(), blocks, "{name}: {ends:?}");
    }
}

#[test]
fn truncation_of_compressed_data_is_detected() {
    let packets: Vec<_> = (0..40).map(|i| Owned::new(i, &noise(50))).collect();
    let bytes = file_of("x.pcap", &packets);
    for compression in [Gzip, Zstd, Xz, Lz4] {
        let packed = packed(&bytes, compression);
        for cut in 8..packed.len() {
            match read(&packed[..cut]) {
                Ok((all, error)) => {
                    assert_eq!(all, packets[..all.len()]);
                    let error = error.map(|e| e.is_partial());
                    assert_eq!(error, Some(true), "{compression:?} cut at {cut}");
                }
                Err(e) => assert!(e.is_partial(), "{compression:?} cut at {cut}: {e}"),
            }
        }
    }
}

#[test]
fn damage_is_reported_with_its_offset_after_earlier_packets() {
    let packets = sample(3);
    let mut bytes = file_of("d.pcap", &packets);
    // The third record starts after the header and records of 16 + 0 and 16 + 1 bytes.
    let third = 24 + 16 + 17;
    bytes[third + 8..third + 12].fill(0xff);
    let (all, error) = read(&bytes).unwrap();
    assert_eq!(all, packets[..2]);
    assert_eq!(
        error.unwrap().to_string(),
        "test: damaged at packet 3, byte 57: a record has an invalid length of 4294967295 bytes; \
         the packets before it were read"
    );
}

#[test]
fn a_length_beyond_the_input_takes_no_memory() {
    let mut bytes = file_of("m.pcap", &sample(2));
    bytes[24 + 8..24 + 12].copy_from_slice(&(200_u32 << 20).to_le_bytes());
    let mut reader = Reader::from_read(Box::new(Cursor::new(bytes)), "m").unwrap();
    let error = reader.next_batch().map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Cut { packet: 1, offset: 24, .. }));
    let error = error.to_string();
    assert!(error.starts_with("m: cut short in packet 1, byte 24: "), "{error}");
    assert!(error.ends_with("; no packet was read"), "{error}");
}

#[test]
fn packets_longer_than_any_buffer() {
    let packets = [Owned::new(1, &noise(10)), Owned::new(2, &noise(5 << 20))];
    let (all, error) = read(&file_of("big.pcapng", &packets)).unwrap();
    assert!(all == packets && error.is_none());
}

#[test]
fn other_files_are_described() {
    for (bytes, what) in [
        (&b""[..], "an empty file"),
        (b"hello, world\n", "text"),
        (b"\x7fELF\x02\x01\x01", "a program"),
        (&[0xd4, 0xc3, 0xb2], "other data"),
    ] {
        let found = match read(bytes) {
            Err(Error::NotACapture { found, .. }) => found,
            other => panic!("{other:?}"),
        };
        assert_eq!(found, what);
    }
    let snoop = read(b"snoop\0\0\0\0\0\0\x02\0\0\0\x04").unwrap_err();
    assert!(snoop.to_string().contains("editcap"), "{snoop}");
    let missing = Reader::open("/nonexistent/x.pcap").unwrap_err();
    assert!(matches!(missing, Error::Io { .. }));
    assert!(matches!(Reader::open("/"), Err(Error::Io { .. })));
}

#[test]
fn an_input_that_fails_is_no_damage() {
    struct Broken(Cursor<Vec<u8>>);
    impl Read for Broken {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buf)? {
                0 => Err(io::Error::other("unplugged")),
                n => Ok(n),
            }
        }
    }
    let packets = sample(3);
    let bytes = file_of("x.pcap", &packets);
    for bytes in [bytes.clone(), packed(&bytes, Gzip)[..50].to_vec()] {
        let broken = Broken(Cursor::new(bytes));
        let (all, error) = drained(Reader::from_read(Box::new(broken), "b").unwrap());
        assert_eq!(all, packets[..all.len()]);
        assert!(matches!(error, Some(Error::Io { .. })), "{error:?}");
    }
}

proptest! {
    #[test]
    fn flipped_bytes_never_panic(
        ng in any::<bool>(),
        packed_as in 0..5_usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..6),
    ) {
        let name = if ng { "f.pcapng" } else { "f.pcap" };
        let mut bytes = file_of(name, &sample(30));
        if let Some(c) = [Gzip, Zstd, Xz, Lz4].get(packed_as) {
            bytes = packed(&bytes, *c);
        }
        for (at, flip) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
        }
        if let Ok((all, _)) = read(&bytes) {
            prop_assert!(all.len() < 10_000);
        }
    }
}
