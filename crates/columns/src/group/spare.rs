//! Memory that is used again.

use super::dictionary::Texts;

/// Memory of the columns of a row group, for those of the next one: to allocate it again means page faults.
#[derive(Default)]
pub(super) struct Spare {
    bytes: Vec<Vec<u8>>,
    numbers: Vec<Vec<u32>>,
    longs: Vec<Vec<i64>>,
}

impl Spare {
    /// Memory for about that many bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        taken(&mut self.bytes, len)
    }

    pub(super) fn numbers(&mut self, len: usize) -> Vec<u32> {
        taken(&mut self.numbers, len)
    }

    pub(super) fn longs(&mut self, len: usize) -> Vec<i64> {
        taken(&mut self.longs, len)
    }

    /// The same for texts of that many bytes.
    pub(super) fn texts(&mut self, texts: usize, bytes: usize) -> Texts {
        Texts { bytes: self.bytes(bytes), ends: self.numbers(texts) }
    }

    /// Takes memory back.
    pub(super) fn keep_bytes(&mut self, memory: Vec<u8>) {
        self.bytes.push(memory);
    }

    pub(super) fn keep_numbers(&mut self, memory: Vec<u32>) {
        self.numbers.push(memory);
    }

    pub(super) fn keep_longs(&mut self, memory: Vec<i64>) {
        self.longs.push(memory);
    }

    pub(super) fn keep_texts(&mut self, memory: Texts) {
        self.keep_bytes(memory.bytes);
        self.keep_numbers(memory.ends);
    }
}

/// The least memory that is enough, so that short columns do not hold what long ones need.
fn taken<T>(from: &mut Vec<Vec<T>>, len: usize) -> Vec<T> {
    let enough = (0..from.len()).filter(|at| from[*at].capacity() >= len);
    let found = enough.min_by_key(|at| from[*at].capacity());
    let found = found.or_else(|| (0..from.len()).max_by_key(|at| from[*at].capacity()));
    let mut memory = found.map(|at| from.swap_remove(at)).unwrap_or_default();
    memory.clear();
    memory.reserve(len);
    memory
}
