//! From text to program, with what lies between.

use crate::ast::Expr;
use crate::bpf::{self, Insn, Program};
use crate::error::{Error, Problem, Span};
use crate::ir::{Cond, Graph};
use crate::lower::Lowered;
use crate::names::Resolver;
use crate::{lower, optimize, parser, select};

/// What the optimizer says of filters that match nothing.
pub(crate) const REJECTS_ALL: &str = "expression rejects all packets";

/// Graphs of more blocks are not looked through once more when sets have become trees.
const MAX_THREADED: usize = 512;

/// What a program depends on besides the expression and the link type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes of a matching packet to keep.
    pub snaplen: u32,
    /// The mask of the network captured on, for `ip broadcast`.
    pub netmask: Option<u32>,
    /// Whether to shorten the program.
    pub optimize: bool,
    /// Whether the program may ask the kernel for what is not in the packet.
    pub kernel: bool,
    /// Whether packets come from a file, perhaps of another system.
    pub offline: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { snaplen: 262_144, netmask: None, optimize: true, kernel: false, offline: true }
    }
}

/// A compiled expression, with all stages that led to its program.
#[derive(Clone, Debug)]
pub struct Compiled {
    text: String,
    link_type: u16,
    options: Options,
    /// None for the empty expression.
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
/// What is wrong and where. With the optimizer that includes that no packet can match.
pub fn compile(
    text: &str,
    link_type: u16,
    options: &Options,
    names: &dyn Resolver,
) -> Result<Compiled, Error> {
    parser::parse(text)
        .and_then(|tree| of_tree(tree.as_ref(), text, link_type, options, names))
        .map_err(|problem| Error::new(problem, text))
}

pub(crate) fn of_tree(
    tree: Option<&Expr>,
    text: &str,
    link_type: u16,
    options: &Options,
    names: &dyn Resolver,
) -> Result<Compiled, Problem> {
    let whole = |message| Problem::new(message, Span { at: 0, width: text.len() });
    let (stages, program) = match tree {
        None => {
            let keep = Insn::new(bpf::RET, options.snaplen);
            (None, Program::new(vec![keep]).map_err(|e| whole(e.to_string()))?)
        }
        Some(tree) => {
            let lowered = lower::lower(tree, link_type, options, names)?;
            let stages = Stages::new(lowered, options);
            if options.optimize && stages.graph.rejects_all() {
                return Err(whole(REJECTS_ALL.into()));
            }
            let program = stages.program(options).map_err(whole)?;
            (Some(stages), program)
        }
    };
    let options = options.clone();
    Ok(Compiled { text: text.to_owned(), link_type, options, stages, program })
}

impl Stages {
    fn new(mut lowered: Lowered, options: &Options) -> Self {
        let graph = if options.optimize {
            let cond = optimize::factor(&mut lowered.values, &lowered.cond);
            let graph = Graph::new(lowered.values.clone(), &lowered.prologue, &cond);
            optimize::dead(optimize::thread(graph))
        } else {
            lowered.graph()
        };
        Self { lowered, graph }
    }

    fn program(&self, options: &Options) -> Result<Program, String> {
        let mut graph = optimize::expand(self.graph.clone());
        if options.optimize {
            graph = optimize::bits(graph);
            // Trees of large sets hold nothing that could be left out.
            if graph.blocks.len() <= MAX_THREADED {
                graph = optimize::thread(graph);
            }
        }
        select::select(&graph, options.snaplen, self.lowered.vars, options.optimize)
    }
}

impl Compiled {
    /// The program of classic BPF.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The link type that it was compiled for.
    pub fn link_type(&self) -> u16 {
        self.link_type
    }

    /// What it was compiled with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What the filter does to a packet, after the optimizer if it was to run. Sets are still sets
    /// here: engines with better means than comparisons begin with this. None for the empty
    /// expression, which matches all packets.
    pub fn graph(&self) -> Option<&Graph> {
        self.stages.as_ref().map(|s| &s.graph)
    }

    /// The graph before the optimizer.
    pub fn lowered(&self) -> Option<Graph> {
        self.stages.as_ref().map(|s| s.lowered.graph())
    }

    /// The program before the optimizer: every test in the order it was written, every load where
    /// it is used.
    ///
    /// # Errors
    /// What is too large for BPF.
    pub fn unoptimized(&self) -> Result<Program, Error> {
        let Some(stages) = &self.stages else { return Ok(self.program.clone()) };
        let options = Options { optimize: false, ..self.options.clone() };
        let plain = Stages { lowered: stages.lowered.clone(), graph: stages.lowered.graph() };
        plain.program(&options).map_err(|message| {
            let span = Span { at: 0, width: self.text.len() };
            Error::new(Problem::new(message, span), &self.text)
        })
    }

    /// What lowering left: its graph, what to carry out first, the condition, and the lowest word
    /// that holds a variable.
    pub(crate) fn parts(&self) -> Option<(Graph, &[Cond], &Cond, u8)> {
        let lowered = &self.stages.as_ref()?.lowered;
        Some((lowered.graph(), &lowered.prologue, &lowered.cond, lowered.vars))
    }

    /// The syntax tree, none for the empty expression: parsed anew, as only those who look at
    /// stages ask for it.
    pub(crate) fn tree(&self) -> Option<Expr> {
        parser::parse(&self.text).ok().flatten()
    }
}
