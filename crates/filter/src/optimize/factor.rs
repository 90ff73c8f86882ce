//! Factoring: common beginnings of alternatives are tested once, and alternatives on one value
//! become a set.
//!
//! `host a or host b` tests twice whether the packet is IPv4, then each of the addresses.
//! Alternatives are grouped by their first test, as far as no packet, however short, can show the
//! difference: `x = 1 and A or x = 2 and B or x = 1 and C` is `x = 1 and (A or C) or x = 2 and B`,
//! since at most one of the first tests holds and `x` is read first in any case. Once only set
//! memberships remain, later tests of a value cannot fault, and may be reordered. The same holds
//! for negated conjunctions.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bpf;
use crate::ir::{Cond, Node, Set, Test, ValueId, Values, and, not};

type Index<K> = HashMap<K, usize, foldhash::fast::FixedState>;

/// An equivalent condition with fewer tests.
pub(crate) fn factor(values: &mut Values, cond: &Cond) -> Cond {
    inside(&mut Factor { values, depth: 0 }, cond)
}

/// Recursion limit for nested beginnings.
const MAX_DEPTH: u32 = 64;

#[derive(Debug)]
struct Factor<'a> {
    values: &'a mut Values,
    depth: u32,
}

fn inside(f: &mut Factor<'_>, cond: &Cond) -> Cond {
    match cond {
        Cond::Not(inner) => not(inside(f, inner)),
        Cond::Any(any) => {
            let mut terms = Vec::with_capacity(any.len());
            for term in any {
                match inside(f, term) {
                    Cond::Any(inner) => terms.extend(inner),
                    other => terms.push(other),
                }
            }
            alternatives(f, terms)
        }
        Cond::All(all) => {
            let mut terms = Vec::with_capacity(all.len());
            for term in all {
                match inside(f, term) {
                    Cond::All(inner) => terms.extend(inner),
                    other => terms.push(other),
                }
            }
            conjunction(f, terms)
        }
        other => other.clone(),
    }
}

/// The first test of an alternative, if it tests a value for membership.
#[derive(Clone, Debug)]
enum MembershipTest {
    One(u32),
    Many(Arc<Set>),
}

impl MembershipTest {
    fn ranges(&self, into: &mut Vec<(u32, u32)>) {
        match self {
            Self::One(k) => into.push((*k, *k)),
            Self::Many(set) => into.extend_from_slice(set.ranges()),
        }
    }

    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::One(a), Self::One(b)) => a == b,
            (Self::One(k), Self::Many(set)) | (Self::Many(set), Self::One(k)) => set.contains(*k),
            (Self::Many(a), Self::Many(b)) => !a.intersection(b).is_empty(),
        }
    }

    fn cond(self, values: &mut Values, value: ValueId) -> Cond {
        match self {
            Self::One(k) => {
                let right = values.constant(k);
                Cond::Test(Test { op: bpf::JEQ, left: value, right })
            }
            Self::Many(set) => Cond::In(value, set),
        }
    }
}

/// A condition that only tests one value for membership.
fn bare(values: &Values, cond: &Cond) -> Option<(ValueId, MembershipTest)> {
    match cond {
        Cond::Test(Test { op: bpf::JEQ, left, right }) => {
            Some((*left, MembershipTest::One(values.as_const(*right)?)))
        }
        Cond::In(value, set) => Some((*value, MembershipTest::Many(Arc::clone(set)))),
        _ => None,
    }
}

/// The first test of a condition.
///
/// `None` if the condition may change the value itself.
fn head(values: &Values, cond: &Cond) -> Option<(ValueId, MembershipTest)> {
    match cond {
        Cond::All(all) => bare(values, all.first()?)
            .filter(|(v, _)| values.vars(*v) == 0 || !sets_variables(cond)),
        other => bare(values, other),
    }
}

/// A condition without its first test.
fn tail(cond: Cond) -> Cond {
    match cond {
        Cond::All(mut all) if all.len() > 2 => {
            all.remove(0);
            Cond::All(all)
        }
        Cond::All(mut all) => all.pop().unwrap_or(Cond::True),
        _ => Cond::True,
    }
}

fn alternatives(f: &mut Factor<'_>, terms: Vec<Cond>) -> Cond {
    if terms.len() < 2 || f.depth >= MAX_DEPTH {
        return any(terms);
    }
    f.depth += 1;
    let terms = by_head(f, terms);
    let terms = in_sets(f, terms);
    f.depth -= 1;
    any(terms)
}

