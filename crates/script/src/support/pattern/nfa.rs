//! Nondeterministic automata over bytes and the ends of a string.

/// Symbol before the first byte of a string.
pub(super) const BEGIN: u16 = 256;
/// Symbol after the last byte of a string.
pub(super) const END: u16 = 257;
/// Number of symbols: bytes and the two ends.
pub(super) const SYMBOLS: usize = 258;

/// No state: the successor of a fragment's end that is not yet connected.
const NONE: u32 = u32::MAX;

/// Maximum number of states, which counted repetitions multiply.
pub(super) const MAX_STATES: usize = 1 << 19;

/// A set of symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SymbolSet([u64; 5]);

impl SymbolSet {
    pub(super) fn insert(&mut self, symbol: u16) {
        if usize::from(symbol) < SYMBOLS {
            self.0[usize::from(symbol / 64)] |= 1 << (symbol % 64);
        }
    }

    pub(super) fn contains(&self, symbol: u16) -> bool {
        self.0.get(usize::from(symbol / 64)).is_some_and(|word| word >> (symbol % 64) & 1 == 1)
    }

    /// Replaces the bytes in the set by those not in it; the ends of a string are never in the result.
    pub(super) fn negate(&mut self) {
        for word in &mut self.0[..4] {
            *word = !*word;
        }
        self.0[4] = 0;
    }
}

/// A state: the input that it consumes, and its successors.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// Consumes nothing.
    Step(u32),
    /// Consumes nothing; continues with both successors.
    Split(u32, u32),
    Symbol(u16, u32),
    Set(u32, u32),
    /// The pattern with this number matches.
    Accept(u32),
}

/// A part of an automaton: the states from `low` to the end of the arena at its creation. Its last state is a
/// [`State::Step`] without a successor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    low: u32,
    start: u32,
    end: u32,
}

/// The automaton exceeds [`MAX_STATES`].
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge;

/// An automaton under construction, in the form that the matcher searches.
///
/// Fragments are combined in order of creation, the newest first: each is a contiguous range at the end of the
/// arena, so a repetition copies a range.
#[derive(Clone, Debug, Default)]
pub(super) struct Nfa {
    pub(super) states: Vec<State>,
    pub(super) sets: Vec<SymbolSet>,
}

impl Nfa {
    fn push(&mut self, state: State) -> Result<u32, TooLarge> {
        if self.states.len() >= MAX_STATES {
            return Err(TooLarge);
        }
        self.states.push(state);
        Ok(self.states.len() as u32 - 1)
    }

    fn connect(&mut self, from: u32, to: u32) {
        if let Some(state) = self.states.get_mut(from as usize) {
            *state = State::Step(to);
        }
    }

    fn consume(&mut self, state: impl FnOnce(u32) -> State) -> Result<Fragment, TooLarge> {
        let start = self.states.len() as u32;
        self.push(state(start + 1))?;
        let end = self.push(State::Step(NONE))?;
        Ok(Fragment { low: start, start, end })
    }

    pub(super) fn symbol(&mut self, symbol: u16) -> Result<Fragment, TooLarge> {
        self.consume(|next| State::Symbol(symbol, next))
    }

