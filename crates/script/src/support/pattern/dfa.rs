//! Deterministic automata that are built lazily.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::nfa::{BEGIN, END, Nfa, SYMBOLS, State};

/// A transition is the offset of the target's own transitions, plus flags. Every value with a flag is greater
/// than every value without one, so that loops over bytes need one comparison for special cases.
const OFFSET: u32 = ACCEPTS - 1;
/// Flag: a pattern matches in the target.
const ACCEPTS: u32 = 1 << 29;
/// Flag: no match is possible from the target, which is the first state.
const DEAD: u32 = 1 << 30;
/// A transition that is not computed yet.
const UNKNOWN: u32 = u32::MAX;

/// Number of consecutive transitions from a state to itself after which the bytes that leave the state are
/// computed.
const SELF_LOOP_LIMIT: u32 = 4;

/// Number of searches before search accelerators are computed.
const ACCELERATE_AFTER: u32 = 16;

/// Maximum number of transitions: 4 MiB. Beyond that, all states are dropped and rebuilt on demand.
const MAX_TRANSITIONS: usize = 1 << 20;

/// A matcher for one pattern or for several numbered ones.
#[derive(Debug)]
pub(super) struct Dfa {
    nfa: Nfa,
    start: u32,
    /// The class of each symbol. No state distinguishes symbols of one class.
    class_of: Box<[u16; SYMBOLS]>,
    stride: usize,
    cache: RefCell<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    /// By state and class: [`OFFSET`] and flags.
    transitions: Vec<u32>,
    states: Vec<DfaState>,
    /// The initial state.
    start: Option<u32>,
    ids: HashMap<Arc<[u32]>, u32>,
    /// Scratch: for each NFA state, the number of the last search that reached it.
    seen: Vec<u32>,
    search: u32,
    stack: Vec<u32>,
    found: Vec<u32>,
    /// Number of searches, at most [`ACCELERATE_AFTER`].
    searches: u32,
    /// The state of a search while no match has begun.
    idle: Option<Idle>,
    /// For each examined state, the bytes that leave it if they are few.
    loops: Vec<Option<Option<LeavingBytes>>>,
    /// The bytes that a match may begin with, elsewhere and at the beginning of a string.
    first: [Option<Box<[bool; 256]>>; 2],
}

/// A state that most bytes do not leave.
#[derive(Debug)]
struct Idle {
    state: u32,
    /// The bytes that leave it.
    leaving: LeavingBytes,
}

#[derive(Debug)]
enum LeavingBytes {
    Never,
    One(u8),
    Two(u8, u8),
    Three(u8, u8, u8),
    More(Box<[bool; 256]>),
}

impl LeavingBytes {
    fn new(leaves: Box<[bool; 256]>) -> Self {
        let mut bytes = (0..=255_u8).filter(|byte| leaves[usize::from(*byte)]);
        match [bytes.next(), bytes.next(), bytes.next(), bytes.next()] {
            [None, ..] => LeavingBytes::Never,
            [Some(a), None, ..] => LeavingBytes::One(a),
            [Some(a), Some(b), None, _] => LeavingBytes::Two(a, b),
            [Some(a), Some(b), Some(c), None] => LeavingBytes::Three(a, b, c),
            _ => LeavingBytes::More(leaves),
        }
    }

    fn find(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            LeavingBytes::Never => None,
            LeavingBytes::One(a) => memchr::memchr(*a, bytes),
            LeavingBytes::Two(a, b) => memchr::memchr2(*a, *b, bytes),
            LeavingBytes::Three(a, b, c) => memchr::memchr3(*a, *b, *c, bytes),
            LeavingBytes::More(leaves) => bytes.iter().position(|byte| leaves[usize::from(*byte)]),
        }
    }
}

#[derive(Clone, Debug)]
struct DfaState {
    /// The NFA states that consume or accept, in ascending order.
    nfa_states: Arc<[u32]>,
    /// The patterns that match in this state, in ascending order.
    accepts: Arc<[u32]>,
}

/// The state of an interrupted search; created by [`Dfa::begin`].
#[derive(Clone, Debug)]
pub(super) struct Position(Arc<[u32]>);

impl Dfa {
    pub(super) fn new(nfa: Nfa, start: u32) -> Self {
        let (class_of, stride) = classes(&nfa);
        let cache = RefCell::new(Cache { seen: vec![0; nfa.states.len()], ..Cache::default() });
        Dfa { nfa, start, class_of, stride, cache }
    }

