//! Tables and sets.
//!
//! Entries are in an array in the order of their insertion, and a hash table has their
//! indexes; small tables are searched linearly. A removal leaves a gap; gaps are closed when there
//! are many and no iteration is active. With a seed, iterations follow the slots of Zeek's dictionary, which is
//! stored as well.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hashbrown::HashTable;

use super::equal::{hash_key, hash_net4, same_key, same_part};
use super::{List, V4_PREFIX, Value, cycles, mask, order};
use crate::ids::{ExprId, TypeId};
use crate::literal::Subnet;
use crate::support::order::{RobustWalk, SlotDict};
use crate::support::pattern::{PatternSet, PatternStats};

/// Attributes of a table's declaration or constructor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableAttrs {
    /// `&default`.
    pub default: Option<ExprId>,
    /// `&default_insert`.
    pub default_insert: Option<ExprId>,
    /// The attribute by which entries expire, and its interval.
    pub expire: Option<(ExpireKind, ExprId)>,
    /// `&expire_func`.
    pub expire_func: Option<ExprId>,
    /// `&on_change`.
    pub on_change: Option<ExprId>,
    /// `&ordered`.
    pub ordered: bool,
}

/// Which attribute expires entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpireKind {
    /// `&create_expire`.
    Create,
    /// `&read_expire`.
    Read,
    /// `&write_expire`.
    Write,
}

/// A table or set.
pub struct Table {
    ty: Cell<TypeId>,
    single: Cell<bool>,
    state: RefCell<State>,
    attrs: RefCell<Option<Rc<TableAttrs>>>,
    /// Active iterations.
    iterations: Cell<u32>,
    /// Active iterations that expire entries; `iterations` counts them, too.
    expiries: Cell<u32>,
    /// The value of `&default`, evaluated at its first use.
    pub default_cache: RefCell<Option<Value>>,
    /// Whether `&on_change` is being called.
    pub in_change: Cell<bool>,
    /// Whether an expiry timer of the table exists.
    pub expiring: Cell<bool>,
    /// Whether a `when` condition depends on the table.
    pub watched: Cell<bool>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    /// The indexes of entries by hash, if the table is [indexed](Self::is_indexed).
    indexes: HashTable<u32>,
    /// Number of entries.
    live: u32,
    /// The index that was found last: `t[k]` often follows `k in t`.
    last: Cell<u32>,
    /// Whether the table has or had more than [`MAX_UNINDEXED`] entries.
    is_indexed: bool,
    /// State that few tables need.
    rare: Option<Box<RareState>>,
}

/// Maximum number of entries, gaps included, of a table without a hash table. Most tables of a connection have one or two.
const MAX_UNINDEXED: usize = 8;

#[derive(Default)]
struct RareState {
    /// The prefix lengths of keys that are networks.
    widths: Option<NetworkWidths>,
    patterns: Option<Rc<(PatternSet, Vec<u32>)>>,
    order: Option<Order>,
}

/// The order of Zeek's dictionary.
#[derive(Default)]
struct Order {
    slots: SlotDict<u32, ()>,
    /// The hash in Zeek's dictionary, for each entry.
    hashes: Vec<u64>,
    /// Indexes of gaps.
    free: Vec<u32>,
}

impl RareState {
    fn with_order() -> Option<Box<Self>> {
        Some(Box::new(Self { order: Some(Order::default()), ..Self::default() }))
    }
}

/// Number of networks of each prefix length.
#[derive(Default)]
struct NetworkWidths {
    /// Prefix lengths in IPv6 form with the number of networks, the longest first.
    all: Vec<(u8, u32)>,
    /// A bit for each IPv4 prefix length that occurs.
    v4_widths: u64,
}

impl NetworkWidths {
    fn add(&mut self, key: &Value) {
        let Some(net) = key.as_subnet() else { return };
        match self.all.binary_search_by(|(width, _)| net.width.cmp(width)) {
            Ok(at) => {
                if let Some((_, count)) = self.all.get_mut(at) {
                    *count += 1;
                }
            }
            Err(at) => self.all.insert(at, (net.width, 1)),
        }
        self.update_v4_widths();
    }

    fn remove(&mut self, key: &Value) {
        let Some(net) = key.as_subnet() else { return };
        if let Some((_, count)) = self.all.iter_mut().find(|(width, _)| *width == net.width) {
            *count = count.saturating_sub(1);
        }
        self.all.retain(|(_, count)| *count > 0);
        self.update_v4_widths();
    }

