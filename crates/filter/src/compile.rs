//! Compilation from text to program, with all intermediate stages.

use crate::ast::Expr;
use crate::bpf::{self, Insn, Program};
use crate::engine::{self, Engine};
use crate::error::{Error, Problem, Span};
use crate::ir::{Cond, Graph, Values};
use crate::lower::Lowered;
use crate::names::Resolver;
use crate::{lower, optimize, parser, select};

/// The message for filters that match nothing.
pub(crate) const REJECTS_ALL: &str = "expression rejects all packets";

/// Compile options besides the expression and the link type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a matching packet to keep.
    pub snaplen: u32,
    /// The netmask of the captured network, for `ip broadcast`.
    pub netmask: Option<u32>,
    /// Whether to optimize the program.
    pub optimize: bool,
    /// Whether the program may use the kernel's metadata.
    pub kernel: bool,
    /// Whether packets are read from a file, possibly written on another system.
    pub offline: bool,
    /// The meaning of tunnel keywords for the rest of the expression.
    pub dialect: Dialect,
}

/// The meaning of `vlan`, `mpls`, `pppoes`, `geneve`, `vxlan` and `lane`, which match an
/// encapsulating header, for the rest of the expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Everything after them in the text refers to their payload, across parentheses and `or`:
    /// `vlan 2 or vlan 3` looks for 3 in the second tag.
    #[default]
    Libpcap,
    /// Only what follows them joined by `and`, in the same parentheses, refers to their payload:
    /// `vlan 2 or vlan 3` looks for either in the first tag. Parentheses whose alternatives all
    /// match the same headers act like those headers for what is joined to them.
    Scoped,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            snaplen: 262_144,
            netmask: None,
            optimize: true,
            kernel: false,
            offline: true,
            dialect: Dialect::Libpcap,
        }
    }
}

/// A compiled expression, with all stages of its compilation.
#[derive(Clone, Debug)]
pub struct Compiled {
    text: String,
    link_type: u16,
    options: Options,
    /// `None` for the empty expression.
    stages: Option<Stages>,
    program: Program,
}

#[derive(Clone, Debug)]
struct Stages {
    lowered: Lowered,
    graph: Graph,
}

/// Compiles an expression for a link type, numbered as in `pcap/dlt.h`.
///
/// # Errors
/// The first error with its position. With the optimizer, an expression that no packet can match is
/// an error.
pub fn compile(
    text: &str,
    link_type: u16,
    options: &Options,
    names: &dyn Resolver,
) -> Result<Compiled, Error> {
    parser::parse(text)
        .and_then(|tree| compile_tree(tree.as_ref(), text, link_type, options, names))
        .map_err(|problem| Error::new(problem, text))
}

pub(crate) fn compile_tree(
    tree: Option<&Expr>,
    text: &str,
    link_type: u16,
    options: &Options,
    names: &dyn Resolver,
) -> Result<Compiled, Problem> {
    let stages = stages(tree, text, link_type, options, names)?;
    let program = program(stages.as_ref(), text, options)?;
    let options = options.clone();
    Ok(Compiled { text: text.to_owned(), link_type, options, stages, program })
}

/// The stages of compilation; `None` for the empty expression.
fn stages(
    tree: Option<&Expr>,
    text: &str,
    link_type: u16,
    options: &Options,
    names: &dyn Resolver,
) -> Result<Option<Stages>, Problem> {
    let Some(tree) = tree else { return Ok(None) };
    let stages = Stages::new(lower::lower(tree, link_type, options, names)?, options);
    // The same expressions are refused as by libpcap, so that filters are exchangeable between
    // both.
    if options.optimize && stages.graph.rejects_all() {
        let theirs = lower::lower_as_libpcap(tree, link_type, options, names)?;
        if theirs.is_optimized && optimize::contradicts(theirs.graph()) {
            return Err(whole_expression(REJECTS_ALL.into(), text));
        }
    }
    Ok(Some(stages))
}

fn program(stages: Option<&Stages>, text: &str, options: &Options) -> Result<Program, Problem> {
    match stages {
        Some(stages) => stages.program(options),
        None => {
            let keep = Insn::new(bpf::RET, options.snaplen);
            Program::new(vec![keep]).map_err(|e| e.to_string())
        }
    }
    .map_err(|message| whole_expression(message, text))
}

/// An error whose span is the whole expression.
fn whole_expression(message: String, text: &str) -> Problem {
    Problem::new(message, Span { at: 0, width: text.len() })
}

