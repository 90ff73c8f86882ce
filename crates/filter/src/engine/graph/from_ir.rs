//! Conversion of the compiler's graph to the engines' graph without generating instructions; long
//! sets remain sets.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Block, End, Fault, Graph, MEMORY, NoGraph, Node, State, Value};
use crate::bpf::{AND, DIV, LSH, MOD};
use crate::engine::sets::Set;
use crate::ir::{self, Step, Test, ValueId};

impl Graph {
    /// Converts a filter that keeps `snaplen` bytes of a matching packet. A variable is a scratch
    /// word of the state at the end of a block, and a parameter where paths with different values
    /// join. Instructions with internal jumps are only supported in programs.
    pub(crate) fn from_ir(ir: &ir::Graph, snaplen: u32) -> Result<Self, NoGraph> {
        let mut graph = Self::empty();
        let zero = graph.add(Node::Const(0));
        let order = ir.order();
        let mut place = vec![0; ir.blocks.len()];
        for (at, id) in order.iter().enumerate() {
            place[*id] = at;
        }
        let mut states: Vec<Option<State>> = vec![None; order.len()];
        if let Some(first) = states.first_mut() {
            *first = Some([zero; 2 + MEMORY]);
        }
        let mut from = FromIr {
            graph,
            values: HashMap::new(),
            of_block: HashMap::new(),
            sets: HashMap::new(),
            ir,
        };
        for (at, id) in order.iter().enumerate() {
            let block = &ir.blocks[*id];
            let (yes, no) = (place[block.yes], place[block.no]);
            let mut state = states[at].ok_or(NoGraph)?;
            from.of_block.clear();
            let mut faults = Vec::new();
            let end = match &block.step {
                Step::Return(verdict) => {
                    End::Return(from.graph.add(Node::Const(if *verdict { snaplen } else { 0 })))
                }
                Step::Test(Test { op, left, right }) => {
                    let (left, right) = (from.value(*left, &state)?, from.value(*right, &state)?);
                    from.faults(&[left, right], &mut faults);
                    from.graph.test(*op, left, right, yes, no)
                }
                Step::In(value, set) => {
                    let (value, set) = (from.value(*value, &state)?, from.set(set));
                    from.faults(&[value], &mut faults);
                    if yes == no { End::Jump(yes) } else { End::In { set, value, yes, no } }
                }
                Step::Set(var, value) => {
                    let value = from.value(*value, &state)?;
                    from.faults(&[value], &mut faults);
                    *variable(&mut state, *var)? = value;
                    End::Jump(yes)
                }
                Step::In6(..) | Step::Code(..) => return Err(NoGraph),
            };
            for to in end.targets() {
                from.graph.meet(&mut states, to, &state)?;
            }
            from.graph.exits.push(state);
            from.graph.blocks.push(Block { faults, end });
        }
        let mut graph = from.graph;
        let as_they_are: Vec<usize> = (0..graph.blocks.len()).collect();
        graph.find_params(&as_they_are);
        graph.skip_jumps();
        Ok(graph)
    }
}

/// The value of a variable.
fn variable(state: &mut State, var: u8) -> Result<&mut Value, NoGraph> {
    state.get_mut(2 + usize::from(var)).ok_or(NoGraph)
}

struct FromIr<'a> {
    graph: Graph,
    ir: &'a ir::Graph,
    values: HashMap<ValueId, Value>,
    /// Values that depend on variables, and so differ between blocks.
    of_block: HashMap<ValueId, Value>,
    /// By address: source and destination tests share one set.
    sets: HashMap<*const ir::Set, usize>,
}

impl FromIr<'_> {
    fn value(&mut self, requested: ValueId, state: &State) -> Result<Value, NoGraph> {
        // Operands come before their value, without recursion: sums may be long.
        let mut stack = vec![requested];
        while let Some(&id) = stack.last() {
            let node = self.ir.values.node(id);
            let operands = match node {
                ir::Node::Binary(_, a, b) => [Some(a), Some(b)],
                ir::Node::Neg(a) => [Some(a), None],
                ir::Node::Load(_, base, _) => [base, None],
                _ => [None, None],
            };
            let known = |id: &ValueId| self.known(*id).is_some();
            let missing: Vec<ValueId> =
                operands.into_iter().flatten().filter(|id| !known(id)).collect();
            if !missing.is_empty() {
                stack.extend(missing);
                continue;
            }
            let of = |id: ValueId| self.known(id).ok_or(NoGraph);
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
                ir::Node::Var(var) => *state.get(2 + usize::from(var)).ok_or(NoGraph)?,
                ir::Node::Binary(op, a, b) => {
                    let (a, b) = (of(a)?, of(b)?);
                    self.graph.add(Node::Binary(op, a, b))
                }
                ir::Node::Neg(a) => {
                    let a = of(a)?;
                    self.graph.add(Node::Neg(a))
                }
            };
            let is_var = matches!(node, ir::Node::Var(_));
            let has_var =
                is_var || operands.iter().flatten().any(|o| self.of_block.contains_key(o));
            let values = if has_var { &mut self.of_block } else { &mut self.values };
            values.insert(id, value);
            stack.pop();
        }
        self.known(requested).ok_or(NoGraph)
    }

    fn known(&self, id: ValueId) -> Option<Value> {
        self.values.get(&id).or_else(|| self.of_block.get(&id)).copied()
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