    /// Number of built states, of NFA states, and of bytes in use.
    pub(super) fn stats(&self) -> (usize, usize, usize) {
        let cache = self.cache.borrow();
        let bytes = cache.transitions.len() * 4
            + self.nfa.states.len() * (size_of::<State>() + 4)
            + cache
                .states
                .iter()
                .map(|s| s.nfa_states.len() * 4 + size_of::<DfaState>())
                .sum::<usize>();
        (cache.states.len(), self.nfa.states.len(), bytes)
    }

    /// Calls `f` with a walk from the initial state.
    pub(super) fn walk<R>(&self, f: impl FnOnce(&mut DfaWalk<'_>) -> R) -> R {
        let mut cache = self.cache.borrow_mut();
        let state = self.start_state(&mut cache);
        f(&mut DfaWalk { dfa: self, cache: &mut cache, state })
    }

    /// Begins an interruptible walk.
    pub(super) fn begin(&self) -> Position {
        self.walk(|walk| Position(walk.known().nfa_states.clone()))
    }

    /// Resumes a walk.
    pub(super) fn resume<R>(
        &self,
        position: &mut Position,
        f: impl FnOnce(&mut DfaWalk<'_>) -> R,
    ) -> R {
        let mut cache = self.cache.borrow_mut();
        self.start_state(&mut cache);
        let state = self.intern(&mut cache, position.0.to_vec());
        let mut walk = DfaWalk { dfa: self, cache: &mut cache, state };
        let result = f(&mut walk);
        position.0 = walk.known().nfa_states.clone();
        result
    }

    /// Calls `f` with the set of bytes that a match may begin with; with `begin`, at the beginning of a string.
    /// Empty matches are not covered. `None` until enough searches justify the computation.
    pub(super) fn with_first_bytes<R>(
        &self,
        begin: bool,
        f: impl FnOnce(&[bool; 256]) -> R,
    ) -> Option<R> {
        let mut cache = self.cache.borrow_mut();
        if cache.first[usize::from(begin)].is_none() {
            cache.searches += 1;
            if cache.searches < ACCELERATE_AFTER {
                return None;
            }
            let mut walk =
                DfaWalk { dfa: self, state: self.start_state(&mut cache), cache: &mut cache };
            if begin {
                walk.begin();
            }
            let state = walk.state;
            let targets = self.targets(&mut cache, state)?;
            let first = Box::new(targets.map(|target| target & DEAD == 0));
            cache.first[usize::from(begin)] = Some(first);
        }
        cache.first[usize::from(begin)].as_deref().map(f)
    }

    /// Whether the empty string matches; with `begin`, at the beginning of a string.
    pub(super) fn matches_empty(&self, begin: bool) -> bool {
        self.walk(|walk| {
            if begin {
                walk.begin();
            }
            walk.accepts()
        })
    }

    /// The target of each byte from a state; `None` if the automaton is too large for all of them.
    fn targets(&self, cache: &mut Cache, state: u32) -> Option<[u32; 256]> {
        let nfa_states =
            cache.states.get((state & OFFSET) as usize / self.stride)?.nfa_states.clone();
        let mut targets = [0; 256];
        for (byte, target) in targets.iter_mut().enumerate() {
            let class = self.class_of[byte];
            *target = cache.transitions[(state & OFFSET) as usize + usize::from(class)];
            if *target == UNKNOWN {
                *target = self.compute(cache, state, class);
            }
        }
        // Computing targets may have dropped states.
        let same = cache
            .states
            .get((state & OFFSET) as usize / self.stride)
            .is_some_and(|known| known.nfa_states == nfa_states);
        same.then_some(targets)
    }

    /// Determines the state of searches in which no match has begun.
    fn compute_idle(&self, cache: &mut Cache) -> Option<Idle> {
        let mut walk = DfaWalk { dfa: self, state: self.start_state(cache), cache: &mut *cache };
        walk.begin();
        let begin = walk.state;
        let from_begin = self.targets(cache, begin)?;
        let common = |target: u32| from_begin.iter().filter(|other| **other == target).count();
        let state = from_begin.iter().copied().max_by_key(|target| common(*target))?;
        if state >= ACCEPTS {
            return None;
        }
        let leaves = self.targets(cache, state)?.map(|target| target != state);
        let few = leaves.iter().filter(|leaves| **leaves).count() <= 128;
        few.then(|| Idle { state, leaving: LeavingBytes::new(Box::new(leaves)) })
    }

    /// The offset of the next byte, from `at`, that leaves a state; `None` if many bytes leave it. Also returns
    /// the state, which may have been renumbered.
    #[cold]
    fn leaves_at(
        &self,
        cache: &mut Cache,
        state: u32,
        bytes: &[u8],
        at: usize,
    ) -> (u32, Option<usize>) {
        let index = (state & OFFSET) as usize / self.stride;
        if cache.loops.len() <= index {
            cache.loops.resize_with(index + 1, || None);
        }
        if cache.loops.get(index).is_some_and(Option::is_none) {
            let nfa_states = cache.states.get(index).map(|known| known.nfa_states.clone());
            let leaving = self.targets(cache, state).and_then(|targets| {
                let leaves = targets.map(|target| target != state);
                let few = leaves.iter().filter(|leaves| **leaves).count() <= 3;
                few.then(|| LeavingBytes::new(Box::new(leaves)))
            });
            let again = self.intern(cache, nfa_states.unwrap_or_default().to_vec());
            if again != state {
                return (again, None);
            }
            if let Some(slot) = cache.loops.get_mut(index) {
                *slot = Some(leaving);
            }
        }
        let rest = bytes.get(at..).unwrap_or(&[]);
        let leaving = cache.loops.get(index).and_then(Option::as_ref).and_then(Option::as_ref);
        (state, leaving.map(|leaving| at + leaving.find(rest).unwrap_or(rest.len())))
    }

    #[inline]
    fn start_state(&self, cache: &mut Cache) -> u32 {
        match cache.start {
            Some(start) => start,
            None => self.find_start(cache),
        }
    }

    #[cold]
    fn find_start(&self, cache: &mut Cache) -> u32 {
        if cache.states.is_empty() {
            // The first state is the dead state, the second the initial state.
            self.intern(cache, Vec::new());
            cache.search += 1;
            cache.stack.push(self.start);
            let found = self.close(cache);
            self.intern(cache, found);
        }
        let start = self.value_of(cache, 1);
        cache.start = Some(start);
        start
    }

    /// The value of transitions to a state.
    fn value_of(&self, cache: &Cache, index: usize) -> u32 {
        let accepts = cache.states.get(index).is_some_and(|state| !state.accepts.is_empty());
        let flags = if index == 0 {
            DEAD
        } else if accepts {
            ACCEPTS
        } else {
            0
        };
        (index * self.stride) as u32 | flags
    }

    /// The states that consume or accept and are reachable from those on the stack without consuming.
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

    fn intern(&self, cache: &mut Cache, nfa_states: Vec<u32>) -> u32 {
        if let Some(index) = cache.ids.get(nfa_states.as_slice()) {
            return self.value_of(cache, *index as usize);
        }
        let mut accepts: Vec<u32> = nfa_states
            .iter()
            .filter_map(|at| match self.nfa.states.get(*at as usize) {
                Some(State::Accept(number)) => Some(*number),
                _ => None,
            })
            .collect();
        accepts.sort_unstable();
        let nfa_states: Arc<[u32]> = nfa_states.into();
        let index = cache.states.len();
        cache.ids.insert(nfa_states.clone(), index as u32);
        cache.states.push(DfaState { nfa_states, accepts: accepts.into() });
        let fill = if index == 0 { DEAD } else { UNKNOWN };
        cache.transitions.resize(cache.states.len() * self.stride, fill);
        self.value_of(cache, index)
    }

    #[cold]
    fn compute(&self, cache: &mut Cache, from: u32, class: u16) -> u32 {
        let from = (from & OFFSET) as usize;
        let nfa_states = cache.states[from / self.stride].nfa_states.clone();
        cache.search = cache.search.wrapping_add(1);
        if cache.search == 0 {
            cache.seen.fill(0);
            cache.search = 1;
        }
        // One symbol represents the class.
        let symbol = self.class_of.iter().position(|c| *c == class).unwrap_or(0) as u16;
        for at in nfa_states.iter() {
            match self.nfa.states.get(*at as usize) {
                Some(State::Symbol(expected, next)) if *expected == symbol => {
                    cache.stack.push(*next);
                }
                Some(State::Set(set, next))
                    if self.nfa.sets.get(*set as usize).is_some_and(|set| set.contains(symbol)) =>
                {
                    cache.stack.push(*next);
                }
                _ => {}
            }
        }
        let found = self.close(cache);
        if cache.transitions.len() + self.stride > MAX_TRANSITIONS.max(self.stride * 8) {
            cache.transitions.clear();
            cache.states.clear();
            cache.ids.clear();
            cache.idle = None;
            cache.loops.clear();
            cache.start = None;
            self.start_state(cache);
            return self.intern(cache, found);
        }
        let to = self.intern(cache, found);
        cache.transitions[from + usize::from(class)] = to;
        to
    }
}

/// A walk through the automaton.
pub(super) struct DfaWalk<'a> {
    dfa: &'a Dfa,
    cache: &'a mut Cache,
    state: u32,
}

impl DfaWalk<'_> {
    fn known(&self) -> &DfaState {
        &self.cache.states[(self.state & OFFSET) as usize / self.dfa.stride]
    }

