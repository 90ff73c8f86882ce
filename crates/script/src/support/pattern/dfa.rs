//! Deterministic automata, built as far as strings ask for them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::nfa::{BEGIN, END, Nfa, SYMBOLS, State};

/// The state that leads nowhere.
const DEAD: u32 = 0;
/// A transition that was not computed yet.
const UNKNOWN: u32 = u32::MAX;

/// Transitions kept at most: 4 MiB. Beyond that, all states are dropped and built anew as they are needed.
const TRANSITIONS_MAX: usize = 1 << 20;

/// A matcher for one pattern, or for several that were numbered.
#[derive(Debug)]
pub(super) struct Dfa {
    nfa: Nfa,
    start: u32,
    /// The class of each symbol: symbols of one class are not distinguished by any state.
    class_of: Box<[u16; SYMBOLS]>,
    stride: usize,
    cache: RefCell<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    /// By state and class.
    transitions: Vec<u32>,
    states: Vec<Known>,
    ids: HashMap<Arc<[u32]>, u32>,
    /// Scratch: states of the NFA that a search reached, by the number of the search.
    seen: Vec<u32>,
    search: u32,
    stack: Vec<u32>,
    found: Vec<u32>,
    cleared: u64,
}

#[derive(Clone, Debug)]
struct Known {
    /// The states of the NFA that consume or accept, in ascending order.
    of: Arc<[u32]>,
    /// The patterns that match here, in ascending order.
    accepts: Arc<[u32]>,
}

/// Where a search that goes on with further bytes stands; made by [`Dfa::begin`].
#[derive(Clone, Debug)]
pub(super) struct Position(Arc<[u32]>);

impl Dfa {
    pub(super) fn new(nfa: Nfa, start: u32) -> Self {
        let (class_of, stride) = classes(&nfa);
        let cache = RefCell::new(Cache { seen: vec![0; nfa.states.len()], ..Cache::default() });
        Dfa { nfa, start, class_of, stride, cache }
    }

    /// States that are built at the moment, those of the automaton below, and bytes in use.
    pub(super) fn stats(&self) -> (usize, usize, usize) {
        let cache = self.cache.borrow();
        let bytes = cache.transitions.len() * 4
            + self.nfa.states.len() * (size_of::<State>() + 4)
            + cache.states.iter().map(|s| s.of.len() * 4 + size_of::<Known>()).sum::<usize>();
        (cache.states.len(), self.nfa.states.len(), bytes)
    }