    fn update_v4_widths(&mut self) {
        let v4_widths = self.all.iter().filter_map(|(width, _)| width.checked_sub(96));
        self.v4_widths = v4_widths.fold(0, |v4_widths, width| v4_widths | 1 << width);
    }

    /// Prefix lengths of at most `longest`, the longest first.
    fn up_to(&self, longest: u8) -> impl Iterator<Item = u8> {
        self.all.iter().map(|(width, _)| *width).filter(move |width| *width <= longest)
    }
}

/// An entry of a table.
#[derive(Clone)]
struct Entry {
    hash: u64,
    /// The key, a list if it has several parts. Unset in a gap.
    key: Value,
    value: Value,
    /// Network time of the creation, read or write from which the entry expires.
    time: f64,
}

impl Table {
    /// An empty table. `single` is true if keys have one part.
    #[must_use]
    pub fn new(ty: TypeId, single: bool, attrs: Option<Rc<TableAttrs>>) -> Rc<Self> {
        let ordered = attrs.as_ref().is_some_and(|attrs| attrs.ordered);
        let rare =
            if ordered || order::hashes().is_none() { None } else { RareState::with_order() };
        let table = Rc::new(Self {
            ty: Cell::new(ty),
            single: Cell::new(single),
            state: RefCell::new(State { rare, ..State::default() }),
            attrs: RefCell::new(attrs),
            iterations: Cell::new(0),
            expiries: Cell::new(0),
            default_cache: RefCell::new(None),
            in_change: Cell::new(false),
            expiring: Cell::new(false),
            watched: Cell::new(false),
        });
        cycles::table(&table);
        table
    }

    /// Its type.
    #[must_use]
    pub fn ty(&self) -> TypeId {
        self.ty.get()
    }

    /// Sets the type of a table of an unspecified type.
    pub fn set_ty(&self, ty: TypeId, single: bool) {
        self.ty.set(ty);
        self.single.set(single);
    }

    /// Its attributes.
    #[must_use]
    pub fn attrs(&self) -> Option<Rc<TableAttrs>> {
        self.attrs.borrow().clone()
    }

    /// Replaces its attributes.
    pub fn set_attrs(&self, attrs: Option<Rc<TableAttrs>>) {
        let ordered = attrs.as_ref().is_some_and(|attrs| attrs.ordered);
        if ordered && let Some(rare) = &mut self.state.borrow_mut().rare {
            rare.order = None;
        }
        *self.default_cache.borrow_mut() = None;
        *self.attrs.borrow_mut() = attrs;
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.borrow().live as usize
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it has any attributes.
    #[must_use]
    pub fn has_attrs(&self) -> bool {
        self.attrs.borrow().is_some()
    }

    /// Whether lookups have no side effects: no expiry.
    #[must_use]
    pub fn is_lookup_pure(&self) -> bool {
        self.attrs.borrow().as_ref().is_none_or(|attrs| attrs.expire.is_none())
    }

    /// Whether changes have no side effects: no active iteration, no expiry, no `&on_change`.
    #[must_use]
    pub fn is_update_pure(&self) -> bool {
        self.iterations.get() == 0
            && self
                .attrs
                .borrow()
                .as_ref()
                .is_none_or(|attrs| attrs.expire.is_none() && attrs.on_change.is_none())
    }

    /// Whether a loop over the table is active.
    #[must_use]
    pub fn is_iterated(&self) -> bool {
        self.iterations.get() > self.expiries.get()
    }

    /// Whether the table has only entries: no active iteration, no running `&on_change`, no dependent `when`, no order of Zeek.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.iterations.get() == 0
            && !self.in_change.get()
            && !self.watched.get()
            && self.state.borrow().order().is_none()
    }

    /// Whether a key is a network.
    #[must_use]
    pub fn has_networks(&self) -> bool {
        self.state.borrow().widths().is_some()
    }

    /// The value of the longest network that contains an address or network (longest-prefix match); unset if there is none.
    #[must_use]
    pub fn get_longest(&self, key: &Value) -> Value {
        match self.find_longest(key) {
            Some(index) => self.value_at(index),
            None => Value::Unset,
        }
    }

