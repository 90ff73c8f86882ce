//! A program as a graph: tests over values of the packet instead of instructions over registers.
//!
//! One pass over the instructions turns every register into a value: a constant, bytes of the
//! packet, or an operation on values. Equal values are stored once, so repeated computations merge.
//! A block is a run without branches; its [`Fault`]s may reject the packet before its [`End`]
//! decides. The order of faults is not kept, since all of them reject.
//!
//! If a register holds different values on different paths to a block, it is a parameter of the
//! block ([`Node::Differs`]), and each path passes its own value.
//!
//! Programs with backward jumps have no graph; they are compiled instruction by instruction.

mod from_ir;

use std::collections::HashMap;

use crate::bpf::*;

/// A value, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Value(pub(crate) u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Const(u32),
    /// The length on the wire.
    Wire,
    /// `size` bytes in network order, at an offset from a base, or from the start of the packet
    /// without a base.
    Load {
        size: u8,
        base: Option<Value>,
        offset: u32,
    },
    /// An operation as BPF codes it.
    Binary(u16, Value, Value),
    Neg(Value),
    /// Not the same on all paths to a block; given by the block's first instruction and the
    /// register.
    Differs(u32, u8),
}

/// A reason to reject the packet without a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// This load exceeds the packet.
    Load(Value),
    /// This divisor is zero.
    Zero(Value),
}

/// Indices of [`Block`]s; a block precedes its successors.
pub(crate) type BlockId = usize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Return(Value),
    Jump(BlockId),
    /// A comparison as BPF encodes it, and the targets if it holds and if not.
    Test {
        op: u16,
        left: Value,
        right: Value,
        yes: BlockId,
        no: BlockId,
    },
    /// Whether a value is in a set.
    In {
        set: usize,
        value: Value,
        yes: BlockId,
        no: BlockId,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) faults: Vec<Fault>,
    pub(crate) end: End,
}

#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    /// The maximum value of each node.
    max_value: Vec<u32>,
    index: HashMap<Node, Value>,
    /// The first is the root. Blocks lead to later ones only.
    pub(crate) blocks: Vec<Block>,
    pub(crate) sets: Vec<super::sets::Set>,
    /// The register contents at the end of each block.
    exits: Vec<State>,
    /// The values that paths pass to a block, as far as they are used.
    pub(crate) params: Vec<Vec<Value>>,
}

/// Contents of the registers: A, X and the scratch words.
type State = [Value; 2 + MEMORY];

/// The error for a program that has no graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoGraph;

impl Graph {
    /// The graph of a program.
    pub(crate) fn new(program: &[Insn]) -> Result<Self, NoGraph> {
        let mut graph = Self::empty();
        let leads = leaders(program)?;
        let zero = graph.add(Node::Const(0));
        let mut states: Vec<Option<State>> = vec![None; program.len()];
        let mut block_at = vec![usize::MAX; program.len()];
        if let Some(first) = states.first_mut() {
            *first = Some([zero; 2 + MEMORY]);
        }
        for at in 0..program.len() {
            if !leads[at] {
                continue;
            }
            let Some(state) = states[at] else { continue };
            block_at[at] = graph.blocks.len();
            graph.block(program, &leads, at, state, &mut states)?;
        }
        // Targets are still instruction indices.
        for block in &mut graph.blocks {
            match &mut block.end {
                End::Return(_) => (),
                End::Jump(to) => *to = block_at[*to],
                End::Test { yes, no, .. } | End::In { yes, no, .. } => {
                    *yes = block_at[*yes];
                    *no = block_at[*no];
                }
            }
        }
        graph.find_params(&block_at);
        graph.skip_jumps();
        Ok(graph)
    }

    fn empty() -> Self {
        Self {
            nodes: Vec::new(),
            max_value: Vec::new(),
            index: HashMap::new(),
            blocks: Vec::new(),
            sets: Vec::new(),
            exits: Vec::new(),
            params: Vec::new(),
        }
    }

