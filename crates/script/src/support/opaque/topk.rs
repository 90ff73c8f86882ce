//! The most frequent values of many, in bounded memory: the Space-Saving algorithm (Metwally, Agrawal and El Abbadi, 2005).

use std::collections::{BTreeMap, HashMap};

/// Counts of the values that are most frequent.
#[derive(Clone, Debug)]
pub struct TopK<V> {
    size: u64,
    /// By key.
    elements: HashMap<Box<[u8]>, Element<V>>,
    /// Keys by their count, and those of equal counts in the order in which they came to it.
    order: BTreeMap<(u64, u64), Box<[u8]>>,
    next: u64,
    pruned: bool,
}

#[derive(Clone, Debug)]
struct Element<V> {
    value: V,
    /// By how much the count may be too high.
    epsilon: u64,
    at: (u64, u64),
}

impl<V: Clone> TopK<V> {
    /// For `size` values.
    #[must_use]
    pub fn new(size: u64) -> Self {
        TopK { size, elements: HashMap::new(), order: BTreeMap::new(), next: 0, pruned: false }
    }

    /// The number of values that are kept at most.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether no value was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    fn place(&mut self, key: Box<[u8]>, value: V, epsilon: u64, count: u64) {
        let at = (count, self.next);
        self.next += 1;
        self.order.insert(at, key.clone());
        self.elements.insert(key, Element { value, epsilon, at });
    }

    fn take(&mut self, key: &[u8]) -> Option<Element<V>> {
        let element = self.elements.remove(key)?;
        self.order.remove(&element.at);
        Some(element)
    }

    /// Adds a value once. Where there is no room, it takes the place of the least frequent.
    pub fn add(&mut self, key: &[u8], value: V) {
        if let Some(known) = self.take(key) {
            return self.place(key.into(), known.value, known.epsilon, known.at.0 + 1);
        }
        if (self.elements.len() as u64) < self.size {
            return self.place(key.into(), value, 0, 1);
        }
        if let Some((at, least)) = self.order.pop_first() {
            self.elements.remove(&least);
            self.place(key.into(), value, at.0, at.0 + 1);
        }
    }

    /// The `k` most frequent values; more where the last of them have equal counts.
    #[must_use]
    pub fn top(&self, k: u64) -> Vec<V> {
        let mut top = Vec::new();
        let mut count = self.order.keys().next_back().map(|at| at.0);
        while let Some(current) = count
            && (top.len() as u64) < k
        {
            let equal = self.order.range((current, 0)..=(current, u64::MAX));
            top.extend(
                equal.filter_map(|(_, key)| self.elements.get(key)).map(|e| e.value.clone()),
            );
            count = self.order.range(..(current, 0)).next_back().map(|(at, _)| at.0);
        }
        top
    }

    /// The count of a value ("GetCount for element that is not in top-k" where there is none).
    #[must_use]
    pub fn count(&self, key: &[u8]) -> Option<u64> {
        self.elements.get(key).map(|element| element.at.0)
    }

    /// By how much the count may be too high ("GetEpsilon for element that is not in top-k").
    #[must_use]
    pub fn epsilon(&self, key: &[u8]) -> Option<u64> {
        self.elements.get(key).map(|element| element.epsilon)
    }

    /// The sum of all counts, and whether values were dropped by a merge, which Zeek warns of.
    #[must_use]
    pub fn sum(&self) -> (u64, bool) {
        (self.order.keys().map(|at| at.0).sum(), self.pruned)
    }

    /// Adds the counts of another; with `prune`, the least frequent values are dropped where they are too many.
    pub fn merge(&mut self, other: &Self, prune: bool) {
        for (at, key) in &other.order {
            let Some(theirs) = other.elements.get(key) else { continue };
            let (value, epsilon, count) = match self.take(key) {
                Some(ours) => (ours.value, ours.epsilon, ours.at.0),
                None => (theirs.value.clone(), 0, 0),
            };
            self.place(key.clone(), value, epsilon + theirs.epsilon, count + at.0);
        }
        while prune && self.elements.len() as u64 > self.size {
            self.pruned = true;
            if let Some((_, least)) = self.order.pop_first() {
                self.elements.remove(&least);
            }
        }
    }

    /// What `copy` of a value of this type is.
    #[must_use]
    pub fn copy(&self) -> Self {
        let mut copy = Self::new(self.size);
        copy.merge(self, false);
        copy
    }
}
