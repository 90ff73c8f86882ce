//! Limits of protocol detection at the beginning of a connection.

/// Default number of bytes of both sides that are examined; the chunk that exceeds it is still
/// examined completely.
pub const DEFAULT_BYTES: usize = 1024;
/// Default number of chunks of both sides that are examined.
pub const DEFAULT_CHUNKS: u8 = 100;
/// Maximum number of bytes that scripts may set.
pub(crate) const MAX_BYTES: usize = 16_383;
/// Maximum number of chunks that scripts may set.
pub(crate) const MAX_CHUNKS: u8 = 253;

/// Limits of protocol detection at the beginning of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetectionLimits {
    bytes: usize,
    chunks: u8,
}

impl Default for DetectionLimits {
    fn default() -> Self {
        Self { bytes: DEFAULT_BYTES, chunks: DEFAULT_CHUNKS }
    }
}

impl DetectionLimits {
    /// Sets the number of bytes, up to [`MAX_BYTES`].
    pub(crate) fn set_bytes(&mut self, limit: usize) {
        self.bytes = limit.min(MAX_BYTES);
    }

    /// Sets the number of chunks, up to [`MAX_CHUNKS`].
    pub(crate) fn set_chunks(&mut self, limit: u64) {
        self.chunks = u8::try_from(limit).unwrap_or(u8::MAX).min(MAX_CHUNKS);
    }

    /// Whether a number of bytes exceeds the limit.
    #[inline]
    pub(crate) fn exceeded_by_bytes(self, bytes: usize) -> bool {
        bytes > self.bytes
    }

    /// Whether a number of chunks exceeds the limit.
    #[inline]
    pub(crate) fn exceeded_by_chunks(self, chunks: u8) -> bool {
        chunks > self.chunks
    }
}