    fn block(
        &mut self,
        program: &[Insn],
        leads: &[bool],
        start: usize,
        mut state: State,
        states: &mut [Option<State>],
    ) -> Result<(), NoGraph> {
        let mut faults = Vec::new();
        let mut at = start;
        let end = loop {
            let insn = program.get(at).ok_or(NoGraph)?;
            let next = at + 1;
            match self.step(insn, next, &mut state, &mut faults)? {
                Some(end) => break end,
                None if leads.get(next).copied().unwrap_or(true) => break End::Jump(next),
                None => at = next,
            }
        };
        for to in end.targets() {
            self.meet(states, to, &state)?;
        }
        self.exits.push(state);
        self.blocks.push(Block { faults, end });
        Ok(())
    }

    /// Adds a path to the instruction `to`, on which registers have these values.
    fn meet(
        &mut self,
        states: &mut [Option<State>],
        to: usize,
        state: &State,
    ) -> Result<(), NoGraph> {
        match states.get_mut(to) {
            Some(Some(there)) => {
                for (slot, (held, new)) in there.iter_mut().zip(state).enumerate() {
                    if held != new {
                        *held = self.add(Node::Differs(to as u32, slot as u8));
                    }
                }
                Ok(())
            }
            Some(none) => {
                *none = Some(*state);
                Ok(())
            }
            None => Err(NoGraph),
        }
    }

    /// Executes one instruction symbolically; returns the end of the block, if it is one.
    fn step(
        &mut self,
        insn: &Insn,
        next: usize,
        state: &mut State,
        faults: &mut Vec<Fault>,
    ) -> Result<Option<End>, NoGraph> {
        let Insn { code, k, .. } = *insn;
        let [a, x, ..] = *state;
        let size = match code & 0x18 {
            W => 4,
            H => 2,
            _ => 1,
        };
        match code & 7 {
            LD => {
                state[0] = match code & 0xe0 {
                    ABS => self.load(size, None, k, faults),
                    IND => self.load(size, Some(x), k, faults),
                    LEN => self.add(Node::Wire),
                    MEM => state[2 + (k as usize & 15)],
                    IMM => self.add(Node::Const(k)),
                    _ => return Err(NoGraph),
                };
            }
            LDX => {
                state[1] = match code & 0xe0 {
                    LEN => self.add(Node::Wire),
                    MEM => state[2 + (k as usize & 15)],
                    MSH => {
                        let byte = self.load(1, None, k, faults);
                        let (mask, two) = (self.add(Node::Const(15)), self.add(Node::Const(2)));
                        let low = self.add(Node::Binary(AND, byte, mask));
                        self.add(Node::Binary(LSH, low, two))
                    }
                    IMM => self.add(Node::Const(k)),
                    _ => return Err(NoGraph),
                };
            }
            ST => state[2 + (k as usize & 15)] = a,
            STX => state[2 + (k as usize & 15)] = x,
            ALU => {
                let operand = if code & X == 0 { self.add(Node::Const(k)) } else { x };
                let op = code & 0xf0;
                if matches!(op, DIV | MOD) && self.constant(operand).is_none_or(|k| k == 0) {
                    faults.push(Fault::Zero(operand));
                }
                state[0] = match op {
                    NEG => self.add(Node::Neg(a)),
                    _ => self.add(Node::Binary(op, a, operand)),
                };
            }
            JMP if code & 0xf0 == JA => return Ok(Some(End::Jump(next + k as usize))),
            JMP => {
                let (yes, no) = (next + usize::from(insn.jt), next + usize::from(insn.jf));
                let right = if code & X == 0 { self.add(Node::Const(k)) } else { x };
                return Ok(Some(self.test(code & 0xf0, a, right, yes, no)));
            }
            RET => {
                let kept = if code & 0x18 == 0x10 { a } else { self.add(Node::Const(k)) };
                return Ok(Some(End::Return(kept)));
            }
            _ if code & 0xf8 == TAX => state[1] = a,
            _ => state[0] = x,
        }
        Ok(None)
    }