    /// Like [`insert`](Self::insert), with the parts of the key; `ty` is the type of a list of these.
    pub fn put(&self, key: &[Value], value: Value, time: f64, ty: TypeId) -> Option<Value> {
        let hash = hash_key(key);
        {
            let state = &mut *self.state.borrow_mut();
            if let Some(index) = state.find(key, hash) {
                state.record_lookup(index);
                let entry = state.entries.get_mut(index)?;
                entry.time = time;
                return Some(std::mem::replace(&mut entry.value, value));
            }
        }
        self.add(make_key(key, ty), value, time, hash);
        None
    }

    /// Whether keys have one part.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.single.get()
    }

    /// The index of the entry with exactly this key, given in parts.
    #[must_use]
    pub fn find(&self, key: &[Value]) -> Option<usize> {
        let mut state = self.state.borrow_mut();
        if state.live == 0 {
            return None;
        }
        let index = state.find(key, hash_key(key))?;
        state.record_lookup(index);
        Some(index)
    }

    /// The value of the entry with exactly this key; unset in sets.
    #[must_use]
    pub fn get(&self, key: &[Value]) -> Option<Value> {
        let index = self.find(key)?;
        Some(self.value_at(index))
    }

    /// The value of the entry with exactly this key; unset if there is none, and in sets.
    #[must_use]
    pub fn get_or_unset(&self, key: &[Value]) -> Value {
        let mut state = self.state.borrow_mut();
        if state.live == 0 {
            return Value::Unset;
        }
        let Some(index) = state.find(key, hash_key(key)) else { return Value::Unset };
        state.record_lookup(index);
        match state.entries.get(index) {
            Some(entry) => entry.value.clone(),
            None => Value::Unset,
        }
    }

    /// The index of the longest network that contains an address or network (longest-prefix match).
    #[must_use]
    pub fn find_longest(&self, key: &Value) -> Option<usize> {
        let state = self.state.borrow();
        let widths = state.widths()?;
        let version_4 = match key {
            Value::Addr4(address) => Some((*address, 32)),
            Value::Net4(prefix, width) => Some((*prefix, *width)),
            _ => None,
        };
        let mut longest = 128;
        if let Some((address, width)) = version_4 {
            // IPv4 networks first: their prefixes are 96 bits longer in IPv6 form.
            let bits = u32::from_be_bytes(address);
            let mut left = widths.v4_widths & (u64::MAX >> (63 - u32::from(width.min(32))));
            while left != 0 {
                let width = 63 - left.leading_zeros();
                left &= !(1 << width);
                let netmask = u32::MAX.checked_shl(32 - width).unwrap_or(0);
                if let Some(index) = state.find_net4((bits & netmask).to_be_bytes(), width as u8) {
                    return Some(index);
                }
            }
            longest = 95;
            // Few tables have both IPv4 and IPv6 networks.
            widths.all.last().filter(|(width, _)| *width <= longest)?;
        }
        let address = match key {
            Value::Addr4(_) | Value::Addr6(_) => key.addr_bytes()?,
            _ => {
                let net = key.as_subnet()?;
                longest = longest.min(net.width);
                net.prefix
            }
        };
        let mut probe = [Value::Unset];
        widths.up_to(longest).find_map(|width| {
            let prefix = mask(address, width);
            let is_version_4 = width >= 96 && prefix.starts_with(&V4_PREFIX);
            // One value is reused for all IPv6 lookups.
            let [value] = &mut probe;
            let is_changed = match value {
                Value::Net6(net) if !is_version_4 => {
                    Rc::get_mut(net).map(|net| *net = Subnet { prefix, width }).is_some()
                }
                _ => false,
            };
            if !is_changed {
                *value = Value::subnet(prefix, width);
            }
            state.find(&probe, hash_key(&probe))
        })
    }

    /// Indexes of all entries whose keys are networks that contain `key`, the longest first.
    #[must_use]
    pub fn indexes_containing(&self, key: &Value) -> Vec<usize> {
        let (address, longest) = match key {
            Value::Addr4(_) | Value::Addr6(_) => match key.addr_bytes() {
                Some(bytes) => (bytes, 128),
                None => return Vec::new(),
            },
            _ => match key.as_subnet() {
                Some(net) => (net.prefix, net.width),
                None => return Vec::new(),
            },
        };
        let state = self.state.borrow();
        let mut found = Vec::new();
        for width in state.widths().into_iter().flat_map(|widths| widths.up_to(longest)) {
            let probe = [Value::subnet(mask(address, width), width)];
            found.extend(state.find(&probe, hash_key(&probe)));
        }
        found
    }

    /// Indexes of the entries whose keys are patterns that match all of `text`, in the order of an iteration.
    #[must_use]
    pub fn indexes_matching(&self, text: &[u8]) -> Vec<usize> {
        let set = {
            let mut state = self.state.borrow_mut();
            match state.rare.as_ref().and_then(|rare| rare.patterns.as_ref()) {
                Some(set) => Rc::clone(set),
                None => {
                    let mut indexes = Vec::new();
                    let mut texts = Vec::new();
                    for index in state.ordered_indexes() {
                        if let Some(Value::Pattern(pattern)) =
                            state.entries.get(index as usize).map(|entry| &entry.key)
                        {
                            indexes.push(index);
                            texts.push(pattern.text().to_vec());
                        }
                    }
                    let set = Rc::new((PatternSet::new(texts), indexes));
                    state.rare.get_or_insert_default().patterns = Some(Rc::clone(&set));
                    set
                }
            }
        };
        set.0
            .matching(text)
            .into_iter()
            .filter_map(|pattern| set.1.get(pattern as usize).map(|index| *index as usize))
            .collect()
    }

    /// Statistics of the automaton for keys that are patterns; zero before the first lookup.
    #[must_use]
    pub fn pattern_stats(&self) -> PatternStats {
        let state = self.state.borrow();
        let patterns = state.rare.as_ref().and_then(|rare| rare.patterns.as_ref());
        patterns.map(|set| set.0.stats()).unwrap_or_default()
    }

    /// The value of the entry at an index.
    #[must_use]
    pub fn value_at(&self, index: usize) -> Value {
        match self.state.borrow().entries.get(index) {
            Some(entry) => entry.value.clone(),
            None => Value::Unset,
        }
    }

    /// The key of the entry at an index; unset if there is none.
    #[must_use]
    pub fn key_at(&self, index: usize) -> Value {
        self.state.borrow().entries.get(index).map(|entry| entry.key.clone()).unwrap_or_default()
    }

    /// Key, value and time of the entry at an index.
    #[must_use]
    pub fn entry_at(&self, index: usize) -> Option<(Value, Value, f64)> {
        let state = self.state.borrow();
        let entry = state.entries.get(index)?;
        entry.key.is_set().then(|| (entry.key.clone(), entry.value.clone(), entry.time))
    }

    /// One past the last index.
    #[must_use]
    pub fn indexes_end(&self) -> usize {
        self.state.borrow().entries.len()
    }

    /// Sets the time of the entry at an index.
    pub fn touch(&self, index: usize, time: f64) {
        if let Some(entry) = self.state.borrow_mut().entries.get_mut(index) {
            entry.time = time;
        }
    }

    /// Sets the value of the entry at an index.
    pub fn set_at(&self, index: usize, value: Value) {
        let old = {
            let mut state = self.state.borrow_mut();
            state.entries.get_mut(index).map(|entry| std::mem::replace(&mut entry.value, value))
        };
        drop(old);
    }

    /// Adds or changes an entry. The key is given in stored form: a [`Value::List`] if it has
    /// several parts. Returns the previous value.
    pub fn insert(&self, key: Value, value: Value, time: f64) -> Option<Value> {
        let hash = hash_key(parts(&key));
        {
            let state = &mut *self.state.borrow_mut();
            if let Some(index) = state.find(parts(&key), hash) {
                state.record_lookup(index);
                let entry = state.entries.get_mut(index)?;
                entry.time = time;
                return Some(std::mem::replace(&mut entry.value, value));
            }
        }
        self.add(key, value, time, hash);
        None
    }

    /// Adds an entry whose key is not in the table.
    fn add(&self, key: Value, value: Value, time: f64, hash: u64) {
        let state = &mut *self.state.borrow_mut();
        if let Value::Net4(..) | Value::Net6(_) = key {
            state.rare.get_or_insert_default().widths.get_or_insert_default().add(&key);
        }
        let mut reused = None;
        if let Some(rare) = &mut state.rare {
            rare.patterns = None;
            if let Some(order) = &mut rare.order {
                reused = order.free.pop();
                let next = u32::try_from(state.entries.len()).unwrap_or(u32::MAX);
                order.add(&key, reused.unwrap_or(next));
            }
        }
        let entry = Entry { hash, key, value, time };
        match reused.and_then(|index| Some((index, state.entries.get_mut(index as usize)?))) {
            Some((index, free)) => {
                *free = entry;
                state.live += 1;
                state.index_entry(hash, index);
            }
            None => state.push(entry, self.iterations.get() == 0),
        }
    }

    /// Removes an entry; returns its value.
    pub fn remove(&self, key: &[Value]) -> Option<Value> {
        let hash = hash_key(key);
        let state = &mut *self.state.borrow_mut();
        let index = state.find(key, hash)?;
        state.remove_at(index, self.iterations.get() == 0)
    }

    /// Removes all entries.
    pub fn clear(&self) {
        let rare =
            if self.state.borrow().order().is_some() { RareState::with_order() } else { None };
        let fresh = State { rare, ..State::default() };
        let old = self.state.replace(fresh);
        drop(old);
    }

    /// Calls `f` with each key and each value.
    pub(super) fn each_part(&self, f: &mut dyn FnMut(&Value)) {
        for entry in &self.state.borrow().entries {
            f(&entry.key);
            f(&entry.value);
        }
    }

    /// Keys and values in the order of an iteration.
    #[must_use]
    pub fn entries(&self) -> Vec<(Value, Value)> {
        let state = self.state.borrow();
        match state.order() {
            None => state
                .entries
                .iter()
                .filter(|entry| entry.key.is_set())
                .map(|entry| (entry.key.clone(), entry.value.clone()))
                .collect(),
            Some(order) => order
                .slots
                .iter()
                .filter_map(|(index, ())| state.entries.get(*index as usize))
                .map(|entry| (entry.key.clone(), entry.value.clone()))
                .collect(),
        }
    }

    /// Keys in the order of an iteration.
    #[must_use]
    pub fn keys(&self) -> Vec<Value> {
        self.entries().into_iter().map(|(key, _)| key).collect()
    }

    /// Keys, values and times in the order of an iteration.
    #[must_use]
    pub fn entries_with_times(&self) -> Vec<(Value, Value, f64)> {
        let state = self.state.borrow();
        state
            .ordered_indexes()
            .into_iter()
            .filter_map(|index| state.entries.get(index as usize))
            .map(|entry| (entry.key.clone(), entry.value.clone(), entry.time))
            .collect()
    }

    /// Begins an iteration, during which indexes stay valid. Returns the indexes in order if they are
    /// not sorted.
    #[must_use]
    pub fn begin_iteration(&self) -> Option<Vec<u32>> {
        self.iterations.set(self.iterations.get() + 1);
        self.state.borrow_mut().slots().map(|slots| {
            slots.begin_loop();
            slots.iter().map(|(index, ())| *index).collect()
        })
    }

    /// Begins an iteration that expires entries, during which indexes stay valid and entries may change.
    pub fn begin_expiry(&self) {
        let _ = self.begin_iteration();
        self.expiries.set(self.expiries.get() + 1);
    }

    /// Ends an iteration that expires entries.
    pub fn end_expiry(&self) {
        self.expiries.set(self.expiries.get().saturating_sub(1));
        self.end_iteration();
    }

    /// Ends an iteration.
    pub fn end_iteration(&self) {
        self.iterations.set(self.iterations.get().saturating_sub(1));
        if let Some(slots) = self.state.borrow_mut().slots() {
            slots.end_loop();
        }
    }

    /// Begins an iteration in Zeek's order that visits each entry once despite removals; `None` for a table in the order
    /// of insertion.
    #[must_use]
    pub fn begin_robust_iteration(&self) -> Option<RobustWalk> {
        self.state.borrow_mut().slots().map(|slots| slots.begin_robust())
    }

    /// The index of the next entry of such an iteration.
    #[must_use]
    pub fn next_robust_index(&self, walk: &RobustWalk) -> Option<u32> {
        let mut state = self.state.borrow_mut();
        state.slots()?.next_robust(walk).map(|(_, index)| index)
    }

    /// Ends such an iteration.
    pub fn end_robust_iteration(&self, walk: RobustWalk) {
        if let Some(slots) = self.state.borrow_mut().slots() {
            slots.end_robust(walk);
        }
    }

    /// The next entry in index order, and the index to continue from.
    #[must_use]
    pub fn next_from(&self, mut index: usize) -> Option<(usize, Value, Value)> {
        let state = self.state.borrow();
        loop {
            let entry = state.entries.get(index)?;
            index += 1;
            if entry.key.is_set() {
                return Some((index, entry.key.clone(), entry.value.clone()));
            }
        }
    }
}