    pub(super) fn set(&mut self, set: SymbolSet) -> Result<Fragment, TooLarge> {
        let index = self.sets.iter().position(|s| *s == set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        });
        self.consume(|next| State::Set(index as u32, next))
    }

    pub(super) fn empty(&mut self) -> Result<Fragment, TooLarge> {
        let end = self.push(State::Step(NONE))?;
        Ok(Fragment { low: end, start: end, end })
    }

    /// `first` followed by `second`, which was created right after it.
    pub(super) fn concatenate(&mut self, first: Fragment, second: Fragment) -> Fragment {
        self.connect(first.end, second.start);
        Fragment { low: first.low, start: first.start, end: second.end }
    }

    /// `first` or `second`, which was created right after it.
    pub(super) fn alternate(
        &mut self,
        first: Fragment,
        second: Fragment,
    ) -> Result<Fragment, TooLarge> {
        let start = self.push(State::Split(first.start, second.start))?;
        let end = self.push(State::Step(NONE))?;
        self.connect(first.end, end);
        self.connect(second.end, end);
        Ok(Fragment { low: first.low, start, end })
    }

    /// `fragment` or the empty string.
    pub(super) fn optional(&mut self, fragment: Fragment) -> Result<Fragment, TooLarge> {
        let nothing = self.empty()?;
        self.alternate(fragment, nothing)
    }

    /// `fragment`, one or more times.
    pub(super) fn repeat(&mut self, fragment: Fragment) -> Result<Fragment, TooLarge> {
        let end = self.states.len() as u32 + 1;
        let again = self.push(State::Split(fragment.start, end))?;
        self.push(State::Step(NONE))?;
        self.connect(fragment.end, again);
        Ok(Fragment { low: fragment.low, start: fragment.start, end })
    }

    /// `fragment`, zero or more times.
    pub(super) fn closure(&mut self, fragment: Fragment) -> Result<Fragment, TooLarge> {
        let repeated = self.repeat(fragment)?;
        self.optional(repeated)
    }

    /// `fragment`, the newest fragment, at least `low` times (at least once) and at most `high` times, if that is
    /// limited.
    pub(super) fn counted(
        &mut self,
        fragment: Fragment,
        low: u32,
        high: Option<u32>,
    ) -> Result<Fragment, TooLarge> {
        // A fragment is copied before it is connected, because connecting overwrites its last state.
        let size = self.states.len() as u32 - fragment.low;
        let template: Vec<State> = self.states[fragment.low as usize..].to_vec();
        let mut whole = fragment;
        for _ in 1..low.max(1) {
            let copy = self.copy(&template, fragment, size)?;
            whole = self.concatenate(whole, copy);
        }
        match high {
            None => {
                let copy = self.copy(&template, fragment, size)?;
                let copy = self.closure(copy)?;
                whole = self.concatenate(whole, copy);
            }
            Some(high) => {
                for _ in low.max(1)..high {
                    let copy = self.copy(&template, fragment, size)?;
                    let copy = self.optional(copy)?;
                    whole = self.concatenate(whole, copy);
                }
            }
        }
        Ok(whole)
    }

    fn copy(
        &mut self,
        template: &[State],
        fragment: Fragment,
        size: u32,
    ) -> Result<Fragment, TooLarge> {
        let low = self.states.len() as u32;
        if self.states.len() + size as usize > MAX_STATES {
            return Err(TooLarge);
        }
        let moved = |at: u32| if at == NONE { NONE } else { at - fragment.low + low };
        self.states.extend(template.iter().map(|state| match *state {
            State::Step(a) => State::Step(moved(a)),
            State::Split(a, b) => State::Split(moved(a), moved(b)),
            State::Symbol(symbol, a) => State::Symbol(symbol, moved(a)),
            State::Set(set, a) => State::Set(set, moved(a)),
            State::Accept(number) => State::Accept(number),
        }));
        Ok(Fragment { low, start: moved(fragment.start), end: moved(fragment.end) })
    }

    /// Makes `fragment` end in the acceptance of the pattern `number`.
    pub(super) fn accept(&mut self, fragment: Fragment, number: u32) -> Result<Fragment, TooLarge> {
        let at = self.push(State::Accept(number))?;
        self.connect(fragment.end, at);
        // An accepting state has no successor, but every fragment has an end.
        let end = self.push(State::Step(NONE))?;
        Ok(Fragment { low: fragment.low, start: fragment.start, end })
    }
}

impl Fragment {
    pub(super) fn start(self) -> u32 {
        self.start
    }

    /// `new` with its range extended by that of `old`, which becomes unreachable.
    pub(super) fn with_prefix(old: Self, new: Self) -> Self {
        Self { low: old.low, ..new }
    }
}