    fn test(&self, op: u16, left: Value, right: Value, yes: BlockId, no: BlockId) -> End {
        if yes == no {
            return End::Jump(yes);
        }
        match (self.constant(left), self.constant(right)) {
            (Some(a), Some(b)) => End::Jump(if holds(op, a, b) { yes } else { no }),
            _ => End::Test { op, left, right, yes, no },
        }
    }

    fn load(&mut self, size: u8, base: Option<Value>, k: u32, faults: &mut Vec<Fault>) -> Value {
        let node = match base.map(|b| (b, self.constant(b))) {
            None => Node::Load { size, base: None, offset: k },
            Some((base, None)) => Node::Load { size, base: Some(base), offset: k },
            // An offset that overflows is beyond any packet.
            Some((_, Some(c))) => Node::Load { size, base: None, offset: c.saturating_add(k) },
        };
        let value = self.add(node);
        if !faults.contains(&Fault::Load(value)) {
            faults.push(Fault::Load(value));
        }
        value
    }

    pub(crate) fn add(&mut self, node: Node) -> Value {
        let node = match node {
            Node::Binary(op, a, b) => match (self.constant(a), self.constant(b)) {
                (Some(a), Some(b)) => alu(op, a, b).map_or(node, Node::Const),
                (None, Some(0)) if matches!(op, ADD | SUB | OR | XOR | LSH | RSH) => return a,
                (None, Some(1)) if matches!(op, MUL | DIV) => return a,
                _ => node,
            },
            Node::Neg(a) => self.constant(a).map_or(node, |a| Node::Const(a.wrapping_neg())),
            _ => node,
        };
        let next = Value(self.nodes.len() as u32);
        let value = *self.index.entry(node).or_insert(next);
        if value == next {
            self.max_value.push(self.max_of_node(node));
            self.nodes.push(node);
        }
        value
    }

    pub(crate) fn node(&self, value: Value) -> Node {
        self.nodes[value.0 as usize]
    }

    pub(crate) fn constant(&self, value: Value) -> Option<u32> {
        match self.node(value) {
            Node::Const(k) => Some(k),
            _ => None,
        }
    }

    /// The maximum of a value.
    pub(crate) fn max_value(&self, value: Value) -> u32 {
        self.max_value[value.0 as usize]
    }

    fn max_of_node(&self, node: Node) -> u32 {
        match node {
            Node::Const(k) => k,
            Node::Load { size: 1, .. } => 0xff,
            Node::Load { size: 2, .. } => 0xffff,
            Node::Binary(op, a, b) => {
                let (high, operand) = (self.max_value(a), self.max_value(b));
                match (op, self.constant(b)) {
                    (AND, _) => high.min(operand),
                    (ADD, _) => high.saturating_add(operand),
                    (RSH, Some(n)) => high.checked_shr(n).unwrap_or(0),
                    (LSH, Some(n)) if n < 32 && high.leading_zeros() >= n => high << n,
                    (DIV | MOD | RSH, _) => high,
                    _ => u32::MAX,
                }
            }
            _ => u32::MAX,
        }
    }