impl Entry {
    /// Whether the key of the entry consists of these parts.
    #[inline]
    fn is(&self, key: &[Value]) -> bool {
        match (&self.key, key) {
            (Value::Count(one), [Value::Count(other)]) => one == other,
            (Value::List(list), parts) if parts.len() != 1 => same_key(&list.items, parts),
            (one, [part]) => same_part(one, part),
            _ => false,
        }
    }
}

impl Order {
    /// Adds the key of an entry.
    fn add(&mut self, key: &Value, entry: u32) {
        let hash = order::hash(key).unwrap_or(0);
        self.slots.insert(hash, entry, ());
        let index = entry as usize;
        if self.hashes.len() <= index {
            self.hashes.resize(index + 1, 0);
        }
        if let Some(slot) = self.hashes.get_mut(index) {
            *slot = hash;
        }
    }

    fn hash(&self, index: usize) -> u64 {
        self.hashes.get(index).copied().unwrap_or(0)
    }
}

impl State {
    fn order(&self) -> Option<&Order> {
        self.rare.as_ref()?.order.as_ref()
    }

    fn slots(&mut self) -> Option<&mut SlotDict<u32, ()>> {
        Some(&mut self.rare.as_mut()?.order.as_mut()?.slots)
    }

    fn widths(&self) -> Option<&NetworkWidths> {
        self.rare.as_ref()?.widths.as_ref()
    }

