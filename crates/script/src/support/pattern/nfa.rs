//! Nondeterministic automata over bytes and the two ends of a string.

/// Symbol in front of the first byte of a string.
pub(super) const BEGIN: u16 = 256;
/// Symbol behind its last byte.
pub(super) const END: u16 = 257;
/// Bytes and the two ends.
pub(super) const SYMBOLS: usize = 258;

/// No state: where a fragment ends that is not yet connected.
const NONE: u32 = u32::MAX;

/// States of one automaton at most: repetitions multiply them.
pub(super) const STATES_MAX: usize = 1 << 19;

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

    /// The bytes that are not in the set; never the ends of a string.
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
    /// Consumes nothing; both ways at once.
    Split(u32, u32),
    Symbol(u16, u32),
    Set(u32, u32),
    /// The pattern with this number matches.
    Accept(u32),
}

/// A part of an automaton: states `low..` up to the end of the arena when it was made. Its last state is a
/// [`State::Step`] that leads nowhere yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    low: u32,
    start: u32,
    end: u32,
}

/// The states that a fragment is too much.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge;

/// An automaton under construction, and its form for the matcher.
///
/// Fragments are combined in the order in which they were made, the newest first: each one is a contiguous range at the
/// end of the arena, so a repetition copies a range.
#[derive(Clone, Debug, Default)]
pub(super) struct Nfa {
    pub(super) states: Vec<State>,
    pub(super) sets: Vec<SymbolSet>,
}

impl Nfa {
    fn push(&mut self, state: State) -> Result<u32, TooLarge> {
        if self.states.len() >= STATES_MAX {
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

    /// `first` and behind it `second`, which was made right after it.
    pub(super) fn concatenate(&mut self, first: Fragment, second: Fragment) -> Fragment {
        self.connect(first.end, second.start);
        Fragment { low: first.low, start: first.start, end: second.end }
    }

    /// `first` or `second`, which was made right after it.
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

    /// `of`, or nothing.
    pub(super) fn optional(&mut self, of: Fragment) -> Result<Fragment, TooLarge> {
        let nothing = self.empty()?;
        self.alternate(of, nothing)
    }

    /// `of`, once or more often.
    pub(super) fn repeat(&mut self, of: Fragment) -> Result<Fragment, TooLarge> {
        let end = self.states.len() as u32 + 1;
        let again = self.push(State::Split(of.start, end))?;
        self.push(State::Step(NONE))?;
        self.connect(of.end, again);
        Ok(Fragment { low: of.low, start: of.start, end })
    }

    /// `of`, any number of times.
    pub(super) fn closure(&mut self, of: Fragment) -> Result<Fragment, TooLarge> {
        let repeated = self.repeat(of)?;
        self.optional(repeated)
    }

    /// `of`, the newest fragment, at least `low` times, at least once; at most `high` times, where there is an upper bound.
    pub(super) fn counted(
        &mut self,
        of: Fragment,
        low: u32,
        high: Option<u32>,
    ) -> Result<Fragment, TooLarge> {
        // A fragment is copied before it is connected, since connecting overwrites its last state.
        let size = self.states.len() as u32 - of.low;
        let template: Vec<State> = self.states[of.low as usize..].to_vec();
        let mut whole = of;
        for _ in 1..low.max(1) {
            let copy = self.copy(&template, of, size)?;
            whole = self.concatenate(whole, copy);
        }
        match high {
            None => {
                let copy = self.copy(&template, of, size)?;
                let copy = self.closure(copy)?;
                whole = self.concatenate(whole, copy);
            }
            Some(high) => {
                for _ in low.max(1)..high {
                    let copy = self.copy(&template, of, size)?;
                    let copy = self.optional(copy)?;
                    whole = self.concatenate(whole, copy);
                }
            }
        }
        Ok(whole)
    }

    fn copy(&mut self, template: &[State], of: Fragment, size: u32) -> Result<Fragment, TooLarge> {
        let low = self.states.len() as u32;
        if self.states.len() + size as usize > STATES_MAX {
            return Err(TooLarge);
        }
        let moved = |at: u32| if at == NONE { NONE } else { at - of.low + low };
        self.states.extend(template.iter().map(|state| match *state {
            State::Step(a) => State::Step(moved(a)),
            State::Split(a, b) => State::Split(moved(a), moved(b)),
            State::Symbol(symbol, a) => State::Symbol(symbol, moved(a)),
            State::Set(set, a) => State::Set(set, moved(a)),
            State::Accept(number) => State::Accept(number),
        }));
        Ok(Fragment { low, start: moved(of.start), end: moved(of.end) })
    }

    /// Has `fragment` end in the acceptance of the pattern `number`.
    pub(super) fn accept(&mut self, fragment: Fragment, number: u32) -> Result<Fragment, TooLarge> {
        let at = self.push(State::Accept(number))?;
        self.connect(fragment.end, at);
        // Nothing leads behind an acceptance, but fragments have an end.
        let end = self.push(State::Step(NONE))?;
        Ok(Fragment { low: fragment.low, start: fragment.start, end })
    }
}

impl Fragment {
    pub(super) fn start(self) -> u32 {
        self.start
    }

    /// `new` with the range of `old` in front of it, which nothing leads to.
    pub(super) fn behind(old: Self, new: Self) -> Self {
        Self { low: old.low, ..new }
    }
}
