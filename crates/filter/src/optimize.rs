//! Jumps go straight to where they must end: along each edge what the tests before it have shown
//! decides the tests behind it.
//!
//! A packet's bytes do not change, so a fact holds from where it was learned on. A test that is
//! skipped has had its bytes read by the test that decided it, or by one like it: whether a short
//! packet is rejected does not change.

use crate::bpf;
use crate::flow::{BlockId, Flow, Step};
use crate::ir::{Node, Test, ValueId, Values};

/// A test, and whether it held.
type Fact = (Test, bool);

/// How many facts are kept: more cost time and decide little.
const MAX_FACTS: usize = 48;
/// Rounds over the graph; each is of use only if the one before changed something.
const MAX_ROUNDS: usize = 32;

/// Graphs of more blocks stay as they are.
const MAX_BLOCKS: usize = 4096;

/// Shortens the paths of a graph.
pub(crate) fn optimize(flow: &mut Flow, values: &Values) {
    if flow.blocks.len() > MAX_BLOCKS {
        return;
    }
    for _ in 0..MAX_ROUNDS {
        if !thread(flow, values) {
            break;
        }
    }
}

fn thread(flow: &mut Flow, values: &Values) -> bool {
    let order = flow.order();
    let mut known: Vec<Option<Vec<Fact>>> = vec![None; flow.blocks.len()];
    known[flow.root] = Some(Vec::new());
    let mut changed = false;
    for id in order {
        let facts = known[id].take().unwrap_or_default();
        for sense in [true, false] {
            let block = &flow.blocks[id];
            let mut facts = facts.clone();
            match block.step {
                Step::Return(_) => continue,
                Step::Test(test) => learn(&mut facts, (test, sense)),
                Step::Set(var, _) => facts.retain(|(t, _)| {
                    !mentions(values, t.left, var) && !mentions(values, t.right, var)
                }),
                Step::Code(..) => (),
            }
            let begin = if sense { block.yes } else { block.no };
            let end = skip(flow, values, &facts, begin);
            if end != begin {
                changed = true;
                let block = &mut flow.blocks[id];
                *(if sense { &mut block.yes } else { &mut block.no }) = end;
            }
            match &mut known[end] {
                Some(there) => there.retain(|fact| facts.contains(fact)),
                none => *none = Some(facts),
            }
        }
    }
    let root = skip(flow, values, &[], flow.root);
    changed |= root != flow.root;
    flow.root = root;
    changed
}

fn learn(facts: &mut Vec<Fact>, fact: Fact) {
    if facts.contains(&fact) {
        return;
    }
    if facts.len() >= MAX_FACTS {
        // What something is not decides less than what it is.
        let least = facts.iter().position(|(t, held)| !(*held && t.op == bpf::JEQ));
        facts.remove(least.unwrap_or(0));
    }
    facts.push(fact);
}

/// Where a path ends up from a block on, as far as facts decide.
fn skip(flow: &Flow, values: &Values, facts: &[Fact], mut at: BlockId) -> BlockId {
    loop {
        let block = &flow.blocks[at];
        let Step::Test(test) = block.step else {
            return at;
        };
        let idle =
            block.yes == block.no && !values.may_fault(test.left) && !values.may_fault(test.right);
        at = match decide(values, facts, test) {
            _ if idle => block.yes,
            Some(true) => block.yes,
            Some(false) => block.no,
            None if block.yes == block.no && read(facts, test) => block.yes,
            None => return at,
        };
    }
}

/// Whether both sides have been worked out before.
fn read(facts: &[Fact], test: Test) -> bool {
    facts.iter().any(|(f, _)| f.left == test.left && f.right == test.right)
}

fn mentions(values: &Values, id: ValueId, var: u8) -> bool {
    match values.node(id) {
        Node::Var(v) => v == var,
        Node::Load(_, Some(base), _) => mentions(values, base, var),
        Node::Binary(_, a, b) => mentions(values, a, var) || mentions(values, b, var),
        Node::Neg(a) => mentions(values, a, var),
        _ => false,
    }
}

/// The number that facts show a value to be.
fn number(values: &Values, facts: &[Fact], id: ValueId) -> Option<u32> {
    let equal = |(t, held): &Fact| *held && t.op == bpf::JEQ && t.left == id;
    if let Some((t, _)) = facts.iter().find(|f| equal(f) && values.as_const(f.0.right).is_some()) {
        return values.as_const(t.right);
    }
    match values.node(id) {
        Node::Const(k) => Some(k),
        Node::Binary(op, a, b) => {
            bpf::alu(op, number(values, facts, a)?, number(values, facts, b)?)
        }
        Node::Neg(a) => number(values, facts, a).map(u32::wrapping_neg),
        _ => None,
    }
}

/// Whether working a value out cannot fault, by what it is or as it was worked out before.
fn safe(values: &Values, facts: &[Fact], id: ValueId) -> bool {
    !values.may_fault(id)
        || facts.iter().any(|(t, _)| within(values, t.left, id) || within(values, t.right, id))
        || match values.node(id) {
            Node::Binary(op, a, b) => {
                !matches!(op, bpf::DIV | bpf::MOD)
                    && safe(values, facts, a)
                    && safe(values, facts, b)
            }
            Node::Neg(a) => safe(values, facts, a),
            _ => false,
        }
}

fn within(values: &Values, whole: ValueId, part: ValueId) -> bool {
    whole == part
        || match values.node(whole) {
            Node::Load(_, Some(base), _) => within(values, base, part),
            Node::Binary(_, a, b) => within(values, a, part) || within(values, b, part),
            Node::Neg(a) => within(values, a, part),
            _ => false,
        }
}

/// What a test must come to.
fn decide(values: &Values, facts: &[Fact], test: Test) -> Option<bool> {
    if let Some((_, held)) = facts.iter().find(|(t, _)| *t == test) {
        return Some(*held);
    }
    if !safe(values, facts, test.left) || !safe(values, facts, test.right) {
        return None;
    }
    if test.left == test.right && test.op != bpf::JSET {
        return Some(test.op != bpf::JGT);
    }
    let right = number(values, facts, test.right)?;
    if let Some(left) = number(values, facts, test.left) {
        return Some(match test.op {
            bpf::JEQ => left == right,
            bpf::JGT => left > right,
            bpf::JGE => left >= right,
            _ => left & right != 0,
        });
    }
    let (low, high) = range(values, facts, test.left);
    match test.op {
        bpf::JEQ if right < low || right > high => Some(false),
        bpf::JGT if low > right => Some(true),
        bpf::JGT if high <= right => Some(false),
        bpf::JGE if low >= right => Some(true),
        bpf::JGE if high < right => Some(false),
        bpf::JSET if right == 0 => Some(false),
        _ => None,
    }
}

/// The least and the most a value can be.
fn range(values: &Values, facts: &[Fact], id: ValueId) -> (u32, u32) {
    let (mut low, mut high) = (0, values.most(id));
    for (t, held) in facts.iter().filter(|(t, _)| t.left == id) {
        let Some(k) = values.as_const(t.right) else {
            continue;
        };
        match (t.op, held) {
            (bpf::JGT, true) => low = low.max(k.saturating_add(1)),
            (bpf::JGT, false) => high = high.min(k),
            (bpf::JGE, true) => low = low.max(k),
            (bpf::JGE, false) => high = high.min(k.saturating_sub(1)),
            _ => (),
        }
    }
    (low, high)
}