fn any(mut terms: Vec<Cond>) -> Cond {
    match terms.len() {
        0 => Cond::False,
        1 => terms.pop().unwrap_or(Cond::False),
        _ => Cond::Any(terms),
    }
}

/// Groups alternatives with the same first test, in the order of the first of each group.
fn by_head(f: &mut Factor<'_>, terms: Vec<Cond>) -> Vec<Cond> {
    let mut out: Vec<Cond> = Vec::with_capacity(terms.len());
    let mut terms = terms.into_iter().peekable();
    while let Some(term) = terms.next() {
        let Some((value, among)) = head(f.values, &term) else {
            let term = alike(f, term, &mut terms);
            out.push(term);
            continue;
        };
        let mut groups = vec![(among.clone(), vec![term])];
        let mut ones = Index::default();
        let mut many = Vec::new();
        match &among {
            MembershipTest::One(k) => drop(ones.insert(*k, 0)),
            MembershipTest::Many(_) => many.push(0),
        }
        while let Some(next) = terms.peek() {
            let Some((v, among)) = head(f.values, next) else { break };
            if v != value {
                break;
            }
            let found = match &among {
                MembershipTest::One(k) => ones.get(k).copied(),
                MembershipTest::Many(set) => many
                    .iter()
                    .copied()
                    .find(|g: &usize| matches!(&groups[*g].0, MembershipTest::Many(there) if there == set)),
            };
            let meets = |g: &usize| among.meets(&groups[*g].0);
            let clash = match (&among, found) {
                (_, Some(_)) => false,
                (MembershipTest::One(_), None) => many.iter().any(meets),
                (MembershipTest::Many(_), None) => (0..groups.len()).any(|g| meets(&g)),
            };
            if clash {
                break;
            }
            let bare_next = !matches!(next, Cond::All(_));
            match found {
                // Bytes read by the first alternatives must be read first.
                Some(g) if bare_next && matches!(groups[g].1[0], Cond::All(_)) => break,
                // The first test alone implies the other alternatives.
                Some(g) if !matches!(groups[g].1[0], Cond::All(_)) => drop(terms.next()),
                Some(g) => groups[g].1.extend(terms.next()),
                None => {
                    let g = groups.len();
                    match &among {
                        MembershipTest::One(k) => drop(ones.insert(*k, g)),
                        MembershipTest::Many(_) => many.push(g),
                    }
                    groups.push((among, terms.next().into_iter().collect()));
                }
            }
        }
        grouped(f, value, groups, &mut out);
    }
    out
}

/// Builds the groups of alternatives; bare first tests become one set.
fn grouped(
    f: &mut Factor<'_>,
    value: ValueId,
    groups: Vec<(MembershipTest, Vec<Cond>)>,
    out: &mut Vec<Cond>,
) {
    let mut plain = Vec::new();
    let mut place = None;
    let mut count = 0;
    for (among, mut group) in groups {
        match group.len() {
            1 if !matches!(group[0], Cond::All(_)) => {
                among.ranges(&mut plain);
                count += 1;
                if place.is_none() {
                    place = Some(out.len());
                    out.append(&mut group);
                }
            }
            1 => out.append(&mut group),
            _ => {
                let tails: Vec<Cond> = group.into_iter().map(tail).collect();
                let tails = flat_any(tails);
                let inner = alternatives(f, tails);
                let head = among.cond(f.values, value);
                out.push(and(head, inner));
            }
        }
    }
    if let Some(at) = place
        && count > 1
    {
        out[at] = Cond::In(value, Arc::new(Set::new(plain)));
    }
}

fn flat_any(terms: Vec<Cond>) -> Vec<Cond> {
    let mut out = Vec::with_capacity(terms.len());
    for term in terms {
        match term {
            Cond::Any(inner) => out.extend(inner),
            other => out.push(other),
        }
    }
    out
}

/// Joins alternatives with the same first condition of any kind.
fn alike(
    f: &mut Factor<'_>,
    first: Cond,
    terms: &mut std::iter::Peekable<std::vec::IntoIter<Cond>>,
) -> Cond {
    let Cond::All(all) = &first else { return first };
    let Some(head) = all.first().filter(|_| !sets_variables(&first)).cloned() else { return first };
    let mut tails = Vec::new();
    while let Some(Cond::All(next)) = terms.peek()
        && next.first() == Some(&head)
    {
        tails.extend(terms.next().map(tail));
    }
    if tails.is_empty() {
        return first;
    }
    tails.insert(0, tail(first));
    let inner = alternatives(f, flat_any(tails));
    and(head, inner)
}