    /// Records a lookup, at which Zeek's dictionary may move the entry to its slot.
    #[inline]
    fn record_lookup(&mut self, index: usize) {
        if let Some(rare) = &mut self.rare
            && let Some(order) = &mut rare.order
        {
            let hash = order.hash(index);
            order.slots.get_with(hash, |other| *other as usize == index);
        }
    }

    #[inline]
    fn find(&self, key: &[Value], hash: u64) -> Option<usize> {
        let last = self.last.get() as usize;
        if let Some(entry) = self.entries.get(last)
            && entry.hash == hash
            && entry.is(key)
        {
            return Some(last);
        }
        let index = self.search(key, hash)?;
        self.last.set(u32::try_from(index).unwrap_or(u32::MAX));
        Some(index)
    }

    /// The index of an IPv4 network: like [`find`](Self::find), without a key in memory.
    #[inline]
    fn find_net4(&self, prefix: [u8; 4], width: u8) -> Option<usize> {
        let hash = hash_net4(prefix, width);
        let is_match = |entry: &Entry| matches!(entry.key, Value::Net4(other, other_width) if other == prefix && other_width == width);
        let last = self.last.get() as usize;
        if self.entries.get(last).is_some_and(&is_match) {
            return Some(last);
        }
        let index = self.index_of(hash, is_match)?;
        self.last.set(u32::try_from(index).unwrap_or(u32::MAX));
        Some(index)
    }

