//! Machine code for programs, made by Cranelift: `jit` asks about a packet, `batch` about many.
//!
//! How a program is compiled depends on what it is:
//!
//! - `flat`: a filter of a few tests becomes one piece of code without branches. Traffic decides at
//!   random which way a test goes, and a wrong guess costs more than all of them.
//! - `tree`: a bigger one keeps its branches, with values computed once and lengths checked once;
//!   of tests in a row that leave to the same block, one branch is made (`join`).
//! - `plain`: one that loops is taken instruction by instruction.
//!
//! [`Batch`] has the same code inside of a loop over [`View`]s, whose verdicts are stored without a
//! branch. No code calls anything. Everything unsafe of this engine is in this file and in the
//! addresses that `emit` computes; the proof is that each load is behind the check that `bounds`
//! asks for.
#![allow(unsafe_code)]

mod emit;
mod flat;
mod join;
mod pieces;
mod plain;
mod tree;

use std::mem::ManuallyDrop;
use std::sync::Arc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, Value as Clif, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};

use super::bounds::Bounds;
use super::graph::Graph;
use super::{Engine, Unavailable, View, sets};
use crate::{Insn, Program, ir};

use emit::{Emit, Exits, Tables};

/// Programs beyond are left to the interpreter: code for them takes too long to make.
pub const MAX_INSNS: usize = 1 << 17;

/// Blocks that a graph may still have when it is compiled, once sets are found.
const MAX_BLOCKS: usize = 1 << 13;

/// Filters up to so many blocks become flat.
const MAX_FLAT: usize = 5;

/// Code of [`Shape::One`].
type Run = unsafe extern "C" fn(*const u8, u64, u32) -> u32;