    /// Finds the parameters of blocks: registers that differ between paths and are used, directly
    /// or by later parameters.
    fn find_params(&mut self, block_at: &[usize]) {
        self.params = vec![Vec::new(); self.blocks.len()];
        let mut before: Vec<Vec<BlockId>> = vec![Vec::new(); self.blocks.len()];
        let mut used: Vec<Value> = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            for to in block.end.targets() {
                before[to].push(at);
            }
            used.extend(block.faults.iter().map(|f| match f {
                Fault::Load(v) | Fault::Zero(v) => *v,
            }));
            match block.end {
                End::Return(v) => used.push(v),
                End::Jump(_) => (),
                End::Test { left, right, .. } => used.extend([left, right]),
                End::In { value, .. } => used.push(value),
            }
        }
        let mut seen = vec![false; self.nodes.len()];
        while let Some(value) = used.pop() {
            if std::mem::replace(&mut seen[value.0 as usize], true) {
                continue;
            }
            match self.node(value) {
                Node::Const(_) | Node::Wire => (),
                Node::Load { base, .. } => used.extend(base),
                Node::Binary(_, a, b) => used.extend([a, b]),
                Node::Neg(a) => used.push(a),
                Node::Differs(place, slot) => {
                    let at = block_at[place as usize];
                    self.params[at].push(value);
                    used.extend(before[at].iter().map(|from| self.exits[*from][slot as usize]));
                }
            }
        }
        // In order, so that the values passed to a block are known.
        for (at, before) in before.iter().enumerate() {
            for param in self.params[at].clone() {
                let along = before.iter().map(|from| self.max_value(self.argument(*from, param)));
                self.max_value[param.0 as usize] = along.max().unwrap_or(u32::MAX);
            }
        }
    }

    /// The value that a path from a block passes for a parameter of the next.
    pub(crate) fn argument(&self, from: BlockId, param: Value) -> Value {
        match self.node(param) {
            Node::Differs(_, slot) => self.exits[from][slot as usize],
            _ => param,
        }
    }

    /// Redirects edges past blocks that only jump.
    fn skip_jumps(&mut self) {
        for at in (0..self.blocks.len()).rev() {
            let past = |to: BlockId| match &self.blocks[to] {
                Block { faults, end: End::Jump(next) }
                    if faults.is_empty()
                        && self.params[to].is_empty()
                        && self.params[*next]
                            .iter()
                            .all(|p| self.argument(to, *p) == self.argument(at, *p)) =>
                {
                    *next
                }
                _ => to,
            };
            // Later blocks are done, so one step suffices.
            let end = match self.blocks[at].end {
                End::Jump(to) => End::Jump(past(to)),
                End::Test { op, left, right, yes, no } => {
                    self.test(op, left, right, past(yes), past(no))
                }
                ref other => other.clone(),
            };
            self.blocks[at].end = end;
        }
    }

    /// Blocks reachable from the root.
    pub(crate) fn reachable(&self) -> Vec<bool> {
        let mut seen = vec![false; self.blocks.len()];
        if let Some(root) = seen.first_mut() {
            *root = true;
        }
        for at in 0..self.blocks.len() {
            if seen[at] {
                for to in self.blocks[at].end.targets() {
                    seen[to] = true;
                }
            }
        }
        seen
    }
}

impl End {
    pub(crate) fn targets(&self) -> impl Iterator<Item = BlockId> {
        let (yes, no) = match *self {
            Self::Return(_) => (None, None),
            Self::Jump(to) => (Some(to), None),
            Self::Test { yes, no, .. } | Self::In { yes, no, .. } => (Some(yes), Some(no)),
        };
        yes.into_iter().chain(no)
    }
}

pub(crate) fn holds(op: u16, a: u32, b: u32) -> bool {
    match op {
        JEQ => a == b,
        JGT => a > b,
        JGE => a >= b,
        _ => a & b != 0,
    }
}

/// Where blocks begin.
fn leaders(program: &[Insn]) -> Result<Vec<bool>, NoGraph> {
    let mut leads = vec![false; program.len()];
    if let Some(first) = leads.first_mut() {
        *first = true;
    }
    for (at, insn) in program.iter().enumerate() {
        if insn.code & 7 != JMP {
            continue;
        }
        let jumps = match insn.code & 0xf0 {
            // A backward jump, as the kernel and libpcap interpret it.
            JA if insn.k.cast_signed() < 0 => return Err(NoGraph),
            JA => [insn.k as usize; 2],
            _ => [usize::from(insn.jt), usize::from(insn.jf)],
        };
        for jump in jumps {
            *leads.get_mut(at + 1 + jump).ok_or(NoGraph)? = true;
        }
    }
    Ok(leads)
}