    /// The index of the entry with this hash for which `is_match` holds.
    #[inline]
    fn index_of(&self, hash: u64, is_match: impl Fn(&Entry) -> bool) -> Option<usize> {
        if !self.is_indexed {
            return self.entries.iter().position(|entry| entry.hash == hash && is_match(entry));
        }
        let index = self
            .indexes
            .find(hash, |index| self.entries.get(*index as usize).is_some_and(&is_match));
        index.map(|index| *index as usize)
    }

    fn search(&self, key: &[Value], hash: u64) -> Option<usize> {
        if let [Value::Count(number)] = key {
            return self.index_of(hash, |entry| match entry.key {
                Value::Count(other) => other == *number,
                Value::Int(other) => u64::try_from(other) == Ok(*number),
                _ => false,
            });
        }
        self.index_of(hash, |entry| entry.hash == hash && entry.is(key))
    }

    /// Appends an entry. `may_move` is true if gaps may be closed.
    fn push(&mut self, entry: Entry, may_move: bool) {
        let len = self.entries.len();
        if len == 0 {
            self.entries.reserve_exact(1);
        } else if len == MAX_UNINDEXED && !self.is_indexed {
            if may_move && (self.live as usize) < len && self.order().is_none() {
                self.close_gaps();
            } else {
                self.is_indexed = true;
                for index in self.ordered_indexes() {
                    let hash = self.entries.get(index as usize).map_or(0, |entry| entry.hash);
                    self.index_entry(hash, index);
                }
            }
        }
        let index = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let hash = entry.hash;
        self.entries.push(entry);
        self.live += 1;
        self.index_entry(hash, index);
    }