/// Whether a condition sets variables or cannot be compared.
fn sets_variables(cond: &Cond) -> bool {
    match cond {
        Cond::Set(..) | Cond::Code(..) => true,
        Cond::Not(inner) => sets_variables(inner),
        Cond::All(all) | Cond::Any(all) => all.iter().any(sets_variables),
        _ => false,
    }
}

/// Merges runs of bare memberships into one set for each value, at the first of each.
fn in_sets(f: &mut Factor<'_>, terms: Vec<Cond>) -> Vec<Cond> {
    let mut out = Vec::with_capacity(terms.len());
    let mut run: Vec<(ValueId, MembershipTest, Cond)> = Vec::new();
    for term in terms {
        match bare(f.values, &term) {
            Some((value, among)) => run.push((value, among, term)),
            None => {
                flush(f, &mut run, &mut out);
                out.push(term);
            }
        }
    }
    flush(f, &mut run, &mut out);
    out
}

/// A masked value, its ranges, and the number of conditions merged.
type Under = (ValueId, Vec<(u32, u32)>, usize);

/// The tests of one value of the packet, under each mask.
#[derive(Debug, Default)]
struct OfRoot {
    under: Vec<Under>,
}

fn flush(f: &mut Factor<'_>, run: &mut Vec<(ValueId, MembershipTest, Cond)>, out: &mut Vec<Cond>) {
    let run = std::mem::take(run);
    // The first occurrence of each value: after the last of these nothing faults.
    let mut first: Index<ValueId> = Index::default();
    for (i, (value, ..)) in run.iter().enumerate() {
        let (root, _) = f.values.unmasked(*value);
        first.entry(root).or_insert(i);
    }
    let calm = first.values().copied().max().unwrap_or(0);
    if run.len() < 2 || run.len() <= calm + 1 {
        out.extend(run.into_iter().map(|(.., cond)| cond));
        return;
    }
    let mut order: Vec<ValueId> = Vec::new();
    let mut roots: HashMap<ValueId, OfRoot, foldhash::fast::FixedState> = HashMap::default();
    for (i, (value, among, cond)) in run.into_iter().enumerate() {
        if i < calm {
            out.push(cond);
            continue;
        }
        let (root, _) = f.values.unmasked(value);
        let of = roots.entry(root).or_insert_with(|| {
            order.push(root);
            OfRoot::default()
        });
        let at = match of.under.iter().position(|(v, ..)| *v == value) {
            Some(at) => at,
            None => {
                of.under.push((value, Vec::new(), 0));
                of.under.len() - 1
            }
        };
        let (_, ranges, count) = &mut of.under[at];
        among.ranges(ranges);
        *count += 1;
    }
    for root in order {
        let Some(OfRoot { under }) = roots.remove(&root) else { continue };
        let spread: Option<Vec<Vec<(u32, u32)>>> = match under.len() {
            0 | 1 => None,
            _ => under.iter().map(|(v, ranges, _)| unmasked(f.values, root, *v, ranges)).collect(),
        };
        let sets_variables = match spread {
            Some(ranges) => vec![(root, ranges.concat())],
            None => under.into_iter().map(|(value, ranges, _)| (value, ranges)).collect(),
        };
        for (value, ranges) in sets_variables {
            let set = Set::new(ranges);
            out.push(match set.single() {
                Some(k) => MembershipTest::One(k).cond(f.values, value),
                None => Cond::In(value, Arc::new(set)),
            });
        }
    }
}

/// The values that match some numbers under a prefix mask; `None` if the mask is not a prefix.
fn unmasked(
    values: &Values,
    root: ValueId,
    value: ValueId,
    ranges: &[(u32, u32)],
) -> Option<Vec<(u32, u32)>> {
    let (_, mask) = values.unmasked(value);
    let width = match values.node(root) {
        Node::Load(1, ..) => 0xff,
        Node::Load(2, ..) => 0xffff,
        _ => u32::MAX,
    };
    let below = !mask & width;
    if below.wrapping_add(1) & below != 0 {
        return None;
    }
    ranges
        .iter()
        .map(|(low, high)| {
            // Numbers that the mask cannot produce are dropped with the rest of their block.
            let whole = low == high && low & below == 0;
            (whole || below == 0).then_some((*low, high | below))
        })
        .collect()
}

