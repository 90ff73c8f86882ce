//! How much of the beginning of a connection is looked at for analyzers.

/// Bytes of both sides that are looked at; the chunk that goes beyond still counts as a whole.
pub const BUFFER: usize = 1024;
/// Chunks of both sides that are looked at.
pub const CHUNKS: u8 = 100;
/// Bytes that scripts may set at the most.
pub(crate) const MOST_BYTES: usize = 16_383;
/// Chunks that scripts may set at the most.
pub(crate) const MOST_CHUNKS: u8 = 253;

/// How much of the beginning of a connection is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetectionLimits {
    bytes: usize,
    chunks: u8,
}

impl Default for DetectionLimits {
    fn default() -> Self {
        Self { bytes: BUFFER, chunks: CHUNKS }
    }
}

impl DetectionLimits {
    /// Sets the number of bytes, up to [`MOST_BYTES`].
    pub(crate) fn set_bytes(&mut self, most: usize) {
        self.bytes = most.min(MOST_BYTES);
    }

    /// Sets the number of chunks, up to [`MOST_CHUNKS`].
    pub(crate) fn set_chunks(&mut self, most: u64) {
        self.chunks = u8::try_from(most).unwrap_or(u8::MAX).min(MOST_CHUNKS);
    }

    /// Whether this number of bytes is more than is looked at.
    #[inline]
    pub(crate) fn exceeded_by_bytes(self, bytes: usize) -> bool {
        bytes > self.bytes
    }

    /// Whether this number of chunks is more than is looked at.
    #[inline]
    pub(crate) fn exceeded_by_chunks(self, chunks: u8) -> bool {
        chunks > self.chunks
    }
}
