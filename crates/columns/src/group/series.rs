//! Vectors that store equal values once.

use std::ops::Range;

use super::encode::common_value;

/// A vector that stores one value as long as all values pushed by [`Series::push_same`] are equal.
pub(super) struct Series<T> {
    /// All values; only the first one if `repeats` is not 0.
    values: Vec<T>,
    /// Number of further values that are equal to the first one.
    repeats: usize,
}

/// Consecutive values of a [`Series`].
#[derive(Clone, Copy)]
pub(super) enum SeriesSlice<'a, T> {
    /// A value and how often it repeats, at least once.
    Constant(T, usize),
    /// Values that may differ.
    Slice(&'a [T]),
}

impl<T: Copy + PartialEq> Series<T> {
    /// An empty series that stores its values in `buffer`.
    pub(super) fn new(buffer: Vec<T>) -> Self {
        Self { values: buffer, repeats: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len() + self.repeats
    }

    /// The buffer, for reuse.
    pub(super) fn into_buffer(self) -> Vec<T> {
        self.values
    }

    /// Appends a value.
    #[inline(always)]
    pub(super) fn push(&mut self, value: T) {
        if self.repeats > 0 {
            return self.push_same(value, 1);
        }
        self.values.push(value);
    }

    /// Appends a value `times` times.
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
                self.expand();
                self.values.resize(self.values.len() + times, value);
            }
        }
    }

    /// Appends values.
    #[inline]
    pub(super) fn push_all(&mut self, values: impl ExactSizeIterator<Item = T>) {
        self.expand();
        self.values.extend(values);
    }

    /// Stores repeated values one by one.
    fn expand(&mut self) {
        if self.repeats > 0
            && let Some(first) = self.values.first().copied()
        {
            self.values.resize(self.values.len() + self.repeats, first);
            self.repeats = 0;
        }
    }

    /// Values of a range of indices.
    pub(super) fn slice(&self, range: Range<usize>) -> SeriesSlice<'_, T> {
        match self.values.first() {
            Some(first) if self.repeats > 0 && !range.is_empty() => {
                SeriesSlice::Constant(*first, range.len())
            }
            Some(_) if self.repeats > 0 => SeriesSlice::Slice(&[]),
            _ => SeriesSlice::Slice(&self.values[range]),
        }
    }

    /// All values.
    pub(super) fn all(&self) -> SeriesSlice<'_, T> {
        self.slice(0..self.len())
    }

    /// Moves value `order[n]` to position `n`. Swaps the buffer with `scratch`.
    pub(super) fn reorder(&mut self, order: &[u32], scratch: &mut Vec<T>) {
        if self.repeats > 0 {
            self.repeats = order.len().saturating_sub(1);
            return;
        }
        scratch.clear();
        scratch.extend(order.iter().map(|at| self.values[*at as usize]));
        std::mem::swap(&mut self.values, scratch);
    }
}

impl<'a, T: Copy + PartialEq> SeriesSlice<'a, T> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Constant(_, times) => *times,
            Self::Slice(all) => all.len(),
        }
    }

    /// All values, or one of them if they are constant.
    pub(super) fn representatives(&self) -> &[T] {
        match self {
            Self::Constant(value, _) => std::slice::from_ref(value),
            Self::Slice(all) => all,
        }
    }

    /// [`SeriesSlice::Constant`] if all values are equal, otherwise the slice itself.
    pub(super) fn collapsed(self) -> Self {
        match self {
            Self::Slice(all) => {
                common_value(all).map_or(self, |value| Self::Constant(value, all.len()))
            }
            constant => constant,
        }
    }
}
