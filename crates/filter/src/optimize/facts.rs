//! Facts that the tests on the path to a block have established.
//!
//! A packet's bytes do not change, so a fact holds from where it was learned, except that setting a
//! variable invalidates facts about values that depend on it.

use crate::bpf;
use crate::ir::{BlockId, Node, Set, Step, Test, ValueId, Values};

/// Maximum number of facts of a kind; more would cost time and decide little.
const MAX_FACTS: usize = 32;
/// Maximum number of excluded numbers of a value.
const MAX_EXCLUDED: usize = 16;

/// The possible numbers of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Domain {
    low: u32,
    high: u32,
    /// Mask of known bits, and their values.
    known: u32,
    bits: u32,
    /// Excluded numbers, sorted.
    excluded: Vec<u32>,
}

impl Domain {
    fn exclude(&mut self, k: u32) {
        if k == self.low && k < self.high {
            self.low += 1;
        } else if k == self.high && k > self.low {
            self.high -= 1;
        } else if let Err(at) = self.excluded.binary_search(&k)
            && self.excluded.len() < MAX_EXCLUDED
        {
            self.excluded.insert(at, k);
        }
    }

    fn excludes(&self, k: u32) -> bool {
        k < self.low
            || k > self.high
            || (k ^ self.bits) & self.known != 0
            || self.excluded.binary_search(&k).is_ok()
    }

    /// The union with another domain.
    fn join(&mut self, other: &Self) {
        let keep: Vec<u32> = self.excluded.iter().copied().filter(|k| other.excludes(*k)).collect();
        let more = other.excluded.iter().copied().filter(|k| self.excludes(*k));
        let mut excluded: Vec<u32> = keep.iter().copied().chain(more).collect();
        excluded.sort_unstable();
        excluded.dedup();
        excluded.truncate(MAX_EXCLUDED);
        self.excluded = excluded;
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
        self.known &= other.known & !(self.bits ^ other.bits);
        self.bits &= self.known;
    }
}

/// Facts at a point in the graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The domain of each value.
    domains: Vec<(ValueId, Domain)>,
    /// Results of tests; if `plain`, with the block, so that equal tests on two paths to a point
    /// establish nothing there.
    tests: Vec<(Test, bool, BlockId)>,
    /// For each evaluated base, the number of bytes found present.
    present: Vec<(Option<ValueId>, u64)>,
    /// Divisions that succeeded.
    divided: Vec<ValueId>,
    /// Restricts facts to equal tests, and equality tests of one value; bytes count as present.
    plain: bool,
    /// The current block, if `plain`.
    pub(super) at: BlockId,
}

impl Facts {
    /// No facts, in the restricted mode that decides whether an expression is refused: see
    /// [`super::contradicts`].
    pub(super) fn plain() -> Self {
        Self { plain: true, ..Self::default() }
    }

    /// The facts that hold on both of two joining paths.
    pub(crate) fn meet(&mut self, other: &Self) {
        self.domains.retain_mut(|(id, domain)| match other.domain(*id) {
            Some(there) => {
                domain.join(there);
                true
            }
            None => false,
        });
        self.tests.retain(|fact| other.tests.contains(fact));
        self.present.retain_mut(|(base, end)| match other.present_from(*base) {
            Some(there) => {
                *end = there.min(*end);
                true
            }
            None => false,
        });
        self.divided.retain(|id| other.divided.contains(id));
    }

    /// Invalidates facts about values that depend on a variable.
    pub(crate) fn forget(&mut self, values: &Values, var: u8) {
        let stays = |id: ValueId| !values.mentions(id, var);
        self.domains.retain(|(id, _)| stays(*id));
        self.tests.retain(|(t, ..)| stays(t.left) && stays(t.right));
        self.present.retain(|(base, _)| base.is_none_or(stays));
        self.divided.retain(|id| stays(*id));
    }