    /// Whether no match is possible any more.
    #[inline]
    pub(super) fn is_dead(&self) -> bool {
        self.state & DEAD != 0
    }

    /// Whether a pattern matches at this position.
    #[inline]
    pub(super) fn accepts(&self) -> bool {
        self.state & ACCEPTS != 0
    }

    /// The patterns that match at this position.
    pub(super) fn accepted(&self) -> &[u32] {
        &self.known().accepts
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.symbol(u16::from(byte));
    }

    /// Consumes the beginning of the string.
    pub(super) fn begin(&mut self) {
        self.symbol(BEGIN);
    }

    /// Consumes the end of the string.
    pub(super) fn end(&mut self) {
        self.symbol(END);
    }

    #[inline(always)]
    fn symbol(&mut self, symbol: u16) {
        let class = self.dfa.class_of[usize::from(symbol)];
        let next = self.cache.transitions[(self.state & OFFSET) as usize + usize::from(class)];
        self.state =
            if next == UNKNOWN { self.dfa.compute(self.cache, self.state, class) } else { next };
    }

    /// Consumes `bytes` while a match is possible.
    pub(super) fn run(&mut self, bytes: &[u8]) {
        self.run_below::<DEAD>(bytes);
    }

    /// Consumes `bytes` up to the first byte after which a pattern matches.
    pub(super) fn run_to_match(&mut self, bytes: &[u8]) {
        if self.cache.searches < ACCELERATE_AFTER {
            self.cache.searches += 1;
            if self.cache.searches == ACCELERATE_AFTER && self.cache.idle.is_none() {
                // The walk is in a start state, which is interned again if states were dropped.
                let nfa_states = self.known().nfa_states.clone();
                self.cache.idle = self.dfa.compute_idle(self.cache);
                self.state = self.dfa.intern(self.cache, nfa_states.to_vec());
            }
        }
        self.run_below::<ACCEPTS>(bytes);
    }