fn conjunction(f: &mut Factor<'_>, terms: Vec<Cond>) -> Cond {
    // Adjacent negations are the negation of alternatives.
    let mut out: Vec<Cond> = Vec::with_capacity(terms.len());
    let mut negated: Vec<Cond> = Vec::new();
    for term in terms {
        match term {
            Cond::Not(inner) => negated.push(*inner),
            other => {
                deny(f, &mut negated, &mut out);
                let merged = match out.last() {
                    Some(last) => cases(f, last, &other),
                    None => None,
                };
                match merged {
                    Some(merged) => {
                        out.pop();
                        out.push(merged);
                    }
                    None => out.push(other),
                }
            }
        }
    }
    deny(f, &mut negated, &mut out);
    match out.len() {
        1 => out.pop().unwrap_or(Cond::True),
        _ => Cond::All(out),
    }
}

fn deny(f: &mut Factor<'_>, negated: &mut Vec<Cond>, out: &mut Vec<Cond>) {
    let terms = std::mem::take(negated);
    match terms.len() {
        0 => (),
        1 => out.extend(terms.into_iter().map(not)),
        _ => out.push(not(alternatives(f, flat_any(terms)))),
    }
}

/// Cases of a value, each with its condition.
fn switch<'a>(
    values: &Values,
    cond: &'a Cond,
) -> Option<(ValueId, Vec<(MembershipTest, &'a Cond)>)> {
    const MAX_CASES: usize = 8;
    let Cond::Any(any) = cond else { return None };
    if any.len() > MAX_CASES {
        return None;
    }
    let mut cases: Vec<(MembershipTest, &Cond)> = Vec::with_capacity(any.len());
    let mut of = None;
    for term in any {
        let (value, among) = head(values, term)?;
        if *of.get_or_insert(value) != value || cases.iter().any(|(a, _)| a.meets(&among)) {
            return None;
        }
        cases.push((among, term));
    }
    Some((of?, cases))
}

/// Merges two conditions over the same cases, case by case.
fn cases(f: &mut Factor<'_>, a: &Cond, b: &Cond) -> Option<Cond> {
    let (of, first) = switch(f.values, a)?;
    let (of_second, second) = switch(f.values, b)?;
    if of != of_second {
        return None;
    }
    let same = |x: &MembershipTest, y: &MembershipTest| match (x, y) {
        (MembershipTest::One(a), MembershipTest::One(b)) => a == b,
        (MembershipTest::Many(a), MembershipTest::Many(b)) => a == b,
        _ => false,
    };
    let mut out = Vec::with_capacity(first.len());
    for (among, term) in &first {
        let partner = second.iter().find(|(a, _)| same(a, among));
        if partner.is_none() && second.iter().any(|(a, _)| a.meets(among)) {
            return None;
        }
        let mut all = match term {
            Cond::All(all) => all.clone(),
            other => vec![(*other).clone()],
        };
        match partner.map(|(_, t)| tail((*t).clone())) {
            // Values that the first condition reads are still read.
            None => all.push(Cond::False),
            Some(Cond::True) => (),
            Some(Cond::All(more)) => all.extend(more),
            Some(other) => all.push(other),
        }
        out.push(match all.len() {
            1 => all.pop().unwrap_or(Cond::True),
            _ => conjunction(f, all),
        });
    }
    Some(Cond::Any(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(values: &mut Values, at: u32) -> ValueId {
        values.add(Node::Load(1, None, at))
    }

    fn is(values: &mut Values, value: ValueId, k: u32) -> Cond {
        MembershipTest::One(k).cond(values, value)
    }

    #[test]
    fn alternatives_that_begin_alike_do_so_once() {
        let mut v = Values::default();
        let (a, b) = (byte(&mut v, 0), byte(&mut v, 1));
        let terms = [(1, 5), (2, 6), (1, 7)].map(|(x, y)| and(is(&mut v, a, x), is(&mut v, b, y)));
        let out = factor(&mut v, &Cond::Any(terms.into()));
        let five_or_seven = Cond::In(b, Arc::new(Set::new(vec![(5, 5), (7, 7)])));
        let first = and(is(&mut v, a, 1), five_or_seven);
        let second = and(is(&mut v, a, 2), is(&mut v, b, 6));
        assert_eq!(out, Cond::Any(vec![first, second]));
    }

    #[test]
    fn sets_wait_for_the_first_of_each_value() {
        let mut v = Values::default();
        let (a, b) = (byte(&mut v, 0), byte(&mut v, 1));
        let terms: Vec<_> =
            (1..4).flat_map(|k| [(a, k), (b, k)]).map(|(x, k)| is(&mut v, x, k)).collect();
        let first = terms[0].clone();
        let out = factor(&mut v, &Cond::Any(terms));
        let of_b = Cond::In(b, Arc::new(Set::between(1, 3)));
        let of_a = Cond::In(a, Arc::new(Set::between(2, 3)));
        assert_eq!(out, Cond::Any(vec![first, of_b, of_a]));
    }
}
