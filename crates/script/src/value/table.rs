//! Tables and sets.
//!
//! Entries are in an array in the order of their insertion, found through a hash table of their
//! indices. Removal leaves a gap; gaps are closed when they are many and no loop walks over the
//! table. With a seed, walks follow the slots of Zeek's dictionary instead, which is stored as
//! well.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hashbrown::HashTable;

use super::equal::{equal, hash_key, hash_net4, same_key};
use super::{List, Value, cycles, mask, order};
use crate::ids::{ExprId, TypeId};
use crate::support::order::{RobustWalk, SlotDict};
use crate::support::pattern::{PatternSet, PatternStats};

/// Attributes of a table's declaration or constructor.
#[derive(Clone, Debug, Default)]
pub struct TableAttrs {
    /// `&default`.
    pub default: Option<ExprId>,
    /// `&default_insert`.
    pub default_insert: Option<ExprId>,
    /// Which times expire entries, and after how long.
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
    walks: Cell<u32>,
    /// The value of `&default` where it is constant or a function, evaluated at its first use.
    pub default_cache: RefCell<Option<Value>>,
    /// Whether `&on_change` is being called.
    pub in_change: Cell<bool>,
    /// Whether its expiry has a timer.
    pub expiring: Cell<bool>,
    /// Whether a `when` watches it.
    pub watched: Cell<bool>,
}

#[derive(Default)]
struct State {
    places: HashTable<u32>,
    entries: Vec<Entry>,
    /// The widths of keys that are networks.
    widths: Option<Box<Widths>>,
    patterns: Option<Rc<(PatternSet, Vec<u32>)>>,
    order: Option<Box<SlotDict<u32, ()>>>,
    /// Places without an entry; only where there is an order.
    free: Vec<u32>,
    /// The place that was found last: `t[k]` often follows `k in t`.
    last: Cell<u32>,
}

/// How many networks there are of each width.
#[derive(Default)]
struct Widths {
    /// Widths in 128 bits with the number of networks, the longest first.
    all: Vec<(u8, u32)>,
    /// For each width of networks of version 4, whether there are any.
    of_4: u64,
}

impl Widths {
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
        self.find_4();
    }

    fn remove(&mut self, key: &Value) {
        let Some(net) = key.as_subnet() else { return };
        if let Some((_, count)) = self.all.iter_mut().find(|(width, _)| *width == net.width) {
            *count = count.saturating_sub(1);
        }
        self.all.retain(|(_, count)| *count > 0);
        self.find_4();
    }

    fn find_4(&mut self) {
        let of_4 = self.all.iter().filter_map(|(width, _)| width.checked_sub(96));
        self.of_4 = of_4.fold(0, |of_4, width| of_4 | 1 << width);
    }

    /// Widths of at most `longest`, the longest first.
    fn up_to(&self, longest: u8) -> impl Iterator<Item = u8> {
        self.all.iter().map(|(width, _)| *width).filter(move |width| *width <= longest)
    }
}

/// An entry.
#[derive(Clone)]
struct Entry {
    hash: u64,
    /// The key; a list where it has several parts. Unset where the entry was removed.
    key: Value,
    value: Value,
    /// When it was created, read or written; expiry goes by it.
    time: f64,
    /// The hash that the order goes by.
    slot: u64,
}