    /// Adds the index of an entry to the hash table, if there is one.
    fn index_entry(&mut self, hash: u64, index: u32) {
        if self.is_indexed {
            let entries = &self.entries;
            self.indexes.insert_unique(hash, index, |index| {
                entries.get(*index as usize).map_or(0, |entry| entry.hash)
            });
        }
    }

    fn ordered_indexes(&self) -> Vec<u32> {
        match self.order() {
            Some(order) => order.slots.iter().map(|(index, ())| *index).collect(),
            None => (0..self.entries.len())
                .filter(|index| self.entries.get(*index).is_some_and(|entry| entry.key.is_set()))
                .filter_map(|index| u32::try_from(index).ok())
                .collect(),
        }
    }

    fn remove_at(&mut self, index: usize, may_move: bool) -> Option<Value> {
        let entry = self.entries.get_mut(index)?;
        let key = std::mem::take(&mut entry.key);
        let value = std::mem::take(&mut entry.value);
        let hash = entry.hash;
        let wanted = u32::try_from(index).ok()?;
        if self.is_indexed
            && let Ok(found) = self.indexes.find_entry(hash, |index| *index == wanted)
        {
            found.remove();
        }
        self.live = self.live.saturating_sub(1);
        if let Some(rare) = &mut self.rare {
            rare.patterns = None;
            if let (Value::Net4(..) | Value::Net6(_), Some(widths)) = (&key, &mut rare.widths) {
                widths.remove(&key);
            }
            if let Some(order) = &mut rare.order {
                let hash = order.hash(index);
                order.slots.remove_with(hash, |index| *index == wanted);
                order.free.push(wanted);
                return Some(value);
            }
        }
        let (len, live) = (self.entries.len(), self.live as usize);
        if may_move && live == 0 {
            self.entries.clear();
        } else if may_move && len > 16 && len - live > live {
            self.close_gaps();
        }
        Some(value)
    }

    fn close_gaps(&mut self) {
        let mut moved = vec![u32::MAX; self.entries.len()];
        let mut next = 0_u32;
        let mut old = 0;
        self.entries.retain(|entry| {
            let keep = entry.key.is_set();
            if keep {
                if let Some(slot) = moved.get_mut(old) {
                    *slot = next;
                }
                next += 1;
            }
            old += 1;
            keep
        });
        for index in &mut self.indexes {
            *index = moved.get(*index as usize).copied().unwrap_or(u32::MAX);
        }
        if let Some(rare) = &mut self.rare {
            rare.patterns = None;
        }
    }
}

/// The parts of a stored key.
#[must_use]
pub fn parts(key: &Value) -> &[Value] {
    match key {
        Value::List(list) => &list.items,
        one => std::slice::from_ref(one),
    }
}