/// Checks whether an expression compiles, without generating a program for long lists.
pub(crate) fn check(
    tree: Option<&Expr>,
    text: &str,
    link_type: u16,
    options: &Options,
    names: &dyn Resolver,
) -> Result<(), Problem> {
    let options = Options { optimize: false, ..options.clone() };
    let stages = stages(tree, text, link_type, &options, names)?;
    match &stages {
        Some(stages) if stages.graph.has_long_sets() => Ok(()),
        stages => program(stages.as_ref(), text, &options).map(|_| ()),
    }
}

/// The fastest engine for an expression: machine code from the graph. Without it, a program for the interpreter, or a
/// walk over the graph if that has long lists, whose programs would have millions of comparisons.
pub(crate) fn engine(
    tree: Option<&Expr>,
    text: &str,
    link_type: u16,
    options: &Options,
    names: &dyn Resolver,
) -> Result<Box<dyn Engine>, Problem> {
    let mut stages = stages(tree, text, link_type, options, names)?;
    #[cfg(feature = "jit")]
    if let Some(engine) = stages.as_ref().and_then(|stages| stages.machine_code(options)) {
        return Ok(Box::new(engine));
    }
    if let Some(Stages { graph, .. }) = stages.take_if(|stages| stages.graph.has_long_sets()) {
        return Ok(Box::new(engine::Walk::new(graph, options.snaplen)));
    }
    Ok(engine::best(&program(stages.as_ref(), text, options)?))
}

impl Stages {
    fn new(mut lowered: Lowered, options: &Options) -> Self {
        let graph = if options.optimize {
            let cond = optimize::factor(&mut lowered.values, &lowered.cond);
            let graph = Graph::new(lowered.values.clone(), &lowered.prologue, &cond);
            optimize::apply(&optimize::WITH_SETS, graph)
        } else {
            lowered.graph()
        };
        Self { lowered, graph }
    }

    /// Machine code of the graph, whose long sets become tables. `None` for unsupported graphs:
    /// those with loops over headers, or with long sets of IPv6 addresses.
    #[cfg(feature = "jit")]
    fn machine_code(&self, options: &Options) -> Option<engine::jit::Batch> {
        if self.graph.has_long_sets6() {
            return None;
        }
        let mut graph = optimize::expand_words(self.graph.clone());
        if options.optimize {
            graph = optimize::apply(&optimize::EXPANDED, graph);
        }
        engine::jit::Batch::from_ir(&graph, options.snaplen).ok()
    }

    fn program(&self, options: &Options) -> Result<Program, String> {
        let mut graph = optimize::expand(self.graph.clone());
        if options.optimize {
            graph = optimize::apply(&optimize::EXPANDED, graph);
        }
        select::select(&graph, options.snaplen, self.lowered.vars, options.optimize)
    }
}

impl Compiled {
    /// The program of classic BPF.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The text of the expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The link type for which it was compiled.
    pub fn link_type(&self) -> u16 {
        self.link_type
    }

    /// The options with which it was compiled.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The filter as a graph, optimized if requested. Sets are not expanded: engines with faster
    /// lookups than comparisons start from here. `None` for the empty expression, which matches all
    /// packets.
    pub fn graph(&self) -> Option<&Graph> {
        self.stages.as_ref().map(|s| &s.graph)
    }

    /// The graph before the optimizer.
    pub fn lowered(&self) -> Option<Graph> {
        self.stages.as_ref().map(|s| s.lowered.graph())
    }

    /// The program before the optimizer: every test in source order, every load where it is used.
    ///
    /// # Errors
    /// If the program is too large for BPF.
    pub fn unoptimized(&self) -> Result<Program, Error> {
        let Some(stages) = &self.stages else { return Ok(self.program.clone()) };
        let options = Options { optimize: false, ..self.options.clone() };
        let plain = Stages { lowered: stages.lowered.clone(), graph: stages.lowered.graph() };
        plain.program(&options).map_err(|message| {
            let span = Span { at: 0, width: self.text.len() };
            Error::new(Problem::new(message, span), &self.text)
        })
    }

