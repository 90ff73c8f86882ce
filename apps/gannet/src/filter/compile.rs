//! `gannet filter compile`: prints the result of a stage of the compiler for an expression.

use std::fmt::Display;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use gannet_filter::Compiled;
use gannet_filter::Dialect;
use gannet_filter::Options;
use gannet_filter::Program;
use gannet_filter::compile;
use gannet_filter::dlt;
use gannet_filter::engine;

use crate::names::System;
use crate::out;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Print what a filter compiles to.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  gannet filter compile 'tcp port 80'\n  \
                        gannet filter compile --emit svg 'port 53 or 80' > filter.svg\n  \
                        gannet filter compile --link-type LINUX_SLL2 -ddd 'ip6'\n  \
                        gannet filter compile --explain 'vlan 7 and not arp'")]
pub(crate) struct Args {
    /// The expression, like 'tcp port 80 and not net 10.0.0.0/8'; '' is all packets
    #[arg(value_name = "FILTER", required_unless_present = "file")]
    filter: Option<String>,
    /// Read the expression from a file
    #[arg(short = 'F', long, value_name = "FILE", conflicts_with = "filter")]
    file: Option<PathBuf>,
    /// What to print
    #[arg(long, value_name = "STAGE", value_enum)]
    emit: Option<Emit>,
    /// As tcpdump: -d is bpf, -dd is bpf-c, -ddd is bpf-decimal
    #[arg(short, action = clap::ArgAction::Count, conflicts_with = "emit")]
    dump: u8,
    /// The link type, by its name without DLT_, or by its number
    #[arg(short = 'y', long, value_name = "TYPE", default_value = "EN10MB")]
    link_type: String,
    /// Bytes of a matching packet to keep
    #[arg(short, long, value_name = "BYTES", default_value_t = 262_144)]
    snaplen: u32,
    /// Netmask of the captured network, which 'ip broadcast' needs, like 255.255.255.0
    #[arg(short = 'm', long, value_name = "MASK")]
    netmask: Option<std::net::Ipv4Addr>,
    /// Scope of vlan, mpls and other encapsulating headers in the expression
    #[arg(long, value_enum, default_value_t)]
    dialect: DialectName,
    /// Do not optimise: keep every test as written
    #[arg(short = 'O', long)]
    no_optimize: bool,
    /// Describe the filter in words
    #[arg(long)]
    explain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Emit {
    /// The syntax tree, with positions in the text
    Ast,
    /// The conditions on bytes of the packet
    Predicates,
    /// The graph of tests
    Ir,
    /// The graph after each pass of the optimizer
    Passes,
    /// Instructions, as tcpdump -d prints them
    Bpf,
    /// Instructions as initializers in C, as tcpdump -dd
    BpfC,
    /// Instructions as numbers, as tcpdump -ddd
    BpfDecimal,
    /// The program as a function in C
    C,
    /// The instructions of the kernel, as eBPF
    Ebpf,
    /// Machine code for one packet
    Asm,
    /// Machine code for a batch of packets
    AsmBatch,
    /// The graph for Graphviz
    Dot,
    /// The graph as a drawing
    Svg,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DialectName {
    /// They apply to everything after them in the text
    #[default]
    Libpcap,
    /// They apply to what 'and' joins to them, within their parentheses
    Scoped,
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::Libpcap => Self::Libpcap,
            DialectName::Scoped => Self::Scoped,
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let text = match (&args.filter, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) => return Ok(refuse(&format_args!("{}: {error}", file.display()))),
        },
        (None, None) => String::new(),
    };
    let Some(link_type) = link_type(&args.link_type) else {
        let name = &args.link_type;
        let words = "is not a link type; expected a name like EN10MB, or a number";
        return Ok(refuse(&format_args!("'{name}' {words}")));
    };
    let options = Options {
        snaplen: args.snaplen,
        netmask: args.netmask.map(u32::from),
        optimize: !args.no_optimize,
        dialect: args.dialect.into(),
        ..Options::default()
    };
    let compiled = match compile(&text, link_type, &options, &System::new()) {
        Ok(compiled) => compiled,
        Err(error) => return Ok(refuse(&error)),
    };
    let emit = match args.dump {
        0 => args.emit,
        1 => Some(Emit::Bpf),
        2 => Some(Emit::BpfC),
        _ => Some(Emit::BpfDecimal),
    };
    let mut shown = String::new();
    if args.explain {
        shown.push_str(&compiled.explain());
    }
    if let Some(emit) = emit.or((!args.explain).then_some(Emit::Bpf)) {
        shown.push_str(&stage(&compiled, emit)?);
    }
    out::write(shown.as_bytes())
}

fn refuse(error: &dyn Display) -> Outcome {
    Terminal::new(false).error(error);
    Outcome::NoCapture
}

fn link_type(name: &str) -> Option<u16> {
    let plain = name.to_ascii_uppercase();
    let plain = plain.strip_prefix("DLT_").unwrap_or(&plain);
    // Numbers are also those of capture files: where both exist they are the same.
    dlt::by_name(plain).or_else(|| plain.parse().ok().map(dlt::of_file))
}

/// A stage as text, the last line ended.
fn stage(compiled: &Compiled, emit: Emit) -> anyhow::Result<String> {
    let graph = |show: fn(&gannet_filter::ir::Graph) -> String| {
        compiled.graph().map_or_else(|| "accept\n".to_owned(), show)
    };
    let program = compiled.program();
    Ok(match emit {
        Emit::Ast => compiled.ast(),
        Emit::Predicates => compiled.predicates(),
        Emit::Ir => graph(ToString::to_string),
        Emit::Passes => compiled.passes_listed(),
        Emit::Bpf => format!("{program}\n"),
        Emit::BpfC => program.to_c(),
        Emit::BpfDecimal => program.to_decimal(),
        Emit::C => program.to_c_function("filter"),
        Emit::Ebpf => ebpf(program)?,
        Emit::Asm => assembly(program, false)?,
        Emit::AsmBatch => assembly(program, true)?,
        Emit::Dot => graph(gannet_filter::ir::Graph::to_dot),
        Emit::Svg => graph(gannet_filter::ir::Graph::to_svg),
    })
}

/// The eBPF instructions that a program is translated to.
fn ebpf(program: &Program) -> anyhow::Result<String> {
    let translated = engine::ebpf::translate(program).context("no eBPF")?;
    Ok(engine::ebpf::print(&translated))
}

#[cfg(feature = "jit")]
fn assembly(program: &Program, batch: bool) -> anyhow::Result<String> {
    Ok(engine::jit::assembly(program, batch)?)
}

#[cfg(not(feature = "jit"))]
fn assembly(_: &Program, _: bool) -> anyhow::Result<String> {
    anyhow::bail!("machine code requires the feature jit, which this build lacks")
}