    /// Calls `f` with a walk that begins at the start.
    pub(super) fn walk<R>(&self, f: impl FnOnce(&mut Walk<'_>) -> R) -> R {
        let mut cache = self.cache.borrow_mut();
        let state = self.start_state(&mut cache);
        f(&mut Walk { dfa: self, cache: &mut cache, state })
    }

    /// A walk that can be interrupted.
    pub(super) fn begin(&self) -> Position {
        self.walk(|walk| Position(walk.known().of.clone()))
    }

    /// Goes on with a walk.
    pub(super) fn resume<R>(
        &self,
        position: &mut Position,
        f: impl FnOnce(&mut Walk<'_>) -> R,
    ) -> R {
        let mut cache = self.cache.borrow_mut();
        self.start_state(&mut cache);
        let state = self.intern(&mut cache, position.0.to_vec());
        let mut walk = Walk { dfa: self, cache: &mut cache, state };
        let result = f(&mut walk);
        position.0 = walk.known().of.clone();
        result
    }

    fn start_state(&self, cache: &mut Cache) -> u32 {
        if cache.states.is_empty() {
            // The first state is that which leads nowhere, the second the start.
            self.intern(cache, Vec::new());
            cache.search += 1;
            cache.stack.push(self.start);
            let found = self.close(cache);
            return self.intern(cache, found);
        }
        1
    }

    /// The states that consume or accept, reached from those on the stack without consuming.
    fn close(&self, cache: &mut Cache) -> Vec<u32> {
        cache.found.clear();
        while let Some(at) = cache.stack.pop() {
            match cache.seen.get_mut(at as usize) {
                Some(seen) if *seen != cache.search => *seen = cache.search,
                _ => continue,
            }
            match self.nfa.states.get(at as usize) {
                Some(State::Step(next)) => cache.stack.push(*next),
                Some(State::Split(a, b)) => cache.stack.extend([*a, *b]),
                _ => cache.found.push(at),
            }
        }
        cache.found.sort_unstable();
        cache.found.clone()
    }

    fn intern(&self, cache: &mut Cache, of: Vec<u32>) -> u32 {
        if let Some(id) = cache.ids.get(of.as_slice()) {
            return *id;
        }
        let mut accepts: Vec<u32> = of
            .iter()
            .filter_map(|at| match self.nfa.states.get(*at as usize) {
                Some(State::Accept(number)) => Some(*number),
                _ => None,
            })
            .collect();
        accepts.sort_unstable();
        let of: Arc<[u32]> = of.into();
        let id = cache.states.len() as u32;
        cache.ids.insert(of.clone(), id);
        cache.states.push(Known { of, accepts: accepts.into() });
        let fill = if id == DEAD { DEAD } else { UNKNOWN };
        cache.transitions.resize(cache.states.len() * self.stride, fill);
        id
    }

    #[cold]
    fn compute(&self, cache: &mut Cache, from: u32, class: u16) -> u32 {
        let of = cache.states[from as usize].of.clone();
        cache.search = cache.search.wrapping_add(1);
        if cache.search == 0 {
            cache.seen.fill(0);
            cache.search = 1;
        }
        // One symbol of the class stands for all.
        let symbol = self.class_of.iter().position(|c| *c == class).unwrap_or(0) as u16;
        for at in of.iter() {
            match self.nfa.states.get(*at as usize) {
                Some(State::Symbol(of, next)) if *of == symbol => cache.stack.push(*next),
                Some(State::Set(set, next))
                    if self.nfa.sets.get(*set as usize).is_some_and(|set| set.contains(symbol)) =>
                {
                    cache.stack.push(*next);
                }
                _ => {}
            }
        }
        let found = self.close(cache);
        if cache.transitions.len() + self.stride > TRANSITIONS_MAX.max(self.stride * 8) {
            cache.transitions.clear();
            cache.states.clear();
            cache.ids.clear();
            cache.cleared += 1;
            self.start_state(cache);
            return self.intern(cache, found);
        }
        let to = self.intern(cache, found);
        cache.transitions[from as usize * self.stride + usize::from(class)] = to;
        to
    }
}

/// A walk through the automaton.
pub(super) struct Walk<'a> {
    dfa: &'a Dfa,
    cache: &'a mut Cache,
    state: u32,
}

impl Walk<'_> {
    fn known(&self) -> &Known {
        &self.cache.states[self.state as usize]
    }

    /// Whether nothing can match any more.
    #[inline]
    pub(super) fn is_dead(&self) -> bool {
        self.state == DEAD
    }

    /// Whether a pattern matches here.
    #[inline]
    pub(super) fn accepts(&self) -> bool {
        !self.known().accepts.is_empty()
    }

    /// The patterns that match here.
    pub(super) fn accepted(&self) -> &[u32] {
        &self.known().accepts
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.symbol(u16::from(byte));
    }

    /// The begin of the string.
    pub(super) fn begin(&mut self) {
        self.symbol(BEGIN);
    }

    /// The end of the string.
    pub(super) fn end(&mut self) {
        self.symbol(END);
    }

    #[inline(always)]
    fn symbol(&mut self, symbol: u16) {
        let class = self.dfa.class_of[usize::from(symbol)];
        let next =
            self.cache.transitions[self.state as usize * self.dfa.stride + usize::from(class)];
        self.state =
            if next == UNKNOWN { self.dfa.compute(self.cache, self.state, class) } else { next };
    }
}

/// The classes of symbols that the states of `nfa` do not distinguish, and their number.
fn classes(nfa: &Nfa) -> (Box<[u16; SYMBOLS]>, usize) {
    let mut class_of = Box::new([0_u16; SYMBOLS]);
    let mut count = 1_u16;
    let mut refine = |has: &dyn Fn(u16) -> bool| {
        let mut renamed: HashMap<(u16, bool), u16> = HashMap::new();
        for symbol in 0..SYMBOLS as u16 {
            let old = class_of[usize::from(symbol)];
            let next = renamed.len() as u16;
            class_of[usize::from(symbol)] = *renamed.entry((old, has(symbol))).or_insert(next);
        }
        count = renamed.len() as u16;
    };
    let mut single = [false; SYMBOLS];
    for state in &nfa.states {
        if let State::Symbol(symbol, _) = state
            && let Some(single) = single.get_mut(usize::from(*symbol))
            && !*single
        {
            *single = true;
            refine(&|s| s == *symbol);
        }
    }
    for set in &nfa.sets {
        refine(&|s| set.contains(s));
    }
    (class_of, usize::from(count))
}
