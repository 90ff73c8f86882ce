//! Pool of reusable buffers.

use super::dictionary::Texts;

/// Buffers of the columns of a row group, reused for the next one: a new allocation would cause page faults.
#[derive(Default)]
pub(super) struct BufferPool {
    bytes: Vec<Vec<u8>>,
    u32s: Vec<Vec<u32>>,
    i64s: Vec<Vec<i64>>,
}

impl BufferPool {
    /// Returns an empty buffer with capacity for `len` bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        take_buffer(&mut self.bytes, len)
    }

    pub(super) fn u32s(&mut self, len: usize) -> Vec<u32> {
        take_buffer(&mut self.u32s, len)
    }

    pub(super) fn i64s(&mut self, len: usize) -> Vec<i64> {
        take_buffer(&mut self.i64s, len)
    }

    /// Returns empty [`Texts`] with capacity for `texts` texts of `bytes` bytes in total.
    pub(super) fn texts(&mut self, texts: usize, bytes: usize) -> Texts {
        Texts { bytes: self.bytes(bytes), ends: self.u32s(texts) }
    }

    /// Returns a buffer to the pool.
    pub(super) fn put_bytes(&mut self, buffer: Vec<u8>) {
        put(&mut self.bytes, buffer);
    }

    pub(super) fn put_u32s(&mut self, buffer: Vec<u32>) {
        put(&mut self.u32s, buffer);
    }

    pub(super) fn put_i64s(&mut self, buffer: Vec<i64>) {
        put(&mut self.i64s, buffer);
    }

    pub(super) fn put_texts(&mut self, buffer: Texts) {
        self.put_bytes(buffer.bytes);
        self.put_u32s(buffer.ends);
    }
}

/// Maximum total capacity of the pooled buffers of one element type, in bytes. Buffers grow while they are in use;
/// without a limit each would reach the size of the largest column.
const MAX_POOLED: usize = 8 << 20;

fn put<T>(to: &mut Vec<Vec<T>>, buffer: Vec<T>) {
    if buffer.capacity() == 0 {
        return;
    }
    to.push(buffer);
    let bytes = |to: &[Vec<T>]| to.iter().map(|v| v.capacity() * size_of::<T>()).sum::<usize>();
    while bytes(to) > MAX_POOLED {
        let largest = (0..to.len()).max_by_key(|at| to[*at].capacity());
        if let Some(at) = largest {
            to.swap_remove(at);
        }
    }
}

/// Takes the smallest buffer of sufficient capacity, so that short columns do not occupy large buffers; the largest
/// one if none suffices.
fn take_buffer<T>(from: &mut Vec<Vec<T>>, len: usize) -> Vec<T> {
    let sufficient = (0..from.len()).filter(|at| from[*at].capacity() >= len);
    let found = sufficient.min_by_key(|at| from[*at].capacity());
    let found = found.or_else(|| (0..from.len()).max_by_key(|at| from[*at].capacity()));
    let mut buffer = found.map(|at| from.swap_remove(at)).unwrap_or_default();
    buffer.clear();
    buffer.reserve(len);
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit holds for buffers that grow while they are in use.
    #[test]
    fn pooled_capacity_is_limited() {
        let mut pool = BufferPool::default();
        for round in 0..1_000 {
            let mut take_buffer: Vec<_> = (0..40).map(|n| pool.bytes(n * 1_000)).collect();
            for (n, buffer) in take_buffer.iter_mut().enumerate() {
                buffer.reserve((n * 77_777 + round * 131) % 1_000_000);
            }
            take_buffer.into_iter().for_each(|buffer| pool.put_bytes(buffer));
            pool.put_bytes(Vec::new());
            assert!(pool.bytes.len() <= 40);
            assert!(pool.bytes.iter().map(Vec::capacity).sum::<usize>() <= MAX_POOLED);
        }
        assert!(!pool.bytes.is_empty());
    }
}