    /// Adds the facts after a block's step held or failed.
    pub(crate) fn learn(&mut self, values: &Values, step: &Step, held: bool) {
        match step {
            Step::Test(test) if self.plain => self.tests.push((*test, held, self.at)),
            Step::In(..) | Step::In6(..) if self.plain => (),
            Step::Test(test) => {
                self.touch(values, test.left);
                self.touch(values, test.right);
                match values.as_const(test.right) {
                    Some(k) => self.learn_test(values, *test, k, held),
                    None => self.learn_other(*test, held),
                }
            }
            Step::In(value, set) => {
                self.touch(values, *value);
                if let Some(set) = match held {
                    true => Some(&**set),
                    false => None,
                } && let Some((low, high)) = set.hull()
                {
                    self.narrow(values, *value, low, high);
                    if low == high {
                        self.learn_bits(values, *value, u32::MAX, low);
                    }
                } else if let [(low, high)] = set.ranges() {
                    // Outside of one range at either end of all numbers.
                    let (low, high) = (*low, *high);
                    if low == 0 && high < u32::MAX {
                        self.narrow(values, *value, high + 1, u32::MAX);
                    } else if high >= values.max_value(*value) && low > 0 {
                        self.narrow(values, *value, 0, low - 1);
                    } else if low == high {
                        self.exclude(values, *value, low);
                    }
                } else {
                    for (low, high) in set.ranges().iter().take(MAX_EXCLUDED) {
                        if low == high {
                            self.exclude(values, *value, *low);
                        }
                    }
                }
            }
            Step::In6(words, _) => {
                for word in words {
                    self.touch(values, *word);
                }
            }
            Step::Set(var, value) => {
                self.touch(values, *value);
                self.forget(values, *var);
            }
            Step::Code(..) | Step::Return(_) => (),
        }
    }

    fn learn_test(&mut self, values: &Values, test: Test, k: u32, held: bool) {
        let id = test.left;
        match (test.op, held) {
            (bpf::JEQ, true) => {
                self.narrow(values, id, k, k);
                self.learn_bits(values, id, u32::MAX, k);
            }
            (bpf::JEQ, false) => self.exclude(values, id, k),
            (bpf::JGT, true) => self.narrow(values, id, k.saturating_add(1), u32::MAX),
            (bpf::JGT, false) => self.narrow(values, id, 0, k),
            (bpf::JGE, true) => self.narrow(values, id, k, u32::MAX),
            (bpf::JGE, false) => self.narrow(values, id, 0, k.saturating_sub(1)),
            (_, false) => self.learn_bits(values, id, k, 0),
            (_, true) if k.is_power_of_two() => self.learn_bits(values, id, k, k),
            _ => self.learn_other(test, held),
        }
    }

    fn learn_other(&mut self, test: Test, held: bool) {
        if self.tests.len() < MAX_FACTS && !self.tests.contains(&(test, held, 0)) {
            self.tests.push((test, held, 0));
        }
    }

    /// Known bits under a mask; also those of the value below its own mask.
    fn learn_bits(&mut self, values: &Values, id: ValueId, mask: u32, bits: u32) {
        let (root, over) = values.unmasked(id);
        let known = mask & over;
        if known != 0
            && let Some(domain) = self.domain_mut(values, root)
        {
            domain.known |= known;
            domain.bits = domain.bits & !known | bits & known;
        }
    }

    fn narrow(&mut self, values: &Values, id: ValueId, low: u32, high: u32) {
        if let Some(domain) = self.domain_mut(values, id) {
            domain.low = domain.low.max(low);
            domain.high = domain.high.min(high);
        }
    }

    fn exclude(&mut self, values: &Values, id: ValueId, k: u32) {
        if let Some(domain) = self.domain_mut(values, id) {
            domain.exclude(k);
        }
    }