/// A stored key from its parts. `ty` is the type of the list.
#[must_use]
pub fn make_key(key: &[Value], ty: TypeId) -> Value {
    match key {
        [one] => one.clone(),
        several => Value::List(Rc::new(List { ty, items: several.to_vec() })),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::equal::equal;
    use super::*;

    fn table() -> Rc<Table> {
        Table::new(TypeId::ANY, true, None)
    }

    /// A key of one of several kinds: a number, a short or a long string, a network.
    fn key(n: u64) -> Value {
        match n % 4 {
            0 => Value::Count(n),
            1 => Value::string(n.to_string()),
            2 => Value::string(format!("a string that is not in its cell: {n}")),
            _ => Value::Net4([10, (n >> 8) as u8, n as u8, 0], 24),
        }
    }

    fn has(table: &Table, n: u64) -> bool {
        table.get(&[key(n)]).is_some_and(|value| value.count() == n)
    }

    #[test]
    fn entries_are_counted_around_the_size_that_is_indexed() {
        for count in [1, 7, 8, 9, 10, 17, 1_000, 30_000] {
            let table = table();
            for n in 0..count {
                table.insert(key(n), Value::Count(n), 0.0);
            }
            assert_eq!((table.len() as u64, table.entries().len() as u64), (count, count));
            assert!((0..count).all(|n| has(&table, n)) && !has(&table, count), "{count}");
            // Every second entry is removed, and then added again after those that stayed.
            for n in (0..count).step_by(2) {
                assert_eq!(table.remove(&[key(n)]).map(|value| value.count()), Some(n));
            }
            let stayed: Vec<_> = (1..count).step_by(2).collect();
            let values = |table: &Table| -> Vec<u64> {
                table.entries().iter().map(|(_, value)| value.count()).collect()
            };
            assert_eq!(values(&table), stayed);
            for n in (0..count).step_by(2) {
                assert!(!has(&table, n));
                table.insert(key(n), Value::Count(n), 0.0);
            }
            assert_eq!(values(&table), [stayed, (0..count).step_by(2).collect()].concat());
            for n in 0..count {
                assert!(table.remove(&[key(n)]).is_some(), "{n} of {count}");
            }
            assert!(table.is_empty() && table.entries().is_empty());
        }
    }

    #[test]
    fn a_queue_has_what_was_added_and_not_removed() {
        // One entry is removed for each that is added: gaps are closed in small tables, too.
        for waiting in [1, 8, 9, 100] {
            let table = table();
            for n in 0..100_000 {
                table.insert(key(n), Value::Count(n), 0.0);
                if n >= waiting {
                    assert!(table.remove(&[key(n - waiting)]).is_some());
                }
            }
            let left: Vec<_> = table.entries().iter().map(|(_, value)| value.count()).collect();
            assert_eq!(left, (100_000 - waiting..100_000).collect::<Vec<_>>());
            assert!(table.indexes_end() as u64 <= 2 * waiting + 17, "{}", table.indexes_end());
        }
    }

    #[test]
    fn iterations_visit_each_entry_that_stays() {
        for count in [5_u64, 8, 9, 40] {
            let table = table();
            (0..count).for_each(|n| drop(table.insert(key(n), Value::Count(n), 0.0)));
            assert!(table.begin_iteration().is_none());
            let (mut at, mut seen) = (0, Vec::new());
            while let Some((next, _, value)) = table.next_from(at) {
                at = next;
                seen.push(value.count());
                // The visited entry is removed; others are added.
                table.remove(&[key(value.count())]);
                if seen.len() < 10 {
                    table.insert(key(1_000 + seen.len() as u64), Value::Count(1_000), 0.0);
                }
            }
            table.end_iteration();
            assert!(seen.starts_with(&(0..count).collect::<Vec<_>>()), "{seen:?}");
        }
    }

    #[test]
    fn expiry_does_not_count_as_a_loop() {
        let table = table();
        (0..9).for_each(|n| drop(table.insert(key(n), Value::Count(n), 0.0)));
        table.begin_expiry();
        assert!(!table.is_iterated());
        assert!(table.begin_iteration().is_none());
        assert!(table.is_iterated());
        table.end_iteration();
        assert!(!table.is_iterated());
        // Indexes stay valid until the iteration ends.
        (0..9).for_each(|n| drop(table.remove(&[key(n)])));
        assert_eq!(table.indexes_end(), 9);
        table.end_expiry();
        assert!(!table.is_iterated());
    }

    proptest! {
        /// After any additions and removals, a table has the entries of a list, in the same order.
        #[test]
        fn tables_keep_the_order_of_insertion(steps in proptest::collection::vec((0_u64..24, any::<bool>()), 0..300)) {
            let table = table();
            let mut list: Vec<(u64, u64)> = Vec::new();
            for (step, (n, adds)) in (0..).zip(steps) {
                let at = list.iter().position(|(known, _)| *known == n);
                if adds {
                    let before = table.insert(key(n), Value::Count(step), 0.0);
                    prop_assert_eq!(before.map(|value| value.count()), at.map(|at| list[at].1));
                    match at {
                        Some(at) => list[at].1 = step,
                        None => list.push((n, step)),
                    }
                } else {
                    let removed = table.remove(&[key(n)]).map(|value| value.count());
                    prop_assert_eq!(removed, at.map(|at| list.remove(at).1));
                }
                let found: Vec<_> =
                    table.entries().iter().map(|(key, value)| (key.clone(), value.count())).collect();
                prop_assert_eq!(table.len(), list.len());
                prop_assert_eq!(found.len(), list.len());
                for ((found, value), (n, step)) in found.iter().zip(&list) {
                    prop_assert!(equal(found, &key(*n)) && value == step);
                }
            }
        }
    }
}