    /// Consumes `bytes` until a transition has the flag `STOP` or a higher one.
    #[inline(always)]
    fn run_below<const STOP: u32>(&mut self, bytes: &[u8]) {
        let class_of = &*self.dfa.class_of;
        let mut at = 0;
        // Consecutive transitions from a state to itself.
        let mut self_loops = 0_u32;
        loop {
            let table = self.cache.transitions.as_slice();
            // Only searches have an idle state.
            let idle = self.cache.idle.as_ref().filter(|_| STOP == ACCEPTS);
            let idle_state = idle.map_or(UNKNOWN, |idle| idle.state);
            let mut state = self.state;
            let unknown = loop {
                if state == idle_state
                    && let Some(idle) = idle
                {
                    match idle.leaving.find(bytes.get(at..).unwrap_or_default()) {
                        Some(skipped) => at += skipped,
                        None => {
                            self.state = state;
                            return;
                        }
                    }
                }
                let Some(byte) = bytes.get(at) else {
                    self.state = state;
                    return;
                };
                let class = class_of[usize::from(*byte)];
                let next = table[(state & OFFSET) as usize + usize::from(class)];
                at += 1;
                if next < STOP {
                    if STOP == DEAD {
                        self_loops = if next == state { self_loops.saturating_add(1) } else { 0 };
                        if self_loops == SELF_LOOP_LIMIT {
                            break None;
                        }
                    }
                    state = next;
                } else if next == UNKNOWN {
                    break Some(class);
                } else {
                    self.state = next;
                    return;
                }
            };
            let Some(class) = unknown else {
                let (state, leaves) = self.dfa.leaves_at(self.cache, state, bytes, at);
                self.state = state;
                if let Some(leaves) = leaves {
                    at = leaves;
                    self_loops = 0;
                }
                continue;
            };
            self.state = self.dfa.compute(self.cache, state, class);
            if self.state >= STOP {
                return;
            }
        }
    }
}

/// The symbol classes that the states of `nfa` do not distinguish, and their number.
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
