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
        keep(&mut self.bytes, memory);
    }

    pub(super) fn keep_numbers(&mut self, memory: Vec<u32>) {
        keep(&mut self.numbers, memory);
    }

    pub(super) fn keep_longs(&mut self, memory: Vec<i64>) {
        keep(&mut self.longs, memory);
    }

    pub(super) fn keep_texts(&mut self, memory: Texts) {
        self.keep_bytes(memory.bytes);
        self.keep_numbers(memory.ends);
    }
}

/// Most bytes of one kind that are kept. Columns grow beyond what was taken for them, so that in the end each would
/// have the size of the largest.
const MOST: usize = 8 << 20;

fn keep<T>(to: &mut Vec<Vec<T>>, memory: Vec<T>) {
    if memory.capacity() == 0 {
        return;
    }
    to.push(memory);
    let bytes = |to: &[Vec<T>]| to.iter().map(|v| v.capacity() * size_of::<T>()).sum::<usize>();
    while bytes(to) > MOST {
        let largest = (0..to.len()).max_by_key(|at| to[*at].capacity());
        if let Some(at) = largest {
            to.swap_remove(at);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that grows while it is used, as much as it may be.
    #[test]
    fn what_is_kept_is_limited() {
        let mut spare = Spare::default();
        for round in 0..1_000 {
            let mut taken: Vec<_> = (0..40).map(|n| spare.bytes(n * 1_000)).collect();
            for (n, memory) in taken.iter_mut().enumerate() {
                memory.reserve((n * 77_777 + round * 131) % 1_000_000);
            }
            taken.into_iter().for_each(|memory| spare.keep_bytes(memory));
            spare.keep_bytes(Vec::new());
            assert!(spare.bytes.len() <= 40);
            assert!(spare.bytes.iter().map(Vec::capacity).sum::<usize>() <= MOST);
        }
        assert!(!spare.bytes.is_empty());
    }
}