    fn domain(&self, id: ValueId) -> Option<&Domain> {
        let at = self.domains.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.domains[at].1)
    }

    fn domain_mut(&mut self, values: &Values, id: ValueId) -> Option<&mut Domain> {
        let at = match self.domains.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(at) => at,
            Err(_) if self.domains.len() >= MAX_FACTS => return None,
            Err(at) => {
                let high = values.max_value(id);
                let all = Domain { low: 0, high, known: 0, bits: 0, excluded: Vec::new() };
                self.domains.insert(at, (id, all));
                at
            }
        };
        self.domains.get_mut(at).map(|(_, domain)| domain)
    }

    fn present_from(&self, base: Option<ValueId>) -> Option<u64> {
        self.present.iter().find(|(b, _)| *b == base).map(|(_, end)| *end)
    }

    /// Records that a value was evaluated without a fault.
    pub(crate) fn touch(&mut self, values: &Values, id: ValueId) {
        if !values.may_fault(id) {
            return;
        }
        match values.node(id) {
            Node::Load(size, base, k) => {
                if let Some(base) = base {
                    self.touch(values, base);
                }
                self.found(base, u64::from(k) + u64::from(size));
            }
            Node::HeaderLen(k) => self.found(None, u64::from(k) + 1),
            Node::Neg(a) => self.touch(values, a),
            Node::Binary(op, a, b) => {
                self.touch(values, a);
                self.touch(values, b);
                if matches!(op, bpf::DIV | bpf::MOD)
                    && self.divided.len() < MAX_FACTS
                    && !self.divided.contains(&id)
                {
                    self.divided.push(id);
                }
            }
            Node::Const(_) | Node::Len | Node::Var(_) => (),
        }
    }

    fn found(&mut self, base: Option<ValueId>, end: u64) {
        match self.present.iter().position(|(b, _)| *b == base) {
            Some(at) => self.present[at].1 = end.max(self.present[at].1),
            None if self.present.len() < MAX_FACTS => self.present.push((base, end)),
            None => (),
        }
    }

    /// Whether evaluating a value cannot fault, by its definition or because it was evaluated
    /// before.
    pub(crate) fn safe(&self, values: &Values, id: ValueId) -> bool {
        if !values.may_fault(id) {
            return true;
        }
        match values.node(id) {
            Node::Load(size, base, k) => {
                let end = u64::from(k) + u64::from(size);
                self.present_from(base).is_some_and(|found| found >= end)
            }
            Node::HeaderLen(k) => self.present_from(None).is_some_and(|f| f > u64::from(k)),
            Node::Neg(a) => self.safe(values, a),
            Node::Binary(op, a, b) => {
                let divides = matches!(op, bpf::DIV | bpf::MOD);
                let fine = !divides
                    || values.as_const(b).is_some_and(|k| k != 0)
                    || self.divided.contains(&id);
                fine && self.safe(values, a) && self.safe(values, b)
            }
            Node::Const(_) | Node::Len | Node::Var(_) => true,
        }
    }

    /// Whether a step is unnecessary if both of its targets are equal.
    pub(crate) fn idle(&self, values: &Values, step: &Step) -> bool {
        match step {
            Step::Test(_) | Step::In(..) | Step::In6(..) if self.plain => true,
            Step::Test(test) => self.safe(values, test.left) && self.safe(values, test.right),
            Step::In(value, _) => self.safe(values, *value),
            Step::In6(words, _) => words.iter().all(|w| self.safe(values, *w)),
            Step::Set(..) | Step::Code(..) | Step::Return(_) => false,
        }
    }

    /// The number of a value, if it is known.
    fn number(&self, values: &Values, id: ValueId) -> Option<u32> {
        if let Some(domain) = self.domain(id)
            && domain.low == domain.high
        {
            return Some(domain.low);
        }
        match values.node(id) {
            Node::Const(k) => Some(k),
            Node::Binary(op, a, b) => {
                bpf::alu(op, self.number(values, a)?, self.number(values, b)?)
            }
            Node::Neg(a) => self.number(values, a).map(u32::wrapping_neg),
            _ => None,
        }
    }

    /// The known result of a step, independent of the bytes present.
    pub(crate) fn decide(&self, values: &Values, step: &Step) -> Option<bool> {
        if self.idle(values, step) { self.sure(values, step) } else { None }
    }

    /// The known result of a step, given that the bytes it reads are present.
    pub(crate) fn sure(&self, values: &Values, step: &Step) -> Option<bool> {
        match step {
            Step::Test(test) => self.decide_test(values, *test),
            Step::In(value, set) => self.decide_in(values, *value, set),
            _ => None,
        }
    }

    fn decide_in(&self, values: &Values, value: ValueId, set: &Set) -> Option<bool> {
        if set.is_empty() {
            return Some(false);
        }
        let (low, high) = self.interval(values, value);
        let behind = set.ranges().partition_point(|(from, _)| *from <= high);
        match behind.checked_sub(1).map(|i| set.ranges()[i]) {
            None => Some(false),
            Some((_, to)) if to < low => Some(false),
            Some((from, to)) if from <= low && to >= high => Some(true),
            // One number that the value is known not to be.
            _ => set.single().filter(|k| self.never(values, value, *k)).map(|_| false),
        }
    }

    fn interval(&self, values: &Values, id: ValueId) -> (u32, u32) {
        match (self.number(values, id), self.domain(id)) {
            (Some(k), _) => (k, k),
            (None, Some(domain)) => (domain.low, domain.high),
            (None, None) => (0, values.max_value(id)),
        }
    }

    /// Whether a value cannot be a number.
    fn never(&self, values: &Values, id: ValueId, k: u32) -> bool {
        if k > values.max_value(id) || self.domain(id).is_some_and(|d| d.excludes(k)) {
            return true;
        }
        let (root, mask) = values.unmasked(id);
        k & !mask != 0 || self.domain(root).is_some_and(|d| (k ^ d.bits) & d.known & mask != 0)
    }

    fn decide_plainly(&self, values: &Values, test: Test) -> Option<bool> {
        let right = values.as_const(test.right)?;
        if let Some(left) = self.number(values, test.left) {
            return Some(match test.op {
                bpf::JEQ => left == right,
                bpf::JGT => left > right,
                bpf::JGE => left >= right,
                _ => left & right != 0,
            });
        }
        let other = |(fact, held, _): &(Test, bool, BlockId)| {
            let is_equality = *held && fact.op == bpf::JEQ && test.op == bpf::JEQ;
            is_equality && fact.left == test.left && values.as_const(fact.right).is_some()
        };
        self.tests.iter().any(other).then_some(false)
    }

    fn decide_test(&self, values: &Values, test: Test) -> Option<bool> {
        if let Some((_, held, _)) = self.tests.iter().find(|(t, ..)| *t == test) {
            return Some(*held);
        }
        if self.plain {
            return self.decide_plainly(values, test);
        }
        if test.left == test.right && test.op != bpf::JSET {
            return Some(test.op != bpf::JGT);
        }
        let right = self.number(values, test.right)?;
        if let Some(left) = self.number(values, test.left) {
            return Some(match test.op {
                bpf::JEQ => left == right,
                bpf::JGT => left > right,
                bpf::JGE => left >= right,
                _ => left & right != 0,
            });
        }
        let (root, mask) = values.unmasked(test.left);
        let (known, bits) =
            self.domain(root).map_or((0, 0), |d| (d.known & mask | !mask, d.bits & mask));
        let (low, high) = self.interval(values, test.left);
        match test.op {
            bpf::JEQ if self.never(values, test.left, right) => Some(false),
            bpf::JEQ if known == u32::MAX => Some(bits == right),
            bpf::JGT if low > right => Some(true),
            bpf::JGT if high <= right => Some(false),
            bpf::JGE if low >= right => Some(true),
            bpf::JGE if high < right => Some(false),
            bpf::JSET if right == 0 || right & mask == 0 => Some(false),
            bpf::JSET if bits & known & right != 0 => Some(true),
            bpf::JSET if right & !known == 0 && bits & right == 0 => Some(false),
            _ => None,
        }
    }
}
