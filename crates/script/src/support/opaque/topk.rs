//! The most frequent values in bounded memory: the Space-Saving algorithm (Metwally, Agrawal and El Abbadi,
//! 2005).

use std::collections::{BTreeMap, HashMap};

/// Counters of the most frequent values.
#[derive(Clone, Debug)]
pub struct TopK<V> {
    size: u64,
    /// Elements by key.
    elements: HashMap<Box<[u8]>, Element<V>>,
    /// Keys by count; equal counts in the order in which they were reached.
    order: BTreeMap<(u64, u64), Box<[u8]>>,
    next: u64,
    pruned: bool,
}

#[derive(Clone, Debug)]
struct Element<V> {
    value: V,
    /// Maximum overestimation of the count.
    epsilon: u64,
    order_key: (u64, u64),
}

impl<V: Clone> TopK<V> {
    /// A counter for `size` values.
    #[must_use]
    pub fn new(size: u64) -> Self {
        TopK { size, elements: HashMap::new(), order: BTreeMap::new(), next: 0, pruned: false }
    }

    /// Maximum number of values.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether no value was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    fn insert(&mut self, key: Box<[u8]>, value: V, epsilon: u64, count: u64) {
        let order_key = (count, self.next);
        self.next += 1;
        self.order.insert(order_key, key.clone());
        self.elements.insert(key, Element { value, epsilon, order_key });
    }

    fn remove(&mut self, key: &[u8]) -> Option<Element<V>> {
        let element = self.elements.remove(key)?;
        self.order.remove(&element.order_key);
        Some(element)
    }

    /// Adds one occurrence of a value. If all counters are in use, it replaces the least frequent value.
    pub fn add(&mut self, key: &[u8], value: V) {
        if let Some(known) = self.remove(key) {
            return self.insert(key.into(), known.value, known.epsilon, known.order_key.0 + 1);
        }
        if (self.elements.len() as u64) < self.size {
            return self.insert(key.into(), value, 0, 1);
        }
        if let Some((order_key, least)) = self.order.pop_first() {
            self.elements.remove(&least);
            self.insert(key.into(), value, order_key.0, order_key.0 + 1);
        }
    }

    /// The `k` most frequent values; more if the last of them have equal counts.
    #[must_use]
    pub fn top(&self, k: u64) -> Vec<V> {
        let mut top = Vec::new();
        let mut count = self.order.keys().next_back().map(|order_key| order_key.0);
        while let Some(current) = count
            && (top.len() as u64) < k
        {
            let equal = self.order.range((current, 0)..=(current, u64::MAX));
            top.extend(
                equal.filter_map(|(_, key)| self.elements.get(key)).map(|e| e.value.clone()),
            );
            count = self.order.range(..(current, 0)).next_back().map(|(order_key, _)| order_key.0);
        }
        top
    }

    /// The count of a value; `None` for "GetCount for element that is not in top-k".
    #[must_use]
    pub fn count(&self, key: &[u8]) -> Option<u64> {
        self.elements.get(key).map(|element| element.order_key.0)
    }

    /// The maximum overestimation of the count; `None` for "GetEpsilon for element that is not in top-k".
    #[must_use]
    pub fn epsilon(&self, key: &[u8]) -> Option<u64> {
        self.elements.get(key).map(|element| element.epsilon)
    }

    /// The sum of all counts, and whether a merge dropped values, which Zeek warns about.
    #[must_use]
    pub fn sum(&self) -> (u64, bool) {
        (self.order.keys().map(|order_key| order_key.0).sum(), self.pruned)
    }

    /// Adds the counts of another counter; with `prune`, drops the least frequent values beyond [`Self::size`].
    pub fn merge(&mut self, other: &Self, prune: bool) {
        for (order_key, key) in &other.order {
            let Some(theirs) = other.elements.get(key) else { continue };
            let (value, epsilon, count) = match self.remove(key) {
                Some(ours) => (ours.value, ours.epsilon, ours.order_key.0),
                None => (theirs.value.clone(), 0, 0),
            };
            self.insert(key.clone(), value, epsilon + theirs.epsilon, count + order_key.0);
        }
        while prune && self.elements.len() as u64 > self.size {
            self.pruned = true;
            if let Some((_, least)) = self.order.pop_first() {
                self.elements.remove(&least);
            }
        }
    }

    /// The value of `copy` for this type.
    #[must_use]
    pub fn copy(&self) -> Self {
        let mut copy = Self::new(self.size);
        copy.merge(self, false);
        copy
    }
}