impl Table {
    /// An empty table. `single` says whether keys have one part.
    #[must_use]
    pub fn new(ty: TypeId, single: bool, attrs: Option<Rc<TableAttrs>>) -> Rc<Self> {
        let ordered = attrs.as_ref().is_some_and(|attrs| attrs.ordered);
        let order = if ordered || order::hashes().is_none() { None } else { Some(Box::default()) };
        let table = Rc::new(Self {
            ty: Cell::new(ty),
            single: Cell::new(single),
            state: RefCell::new(State { order, ..State::default() }),
            attrs: RefCell::new(attrs),
            walks: Cell::new(0),
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

    /// Gives a table of an unspecified type its type.
    pub fn set_ty(&self, ty: TypeId, single: bool) {
        self.ty.set(ty);
        self.single.set(single);
    }

    /// Its attributes.
    #[must_use]
    pub fn attrs(&self) -> Option<Rc<TableAttrs>> {
        self.attrs.borrow().clone()
    }

    /// Changes its attributes.
    pub fn set_attrs(&self, attrs: Option<Rc<TableAttrs>>) {
        let ordered = attrs.as_ref().is_some_and(|attrs| attrs.ordered);
        if ordered {
            self.state.borrow_mut().order = None;
        }
        *self.default_cache.borrow_mut() = None;
        *self.attrs.borrow_mut() = attrs;
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.borrow().places.len()
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

    /// Whether finding an entry changes nothing: no `&read_expire`.
    #[must_use]
    pub fn is_read_freely(&self) -> bool {
        self.attrs.borrow().as_ref().is_none_or(|attrs| attrs.expire.is_none())
    }

    /// Whether changing an entry has no further effects: no expiry, no `&on_change`.
    #[must_use]
    pub fn is_written_freely(&self) -> bool {
        self.walks.get() == 0
            && self
                .attrs
                .borrow()
                .as_ref()
                .is_none_or(|attrs| attrs.expire.is_none() && attrs.on_change.is_none())
    }

    /// Whether a loop walks over it.
    #[must_use]
    pub fn is_walked(&self) -> bool {
        self.walks.get() > 0
    }

    /// Whether nothing is going on with it: no walk, no call for a change, no `when` that watches it.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.walks.get() == 0
            && !self.in_change.get()
            && !self.watched.get()
            && self.state.borrow().order.is_none()
    }

    /// Whether there are keys that are networks.
    #[must_use]
    pub fn has_networks(&self) -> bool {
        self.state.borrow().widths.is_some()
    }

    /// The value of the entry whose key is the longest network that has this address or network in it; unset where there is none.
    #[must_use]
    pub fn get_longest(&self, key: &Value) -> Value {
        match self.find_longest(key) {
            Some(place) => self.value_at(place),
            None => Value::Unset,
        }
    }

    /// Adds or changes an entry; `ty` is the type of lists of keys. Returns the previous value.
    pub fn put(&self, key: &[Value], value: Value, time: f64, ty: TypeId) -> Option<Value> {
        let hash = hash_key(key);
        {
            let state = &mut *self.state.borrow_mut();
            if let Some(place) = state.find(key, hash) {
                state.found(place);
                let entry = state.entries.get_mut(place)?;
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

    /// The place of the entry with exactly this key, given in parts.
    #[must_use]
    pub fn find(&self, key: &[Value]) -> Option<usize> {
        let mut state = self.state.borrow_mut();
        if state.places.is_empty() {
            return None;
        }
        let place = state.find(key, hash_key(key))?;
        state.found(place);
        Some(place)
    }

    /// The value of the entry with exactly this key; unset in sets.
    #[must_use]
    pub fn get(&self, key: &[Value]) -> Option<Value> {
        let place = self.find(key)?;
        Some(self.value_at(place))
    }

    /// The value of the entry with exactly this key; unset where there is none, and in sets.
    #[must_use]
    pub fn get_or_unset(&self, key: &[Value]) -> Value {
        let mut state = self.state.borrow_mut();
        if state.places.is_empty() {
            return Value::Unset;
        }
        let Some(place) = state.find(key, hash_key(key)) else { return Value::Unset };
        state.found(place);
        match state.entries.get(place) {
            Some(entry) => entry.value.clone(),
            None => Value::Unset,
        }
    }

    /// The place of the entry whose key is the longest network that has this address or network in it.
    #[must_use]
    pub fn find_longest(&self, key: &Value) -> Option<usize> {
        let state = self.state.borrow();
        let widths = state.widths.as_ref()?;
        let version_4 = match key {
            Value::Addr4(address) => Some((*address, 32)),
            Value::Net4(prefix, width) => Some((*prefix, *width)),
            _ => None,
        };
        let mut longest = 128;
        if let Some((address, width)) = version_4 {
            // Networks of version 4 first: they are 96 bits longer in the form of version 6.
            let bits = u32::from_be_bytes(address);
            let mut left = widths.of_4 & (u64::MAX >> (63 - u32::from(width.min(32))));
            while left != 0 {
                let width = 63 - left.leading_zeros();
                left &= !(1 << width);
                let kept = u32::MAX.checked_shl(32 - width).unwrap_or(0);
                if let Some(place) = state.find_net4((bits & kept).to_be_bytes(), width as u8) {
                    return Some(place);
                }
            }
            longest = 95;
            // Few tables have networks of both versions.
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
        widths.up_to(longest).find_map(|width| {
            let probe = [Value::subnet(mask(address, width), width)];
            state.find(&probe, hash_key(&probe))
        })
    }

    /// Places of all entries whose keys are networks that contain, or are within, `key`.
    #[must_use]
    pub fn places_containing(&self, key: &Value) -> Vec<usize> {
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
        for width in state.widths.iter().flat_map(|widths| widths.up_to(longest)) {
            let probe = [Value::subnet(mask(address, width), width)];
            found.extend(state.find(&probe, hash_key(&probe)));
        }
        found
    }

    /// Places of the entries whose keys are patterns that match all of `text`, in the order of their keys.
    #[must_use]
    pub fn places_matching(&self, text: &[u8]) -> Vec<usize> {
        let set = {
            let mut state = self.state.borrow_mut();
            match &state.patterns {
                Some(set) => Rc::clone(set),
                None => {
                    let mut places = Vec::new();
                    let mut texts = Vec::new();
                    for place in state.walk_places() {
                        if let Some(Value::Pattern(pattern)) =
                            state.entries.get(place as usize).map(|entry| &entry.key)
                        {
                            places.push(place);
                            texts.push(pattern.text().to_vec());
                        }
                    }
                    let set = Rc::new((PatternSet::new(texts), places));
                    state.patterns = Some(Rc::clone(&set));
                    set
                }
            }
        };
        set.0
            .matching(text)
            .into_iter()
            .filter_map(|index| set.1.get(index as usize).map(|place| *place as usize))
            .collect()
    }

    /// The size of the automaton of keys that are patterns; nothing before the first look-up.
    #[must_use]
    pub fn pattern_stats(&self) -> PatternStats {
        let state = self.state.borrow();
        state.patterns.as_ref().map(|set| set.0.stats()).unwrap_or_default()
    }

    /// The value at a place.
    #[must_use]
    pub fn value_at(&self, place: usize) -> Value {
        match self.state.borrow().entries.get(place) {
            Some(entry) => entry.value.clone(),
            None => Value::Unset,
        }
    }

    /// The key at a place: unset where there is no entry.
    #[must_use]
    pub fn key_at(&self, place: usize) -> Value {
        self.state.borrow().entries.get(place).map(|entry| entry.key.clone()).unwrap_or_default()
    }

    /// Key, value and time at a place.
    #[must_use]
    pub fn entry_at(&self, place: usize) -> Option<(Value, Value, f64)> {
        let state = self.state.borrow();
        let entry = state.entries.get(place)?;
        entry.key.is_set().then(|| (entry.key.clone(), entry.value.clone(), entry.time))
    }

    /// Behind the last place.
    #[must_use]
    pub fn places_end(&self) -> usize {
        self.state.borrow().entries.len()
    }

    /// Changes the time of the entry at a place.
    pub fn touch(&self, place: usize, time: f64) {
        if let Some(entry) = self.state.borrow_mut().entries.get_mut(place) {
            entry.time = time;
        }
    }

    /// Changes the value at a place.
    pub fn set_at(&self, place: usize, value: Value) {
        let old = {
            let mut state = self.state.borrow_mut();
            state.entries.get_mut(place).map(|entry| std::mem::replace(&mut entry.value, value))
        };
        drop(old);
    }

    /// Adds or changes an entry. The key is given in stored form: a [`Value::List`] if it has
    /// several parts. Returns the previous value.
    pub fn insert(&self, key: Value, value: Value, time: f64) -> Option<Value> {
        let hash = hash_key(parts(&key));
        {
            let state = &mut *self.state.borrow_mut();
            if let Some(place) = state.find(parts(&key), hash) {
                state.found(place);
                let entry = state.entries.get_mut(place)?;
                entry.time = time;
                return Some(std::mem::replace(&mut entry.value, value));
            }
        }
        self.add(key, value, time, hash);
        None
    }

    /// Adds an entry that is not there.
    fn add(&self, key: Value, value: Value, time: f64, hash: u64) {
        let state = &mut *self.state.borrow_mut();
        let reused = state.free.pop();
        let place = reused.unwrap_or(u32::try_from(state.entries.len()).unwrap_or(u32::MAX));
        if let Value::Net4(..) | Value::Net6(_) = key {
            state.widths.get_or_insert_default().add(&key);
        }
        state.patterns = None;
        let mut slot = 0;
        if let Some(order) = &mut state.order {
            slot = order::hash(&key).unwrap_or(0);
            order.insert(slot, place, ());
        }
        let entry = Entry { hash, key, value, time, slot };
        match reused.and_then(|place| state.entries.get_mut(place as usize)) {
            Some(free) => *free = entry,
            None => state.entries.push(entry),
        }
        let entries = &state.entries;
        state.places.insert_unique(hash, place, |place| {
            entries.get(*place as usize).map_or(0, |entry| entry.hash)
        });
    }

    /// Removes an entry; returns its value.
    pub fn remove(&self, key: &[Value]) -> Option<Value> {
        let hash = hash_key(key);
        let state = &mut *self.state.borrow_mut();
        let place = state.find(key, hash)?;
        state.remove_at(place, self.walks.get() == 0)
    }

    /// Removes all entries.
    pub fn clear(&self) {
        let order = self.state.borrow().order.is_some().then(Box::default);
        let fresh = State { order, ..State::default() };
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

    /// Keys and values in the order of a walk.
    #[must_use]
    pub fn entries(&self) -> Vec<(Value, Value)> {
        let state = self.state.borrow();
        match &state.order {
            None => state
                .entries
                .iter()
                .filter(|entry| entry.key.is_set())
                .map(|entry| (entry.key.clone(), entry.value.clone()))
                .collect(),
            Some(order) => order
                .iter()
                .filter_map(|(place, ())| state.entries.get(*place as usize))
                .map(|entry| (entry.key.clone(), entry.value.clone()))
                .collect(),
        }
    }

    /// Keys in the order of a walk.
    #[must_use]
    pub fn keys(&self) -> Vec<Value> {
        self.entries().into_iter().map(|(key, _)| key).collect()
    }

    /// Keys, values and times in the order of insertion.
    #[must_use]
    pub fn entries_with_times(&self) -> Vec<(Value, Value, f64)> {
        let state = self.state.borrow();
        state
            .walk_places()
            .into_iter()
            .filter_map(|place| state.entries.get(place as usize))
            .map(|entry| (entry.key.clone(), entry.value.clone(), entry.time))
            .collect()
    }

    /// A walk begins: indices stay valid until it ends. Returns the indices in order if they are
    /// not sorted.
    #[must_use]
    pub fn walk_begins(&self) -> Option<Vec<u32>> {
        self.walks.set(self.walks.get() + 1);
        self.state.borrow_mut().order.as_mut().map(|order| {
            order.begin_loop();
            order.iter().map(|(place, ())| *place).collect()
        })
    }

    /// A walk ends.
    pub fn walk_ends(&self) {
        self.walks.set(self.walks.get().saturating_sub(1));
        if let Some(order) = &mut self.state.borrow_mut().order {
            order.end_loop();
        }
    }

    /// A walk begins that sees each entry once, whatever is removed meanwhile; `None` where indices stay valid
    /// without it.
    #[must_use]
    pub fn robust_begins(&self) -> Option<RobustWalk> {
        self.state.borrow_mut().order.as_mut().map(|order| order.begin_robust())
    }

    /// The place of the next entry of such a walk.
    #[must_use]
    pub fn robust_next(&self, walk: &RobustWalk) -> Option<u32> {
        let mut state = self.state.borrow_mut();
        state.order.as_mut()?.next_robust(walk).map(|(_, place)| place)
    }

    /// Such a walk ends.
    pub fn robust_ends(&self, walk: RobustWalk) {
        if let Some(order) = &mut self.state.borrow_mut().order {
            order.end_robust(walk);
        }
    }

    /// The next entry of a walk in index order, and the index to continue from.
    #[must_use]
    pub fn next_from(&self, mut place: usize) -> Option<(usize, Value, Value)> {
        let state = self.state.borrow();
        loop {
            let entry = state.entries.get(place)?;
            place += 1;
            if entry.key.is_set() {
                return Some((place, entry.key.clone(), entry.value.clone()));
            }
        }
    }
}

impl Entry {
    /// Whether its key has these parts.
    #[inline]
    fn is(&self, key: &[Value]) -> bool {
        match (&self.key, key) {
            (Value::Count(one), [Value::Count(other)]) => one == other,
            (Value::List(list), parts) if parts.len() != 1 => same_key(&list.items, parts),
            (one, [part]) => equal(one, part),
            _ => false,
        }
    }
}

impl State {
    /// An entry was looked up: the order may move it to where it belongs.
    fn found(&mut self, place: usize) {
        if let (Some(order), Some(entry)) = (&mut self.order, self.entries.get(place)) {
            order.get_with(entry.slot, |other| *other as usize == place);
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
        let place = self.search(key, hash)?;
        self.last.set(u32::try_from(place).unwrap_or(u32::MAX));
        Some(place)
    }

    /// The place of a network of version 4: as [`find`](Self::find), without a key in memory.
    #[inline]
    fn find_net4(&self, prefix: [u8; 4], width: u8) -> Option<usize> {
        let hash = hash_net4(prefix, width);
        let is_it = |entry: &Entry| matches!(entry.key, Value::Net4(other, of) if other == prefix && of == width);
        let last = self.last.get() as usize;
        if self.entries.get(last).is_some_and(&is_it) {
            return Some(last);
        }
        let place = *self
            .places
            .find(hash, |place| self.entries.get(*place as usize).is_some_and(&is_it))?;
        self.last.set(place);
        Some(place as usize)
    }

    fn search(&self, key: &[Value], hash: u64) -> Option<usize> {
        if let [Value::Count(number)] = key {
            let is_it = |place: &u32| {
                self.entries.get(*place as usize).is_some_and(|entry| match entry.key {
                    Value::Count(other) => other == *number,
                    Value::Int(other) => u64::try_from(other) == Ok(*number),
                    _ => false,
                })
            };
            return self.places.find(hash, is_it).map(|place| *place as usize);
        }
        self.places
            .find(hash, |place| {
                self.entries
                    .get(*place as usize)
                    .is_some_and(|entry| entry.hash == hash && entry.is(key))
            })
            .map(|place| *place as usize)
    }

    fn walk_places(&self) -> Vec<u32> {
        match &self.order {
            Some(order) => order.iter().map(|(place, ())| *place).collect(),
            None => (0..self.entries.len())
                .filter(|place| self.entries.get(*place).is_some_and(|entry| entry.key.is_set()))
                .filter_map(|place| u32::try_from(place).ok())
                .collect(),
        }
    }

    fn remove_at(&mut self, place: usize, may_move: bool) -> Option<Value> {
        let entry = self.entries.get_mut(place)?;
        let key = std::mem::take(&mut entry.key);
        let value = std::mem::take(&mut entry.value);
        let (hash, slot) = (entry.hash, entry.slot);
        let wanted = u32::try_from(place).ok()?;
        if let Ok(found) = self.places.find_entry(hash, |place| *place == wanted) {
            found.remove();
        }
        if let (Value::Net4(..) | Value::Net6(_), Some(widths)) = (&key, &mut self.widths) {
            widths.remove(&key);
        }
        self.patterns = None;
        if let Some(order) = &mut self.order {
            order.remove_with(slot, |place| *place == wanted);
            self.free.push(wanted);
            return Some(value);
        }
        let live = self.places.len();
        if may_move && self.entries.len() > 16 && self.entries.len() - live > live {
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
        for place in &mut self.places {
            *place = moved.get(*place as usize).copied().unwrap_or(u32::MAX);
        }
        self.patterns = None;
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