    /// The lowered graph, and the graph after each pass of the optimizer that the options enable.
    pub fn passes(&self) -> Vec<(&'static str, Graph)> {
        let Some(Stages { lowered, .. }) = &self.stages else { return Vec::new() };
        let mut values = lowered.values.clone();
        let cond = optimize::factor(&mut values, &lowered.cond);
        let factored = Graph::new(values, &lowered.prologue, &cond);
        let mut passes = vec![("the graph as written", lowered.graph())];
        let mut graph = factored.clone();
        passes.push(("the factored graph", factored));
        let without_sets: [optimize::Pass; 1] = [("the graph without sets", optimize::expand)];
        let all = [&optimize::WITH_SETS[..], &without_sets, &optimize::EXPANDED].concat();
        for (name, pass) in all {
            graph = pass(graph);
            passes.push((name, graph.clone()));
        }
        passes
    }

    /// The program of the last pass, without the optimizations of instruction selection.
    pub(crate) fn unshared(&self) -> Result<Program, String> {
        match (&self.stages, self.passes().pop()) {
            (Some(Stages { lowered, .. }), Some((_, graph))) => {
                select::select(&graph, self.options.snaplen, lowered.vars, false)
            }
            _ => Ok(self.program.clone()),
        }
    }

    /// Machine code for the graph, as [`Filter`](crate::Filter) generates it; `None` if that is not
    /// possible.
    #[cfg(feature = "jit")]
    pub fn machine_code(&self) -> Option<engine::jit::Batch> {
        self.stages.as_ref()?.machine_code(&self.options)
    }

    /// The result of lowering: the prologue, the condition, and their values.
    pub(crate) fn conditions(&self) -> Option<(&Values, &[Cond], &Cond)> {
        let lowered = &self.stages.as_ref()?.lowered;
        Some((&lowered.values, &lowered.prologue, &lowered.cond))
    }

    /// The syntax tree, `None` for the empty expression. Parsed again, since only displays of
    /// stages need it.
    pub(crate) fn tree(&self) -> Option<Expr> {
        parser::parse(&self.text).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::engine::View;

    const COUNT: u32 = 100_000;

    /// Disjoint networks of one family: the n-th begins at n times a stride.
    struct Networks;

    impl Resolver for Networks {
        fn list(&self, name: &str) -> Result<String, String> {
            let line = |n: u32| match name {
                "v4" => format!("{}/29\n", Ipv4Addr::from(n << 4)),
                "v6" => format!("{}/64\n", Ipv6Addr::from(v6(n))),
                _ => format!("{}\n", Ipv6Addr::from(v6(n) | 5)),
            };
            Ok((0..COUNT).map(line).collect())
        }
    }

    /// An address whose words all depend on `n`.
    fn v6(n: u32) -> u128 {
        (u128::from(n.wrapping_mul(0x9e37_79b1)) << 96 | u128::from(n) << 65) & !0xffff
    }

    /// An IPv6 packet from one address to another.
    fn packet(source: u128, destination: u128) -> Vec<u8> {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
        bytes.extend(source.to_be_bytes());
        bytes.extend(destination.to_be_bytes());
        bytes
    }

    #[test]
    fn long_lists_never_become_code_of_their_size() {
        for text in
            ["net in @v4", "net in @v6", "not src host in @hosts6", "net in @v4 or host in @hosts6"]
        {
            let tree = parser::parse(text).ok().flatten().expect(text);
            let options = Options::default();
            let stages = stages(Some(&tree), text, crate::dlt::RAW, &options, &Networks);
            let stages = stages.ok().flatten().expect(text);
            for graph in [stages.lowered.graph(), stages.graph] {
                let nodes = graph.blocks.len() + graph.values.len();
                assert!(nodes < 100, "{text}: {nodes} for {COUNT} members");
            }
        }
        let text = "src net in @v6 or dst host in @hosts6";
        let tree = parser::parse(text).ok().flatten();
        let plain = Options { optimize: false, ..Options::default() };
        assert!(check(tree.as_ref(), text, crate::dlt::RAW, &plain, &Networks).is_ok());
        let engine = engine(tree.as_ref(), text, crate::dlt::RAW, &Options::default(), &Networks);
        let Ok(engine) = engine else { panic!("{text}") };
        let says = |bytes: &[u8]| engine.run(View::new(bytes, bytes.len() as u32)) != 0;
        for n in (0..COUNT).step_by(997) {
            assert!(
                says(&packet(v6(n) | 0xffff, 1)) && says(&packet(1 << 127 | 7, v6(n) | 5)),
                "{n}"
            );
            assert!(!says(&packet(v6(n) | 1 << 64, v6(n) | 6)), "{n}");
            assert!(!says(&packet(v6(n), 1)[..23]));
        }
    }
}