/// Code of [`Shape::Many`].
type Select = unsafe extern "C" fn(*const View<'static>, u64, *mut u32) -> u64;

/// Machine code that is asked about one packet at a time.
#[derive(Debug)]
pub struct Jit {
    code: Code,
    run: Run,
    /// Read by the code, and by that of a batch.
    _tables: Arc<Tables>,
}

/// Machine code that walks over packets.
#[derive(Debug)]
pub struct Batch {
    one: Jit,
    code: Code,
    select: Select,
}

impl Jit {
    /// Compiles a program.
    ///
    /// # Errors
    /// What is too large, or a processor that there is no compiler for.
    pub fn new(program: &Program) -> Result<Self, Unavailable> {
        let mut tables = Tables::default();
        let code = Code::new(&Source::new(program)?, Shape::One, false, &mut tables)?;
        Ok(Self::of(code, Arc::new(tables)))
    }

    /// For code of the shape `Shape::One`.
    fn of(code: Code, tables: Arc<Tables>) -> Self {
        // SAFETY: the code was made for this signature.
        let run = unsafe { std::mem::transmute::<*const u8, Run>(code.entry) };
        Self { code, run, _tables: tables }
    }
}

impl Engine for Jit {
    #[inline]
    fn run(&self, packet: View<'_>) -> u32 {
        let data = packet.data();
        // SAFETY: the code reads bytes of `data` below its length only, and its tables, which live
        // as long as `self`.
        unsafe { (self.run)(data.as_ptr(), data.len() as u64, packet.wire_len()) }
    }

    fn select(&self, packets: &[View<'_>], hits: &mut Vec<u32>) {
        hits.clear();
        for (at, packet) in (0..).zip(packets) {
            if self.run(*packet) != 0 {
                hits.push(at);
            }
        }
    }

    fn code_bytes(&self) -> Option<usize> {
        Some(self.code.bytes)
    }
}

impl Batch {
    /// Compiles a program.
    ///
    /// # Errors
    /// As [`Jit::new`].
    pub fn new(program: &Program) -> Result<Self, Unavailable> {
        Self::of(&Source::new(program)?)
    }

    /// Compiles a graph of the compiler, whose sets become tables as they are.
    ///
    /// # Errors
    /// As [`Jit::new`].
    pub(crate) fn of_ir(graph: &ir::Graph, snaplen: u32) -> Result<Self, Unavailable> {
        let graph = Graph::of_ir(graph, snaplen).map_err(|_| unavailable("no graph of values"))?;
        Self::of(&Source::of_graph(graph)?)
    }

    fn of(source: &Source<'_>) -> Result<Self, Unavailable> {
        let mut tables = Tables::default();
        let one = Code::new(source, Shape::One, false, &mut tables)?;
        let code = Code::new(source, Shape::Many, false, &mut tables)?;
        // SAFETY: the code was made for this signature: `Shape::Many`.
        let select = unsafe { std::mem::transmute::<*const u8, Select>(code.entry) };
        // The tables live in `one`, as long as the batch.
        Ok(Self { one: Jit::of(one, Arc::new(tables)), code, select })
    }
}

/// Packets for which headers are fetched before the code walks over them.
const CHUNK: usize = 64;

/// Packets that the code walks over in one call.
const MAX_CHUNK: usize = 1 << 30;

/// Packets that lie closer together come from a buffer that was filled just now, or that the
/// processor reads ahead by itself: fetching them would cost more than it saves.
const NEAR: usize = 4 << 20;

/// Whether headers are worth fetching ahead.
fn is_far(packets: &[View<'_>]) -> bool {
    let [first, .., last] = packets else {
        return false;
    };
    let (first, last) = (first.data().as_ptr() as usize, last.data().as_ptr() as usize);
    first.abs_diff(last) > NEAR
}

impl Engine for Batch {
    fn run(&self, packet: View<'_>) -> u32 {
        self.one.run(packet)
    }

    fn select(&self, packets: &[View<'_>], hits: &mut Vec<u32>) {
        hits.clear();
        hits.reserve(packets.len());
        let far = is_far(packets);
        let mut next = packets;
        let mut base = 0;
        let mut count = 0;
        while !next.is_empty() {
            let (chunk, rest) = next.split_at(next.len().min(if far { CHUNK } else { MAX_CHUNK }));
            if far {
                for packet in rest.iter().take(CHUNK) {
                    fetch(*packet);
                }
            }
            // SAFETY: the code reads the `chunk.len()` views and what they are of, and writes one
            // number at most for each of them behind those that are there: `packets.len()` in all,
            // for which there is room.
            let found = unsafe {
                let free = hits.as_mut_ptr().add(count);
                (self.select)(chunk.as_ptr().cast(), chunk.len() as u64, free)
            };
            let found = found as usize;
            if base > 0 {
                // SAFETY: the code wrote `found` numbers there.
                let new =
                    unsafe { std::slice::from_raw_parts_mut(hits.as_mut_ptr().add(count), found) };
                for hit in new {
                    *hit += base;
                }
            }
            count += found;
            base += chunk.len() as u32;
            next = rest;
        }
        // SAFETY: `count` numbers were written, and there is room for more.
        unsafe { hits.set_len(count) };
    }

    fn code_bytes(&self) -> Option<usize> {
        Some(self.code.bytes)
    }
}

/// Starts loading the headers of a packet.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fetch(packet: View<'_>) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let data = packet.data();
    // Where addresses and ports begin: the line with the EtherType is the same or comes along.
    let middle = data.as_ptr().wrapping_add(30);
    // SAFETY: a prefetch only hints, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(middle.cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn fetch(_packet: View<'_>) {}

/// The code of a program as text, as Cranelift prints what it emits for this processor.
///
/// # Errors
/// As [`Jit::new`].
pub fn assembly(program: &Program, batch: bool) -> Result<String, Unavailable> {
    let shape = if batch { Shape::Many } else { Shape::One };
    let mut tables = Tables::default();
    Ok(std::mem::take(&mut Code::new(&Source::new(program)?, shape, true, &mut tables)?.text))
}

/// What a function takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Bytes, how many, how many on the wire: how many to keep.
    One,
    /// Views, how many, where to write the places of those that match: how many match.
    Many,
}

/// Code that can be run, and what it reads.
struct Code {
    /// Freed by [`Drop`], with the code in it.
    module: ManuallyDrop<JITModule>,
    entry: *const u8,
    bytes: usize,
    text: String,
}

// SAFETY: the code does not change once it is made, and it writes only where callers say.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the module is not used again.
        let module = unsafe { ManuallyDrop::take(&mut self.module) };
        // SAFETY: its code runs only in methods that borrow the owner of this.
        unsafe { module.free_memory() };
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

fn unavailable(error: impl std::fmt::Display) -> Unavailable {
    Unavailable(format!("no machine code: {error}"))
}

/// The processor this runs on.
fn processor() -> Result<OwnedTargetIsa, Unavailable> {
    let mut flags = settings::builder();
    for (name, value) in [("opt_level", "speed"), ("is_pic", "false"), ("enable_verifier", VERIFY)]
    {
        flags.set(name, value).map_err(unavailable)?;
    }
    let builder = cranelift_native::builder().map_err(unavailable)?;
    builder.finish(settings::Flags::new(flags)).map_err(unavailable)
}

/// Cranelift's own checks: where assertions are.
const VERIFY: &str = if cfg!(debug_assertions) { "true" } else { "false" };

impl Code {
    /// Code that reads the tables where they are: they must live as long.
    fn new(
        source: &Source<'_>,
        shape: Shape,
        text: bool,
        tables: &mut Tables,
    ) -> Result<Self, Unavailable> {
        if size_of::<usize>() != 8 || cfg!(target_endian = "big") {
            return Err(unavailable("for processors of 64 bits in little-endian order only"));
        }
        let mut module =
            JITModule::new(JITBuilder::with_isa(processor()?, default_libcall_names()));
        let mut context = module.make_context();
        context.set_disasm(text);
        let mut signature: Signature = module.make_signature();
        let (params, result) = match shape {
            Shape::One => ([types::I64, types::I64, types::I32], types::I32),
            Shape::Many => ([types::I64; 3], types::I64),
        };
        signature.params = params.map(AbiParam::new).to_vec();
        signature.returns = vec![AbiParam::new(result)];
        context.func.signature = signature.clone();
        let mut frontend = FunctionBuilderContext::new();
        let mut builder = FunctionBuilder::new(&mut context.func, &mut frontend);
        match shape {
            Shape::One => one(&mut builder, source, tables),
            Shape::Many => many(&mut builder, source, tables),
        }
        builder.seal_all_blocks();
        builder.finalize(module.target_config());
        let id =
            module.declare_function("filter", Linkage::Export, &signature).map_err(unavailable)?;
        module.define_function(id, &mut context).map_err(unavailable)?;
        module.finalize_definitions().map_err(unavailable)?;
        let entry = module.get_finalized_function(id);
        let (bytes, text) = match context.compiled_code() {
            Some(code) => (code.code_buffer().len(), code.vcode.clone().unwrap_or_default()),
            None => (0, String::new()),
        };
        Ok(Self { module: ManuallyDrop::new(module), entry, bytes, text })
    }
}

/// What is compiled, and how.
enum Source<'a> {
    Flat(Graph, Bounds),
    Tree(Graph, Bounds),
    Plain(&'a [Insn]),
}

impl<'a> Source<'a> {
    fn new(program: &'a Program) -> Result<Self, Unavailable> {
        let program = program.insns();
        if program.len() > MAX_INSNS {
            return Err(unavailable("the program is too long"));
        }
        let Ok(graph) = Graph::new(program) else {
            return if program.len() > MAX_BLOCKS {
                Err(unavailable("the program is too long"))
            } else {
                Ok(Self::Plain(program))
            };
        };
        Self::of_graph(graph)
    }

    fn of_graph(mut graph: Graph) -> Result<Self, Unavailable> {
        sets::find(&mut graph);
        let bounds = Bounds::new(&mut graph);
        let blocks = graph.reachable().iter().filter(|r| **r).count();
        if blocks > MAX_BLOCKS {
            return Err(unavailable("the program is too long"));
        }
        if blocks <= MAX_FLAT && flat::can(&graph, &bounds) {
            return Ok(Self::Flat(graph, bounds));
        }
        Ok(Self::Tree(graph, bounds))
    }

    /// Emits the program for a packet; ends in a jump to `done` with the verdict.
    fn emit(&self, emit: &mut Emit<'_, '_>) {
        match self {
            Self::Flat(graph, bounds) => flat::emit(graph, bounds, emit),
            Self::Tree(graph, bounds) => tree::emit(graph, bounds, emit),
            Self::Plain(program) => plain::emit(program, emit),
        }
    }
}

fn one(b: &mut FunctionBuilder<'_>, source: &Source<'_>, tables: &mut Tables) {
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let [data, len, wire] = params(b, entry);
    source.emit(&mut Emit::new(b, tables, [data, len, wire], Exits::Return));
}

fn params(b: &FunctionBuilder<'_>, entry: cranelift_codegen::ir::Block) -> [Clif; 3] {
    let p = b.block_params(entry);
    [p[0], p[1], p[2]]
}

/// The loop over views: what matches is stored, what does not goes on at once.
fn many(b: &mut FunctionBuilder<'_>, source: &Source<'_>, tables: &mut Tables) {
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let [views, count, hits] = params(b, entry);
    let [body, done, hit, next, end] = [(); 5].map(|()| b.create_block());
    let view = b.append_block_param(body, types::I64);
    let at = b.append_block_param(body, types::I32);
    let free = b.append_block_param(body, types::I64);
    let matches = b.append_block_param(done, types::I64);
    let now_free = b.append_block_param(next, types::I64);
    let last_free = b.append_block_param(end, types::I64);
    let bytes = b.ins().ishl_imm_u(count, 4);
    let behind = b.ins().iadd(views, bytes);
    let zero = b.ins().iconst(types::I32, 0);
    let some = b.ins().icmp_imm_u(IntCC::NotEqual, count, 0);
    b.ins().brif(some, body, &[views.into(), zero.into(), hits.into()], end, &[hits.into()]);

    b.switch_to_block(body);
    let data = b.ins().load(types::I64, emit::OWN, view, 0);
    let len = b.ins().uload32(emit::OWN, view, 8);
    let wire = b.ins().load(types::I32, emit::OWN, view, 12);
    let exits = Exits::Loop { done, hit, next: (next, free) };
    source.emit(&mut Emit::new(b, tables, [data, len, wire], exits));

    // A verdict that was worked out without branches is stored without one.
    b.switch_to_block(done);
    b.ins().store(emit::OWN, at, free, 0);
    let room = b.ins().ishl_imm_u(matches, 2);
    let moved = b.ins().iadd(free, room);
    b.ins().jump(next, &[moved.into()]);

    b.switch_to_block(hit);
    b.ins().store(emit::OWN, at, free, 0);
    let moved = b.ins().iadd_imm_u(free, 4);
    b.ins().jump(next, &[moved.into()]);

    b.switch_to_block(next);
    let next_view = b.ins().iadd_imm_u(view, 16);
    let next_at = b.ins().iadd_imm_u(at, 1);
    let more = b.ins().icmp(IntCC::NotEqual, next_view, behind);
    let on = [next_view.into(), next_at.into(), now_free.into()];
    b.ins().brif(more, body, &on, end, &[now_free.into()]);

    b.switch_to_block(end);
    let found = b.ins().isub(last_free, hits);
    let found = b.ins().ushr_imm_u(found, 2);
    b.ins().return_(&[found]);
}
