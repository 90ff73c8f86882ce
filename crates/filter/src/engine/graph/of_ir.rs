//! The engines' graph from the compiler's graph, without instructions in between: long sets remain
//! sets.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Block, End, Fault, Graph, MEMORY, NoGraph, Node, Value};
use crate::bpf::{AND, DIV, LSH, MOD};
use crate::engine::sets::Set;
use crate::ir::{self, Step, Test, ValueId};

impl Graph {
    /// The same filter, which keeps `snaplen` bytes of a matching packet. Variables and
    /// instructions with internal jumps are only supported in programs.
    pub(crate) fn of_ir(ir: &ir::Graph, snaplen: u32) -> Result<Self, NoGraph> {
        let mut graph = Self::empty();
        let zero = graph.add(Node::Const(0));
        let order = ir.order();
        let mut place = vec![0; ir.blocks.len()];
        for (at, id) in order.iter().enumerate() {
            place[*id] = at;
        }
        let mut from = FromIr { graph, values: HashMap::new(), sets: HashMap::new(), ir };
        for id in &order {
            let block = &ir.blocks[*id];
            let (yes, no) = (place[block.yes], place[block.no]);
            let mut faults = Vec::new();
            let end = match &block.step {
                Step::Return(verdict) => {
                    End::Return(from.graph.add(Node::Const(if *verdict { snaplen } else { 0 })))
                }
                Step::Test(Test { op, left, right }) => {
                    let (left, right) = (from.value(*left)?, from.value(*right)?);
                    from.faults(&[left, right], &mut faults);
                    from.graph.test(*op, left, right, yes, no)
                }
                Step::In(value, set) => {
                    let (value, set) = (from.value(*value)?, from.set(set));
                    from.faults(&[value], &mut faults);
                    if yes == no { End::Jump(yes) } else { End::In { set, value, yes, no } }
                }
                Step::In6(..) | Step::Set(..) | Step::Code(..) => return Err(NoGraph),
            };
            from.graph.blocks.push(Block { faults, end });
        }
        let mut graph = from.graph;
        graph.exits = vec![[zero; 2 + MEMORY]; graph.blocks.len()];
        graph.params = vec![Vec::new(); graph.blocks.len()];
        graph.skip_jumps();
        Ok(graph)
    }
}

struct FromIr<'a> {
    graph: Graph,
    ir: &'a ir::Graph,
    values: HashMap<ValueId, Value>,
    /// By address: source and destination tests share one set.
    sets: HashMap<*const ir::Set, usize>,
}

impl FromIr<'_> {
    fn value(&mut self, wanted: ValueId) -> Result<Value, NoGraph> {
        // Operands come before their value, without recursion: sums may be long.
        let mut stack = vec![wanted];
        while let Some(&id) = stack.last() {
            let node = self.ir.values.node(id);
            let operands = match node {
                ir::Node::Binary(_, a, b) => [Some(a), Some(b)],
                ir::Node::Neg(a) => [Some(a), None],
                ir::Node::Load(_, base, _) => [base, None],
                _ => [None, None],
            };
            let missing = |id: &ValueId| !self.values.contains_key(id);
            let missing: Vec<ValueId> = operands.into_iter().flatten().filter(missing).collect();
            if !missing.is_empty() {
                stack.extend(missing);
                continue;
            }
            let of = |id: ValueId| self.values.get(&id).copied().ok_or(NoGraph);
            let value = match node {
                ir::Node::Const(k) => self.graph.add(Node::Const(k)),
                ir::Node::Len => self.graph.add(Node::Wire),
                ir::Node::Load(size, base, k) => {
                    let base = base.map(of).transpose()?;
                    self.graph.load(size, base, k, &mut Vec::new())
                }
                ir::Node::HeaderLen(k) => {
                    let byte = self.graph.load(1, None, k, &mut Vec::new());
                    let mask = self.graph.add(Node::Const(15));
                    let two = self.graph.add(Node::Const(2));
                    let low = self.graph.add(Node::Binary(AND, byte, mask));
                    self.graph.add(Node::Binary(LSH, low, two))
                }
                ir::Node::Var(_) => return Err(NoGraph),
                ir::Node::Binary(op, a, b) => {
                    let (a, b) = (of(a)?, of(b)?);
                    self.graph.add(Node::Binary(op, a, b))
                }
                ir::Node::Neg(a) => {
                    let a = of(a)?;
                    self.graph.add(Node::Neg(a))
                }
            };
            self.values.insert(id, value);
            stack.pop();
        }
        self.values.get(&wanted).copied().ok_or(NoGraph)
    }

    /// Reasons to reject the packet while values are computed.
    fn faults(&self, values: &[Value], faults: &mut Vec<Fault>) {
        let mut stack = values.to_vec();
        let mut seen = std::collections::HashSet::new();
        while let Some(value) = stack.pop() {
            if !seen.insert(value) {
                continue;
            }
            let fault = match self.graph.node(value) {
                Node::Load { base, .. } => {
                    stack.extend(base);
                    Some(Fault::Load(value))
                }
                Node::Binary(op, a, b) => {
                    stack.extend([a, b]);
                    let divides = matches!(op, DIV | MOD);
                    let zero = self.graph.constant(b).is_none_or(|k| k == 0);
                    (divides && zero).then_some(Fault::Zero(b))
                }
                Node::Neg(a) => {
                    stack.push(a);
                    None
                }
                Node::Const(_) | Node::Wire | Node::Differs(..) => None,
            };
            faults.extend(fault.filter(|f| !faults.contains(f)));
        }
    }

    fn set(&mut self, set: &Arc<ir::Set>) -> usize {
        let Self { graph, sets, .. } = self;
        *sets.entry(Arc::as_ptr(set)).or_insert_with(|| {
            graph.sets.push(Set { ranges: set.ranges().to_vec() });
            graph.sets.len() - 1
        })
    }
}
