//! Values of which many are the same.

use std::ops::Range;

use super::encode::common;

/// A value for each row or element. As long as all are equal, one of them is kept.
pub(super) struct Series<T> {
    /// All values, or the first one.
    values: Vec<T>,
    /// How many more equal it.
    repeats: usize,
}

/// Some successive values.
#[derive(Clone, Copy)]
pub(super) enum Part<'a, T> {
    /// One that many times, at least once.
    Same(T, usize),
    /// Any.
    All(&'a [T]),
}

impl<T: Copy + PartialEq> Series<T> {
    /// None yet, in this memory.
    pub(super) fn new(memory: Vec<T>) -> Self {
        Self { values: memory, repeats: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len() + self.repeats
    }

    /// Its memory.
    pub(super) fn into_memory(self) -> Vec<T> {
        self.values
    }

    /// Appends one.
    #[inline(always)]
    pub(super) fn push(&mut self, value: T) {
        if self.repeats > 0 {
            return self.push_same(value, 1);
        }
        self.values.push(value);
    }

    /// Appends one that many times.
    pub(super) fn push_same(&mut self, value: T, times: usize) {
        if times == 0 {
            return;
        }
        match self.values.first() {
            None => {
                self.values.push(value);
                self.repeats = times - 1;
            }
            Some(first) if *first == value && self.values.len() == 1 => self.repeats += times,
            Some(_) => {
                self.spread();
                self.values.resize(self.values.len() + times, value);
            }
        }
    }

    /// Appends values.
    #[inline]
    pub(super) fn push_all(&mut self, values: impl ExactSizeIterator<Item = T>) {
        self.spread();
        self.values.extend(values);
    }

    /// From now on all are kept.
    fn spread(&mut self) {
        if self.repeats > 0
            && let Some(first) = self.values.first().copied()
        {
            self.values.resize(self.values.len() + self.repeats, first);
            self.repeats = 0;
        }
    }

    /// Some of them.
    pub(super) fn part(&self, which: Range<usize>) -> Part<'_, T> {
        match self.values.first() {
            Some(first) if self.repeats > 0 && !which.is_empty() => Part::Same(*first, which.len()),
            Some(_) if self.repeats > 0 => Part::All(&[]),
            _ => Part::All(&self.values[which]),
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> Part<'_, T> {
        self.part(0..self.len())
    }

    /// Those at these places, in this order. The memory is exchanged with `spare`.
    pub(super) fn reorder(&mut self, order: &[u32], spare: &mut Vec<T>) {
        if self.repeats > 0 {
            self.repeats = order.len().saturating_sub(1);
            return;
        }
        spare.clear();
        spare.extend(order.iter().map(|at| self.values[*at as usize]));
        std::mem::swap(&mut self.values, spare);
    }
}

impl<'a, T: Copy + PartialEq> Part<'a, T> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Same(_, times) => *times,
            Self::All(all) => all.len(),
        }
    }

    /// All values, or one if they are equal.
    pub(super) fn some(&self) -> &[T] {
        match self {
            Self::Same(value, _) => std::slice::from_ref(value),
            Self::All(all) => all,
        }
    }

    /// The same, as one if all are equal.
    pub(super) fn united(self) -> Self {
        match self {
            Self::All(all) => common(all).map_or(self, |value| Self::Same(value, all.len())),
            same => same,
        }
    }
}
