//! Helpers shared by the tests of several modules.

use std::io;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use gannet_base::Time;

use crate::Compression;
use crate::Error;
use crate::Format;
use crate::LinkType;
use crate::Packet;
use crate::Reader;
use crate::Stream;
use crate::WriteOptions;
use crate::Writer;

/// A packet that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) nanos: i64,
    pub(crate) wire_len: u32,
    pub(crate) link_type: u16,
    pub(crate) interface: u32,
    pub(crate) data: Vec<u8>,
}

impl Owned {
    pub(crate) fn new(nanos: i64, data: &[u8]) -> Self {
        let wire_len = data.len() as u32;
        Self { nanos, wire_len, link_type: 1, interface: 0, data: data.to_vec() }
    }

    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet {
            time: Time::from_nanos(self.nanos),
            wire_len: self.wire_len,
            link_type: LinkType(self.link_type),
            interface: self.interface,
            format: Format::Pcap,
            number: 0,
            data: &self.data,
        }
    }
}

impl From<Packet<'_>> for Owned {
    fn from(p: Packet<'_>) -> Self {
        Self {
            nanos: p.time.as_nanos(),
            wire_len: p.wire_len,
            link_type: p.link_type.0,
            interface: p.interface,
            data: p.data.to_vec(),
        }
    }
}

/// A sink whose bytes can be read afterwards.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compresses bytes.
pub(crate) fn packed(bytes: &[u8], compression: Compression) -> Vec<u8> {
    let sink = Shared::default();
    let mut encoder = compression.encoder(Box::new(sink.clone())).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap();
    sink.take()
}

/// A capture of `packets` in the format that `name` selects.
pub(crate) fn written(name: &str, packets: &[Packet<'_>]) -> Vec<u8> {
    written_with(name, packets, WriteOptions::default())
}

pub(crate) fn written_with(name: &str, packets: &[Packet<'_>], options: WriteOptions) -> Vec<u8> {
    let sink = Shared::default();
    let mut writer = Writer::to_write(Box::new(sink.clone()), name, options);
    for packet in packets {
        writer.write(packet).unwrap();
    }
    writer.finish().unwrap();
    sink.take()
}

/// All packets of a reader and the error at its end; checks that packet numbers increase and that
/// the reader returns nothing after the error.
pub(crate) fn drained(mut reader: Reader) -> (Vec<Owned>, Option<Error>) {
    let mut all = Vec::new();
    loop {
        match reader.next_batch() {
            Ok(Some(batch)) => {
                assert!(!batch.is_empty() && batch.len() <= crate::BATCH_PACKETS);
                for packet in batch {
                    assert_eq!(packet.number, all.len() as u64 + 1);
                    all.push(packet.into());
                }
                assert_eq!(reader.packets(), all.len() as u64);
            }
            Ok(None) => return (all, None),
            Err(e) => {
                assert!(matches!(reader.next_batch(), Ok(None)), "an error ends a reader");
                return (all, Some(e));
            }
        }
    }
}

/// All packets and all errors of a stream.
pub(crate) fn drained_stream(mut stream: Stream) -> (Vec<Owned>, Vec<Error>) {
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    loop {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                for packet in batch {
                    assert_eq!(packet.number, all.len() as u64 + 1);
                    all.push(Owned::from(packet));
                }
            }
            Ok(None) => return (all, errors),
            Err(e) => errors.push(e),
        }
    }
}

/// A directory that is removed after the test.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gannet-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
