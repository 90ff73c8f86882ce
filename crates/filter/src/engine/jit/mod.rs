//! Machine code for programs, made by Cranelift: `jit` for one packet, `batch` for many.
//!
//! The kind of code depends on the program:
//!
//! - `flat`: a filter of a few tests becomes one piece of branch-free code, since mispredicted
//!   branches cost more than all tests.
//! - `tree`: a larger one keeps its branches, with values computed once and lengths checked once;
//!   consecutive tests that leave to the same block share one branch (`join`).
//! - `plain`: one with loops is compiled instruction by instruction.
//!
//! [`Batch`] has the same code inside of a loop over [`View`]s, which stores verdicts without a
//! branch. Code for one packet has no frame (`leaf`). No code makes calls. All unsafe code of this
//! engine is in this file and in the addresses that `emit` computes; the proof is that each load
//! follows the check that `bounds` requires.
#![allow(unsafe_code)]

mod emit;
mod flat;
mod join;
mod leaf;
mod pieces;
mod plain;
mod tree;

use std::mem::ManuallyDrop;
use std::sync::Arc;

use cranelift_codegen::control::ControlPlane;
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

/// Longer programs are left to the interpreter: compiling them takes too long.
pub const MAX_INSNS: usize = 1 << 17;

/// Most blocks of a graph that is compiled, after sets are found.
const MAX_BLOCKS: usize = 1 << 13;

/// Filters up to this number of blocks become branch-free.
const MAX_FLAT: usize = 5;

/// Code of [`Shape::One`].
type Run = unsafe extern "C" fn(*const u8, u64, u32) -> u32;

/// Code of [`Shape::Many`]: for views in whole rounds.
type Select = unsafe extern "C" fn(*const View<'static>, u64, *mut u32) -> u64;

/// Machine code for one packet at a time.
#[derive(Debug)]
pub struct Jit {
    code: Code,
    run: Run,
    /// Read by this code, and by that of a batch.
    _tables: Arc<Tables>,
}

/// Machine code that walks over packets.
#[derive(Debug)]
pub struct Batch {
    one: Jit,
    code: Code,
    select: Select,
    /// Packets per iteration of the code's loop.
    copies: usize,
}

impl Jit {
    /// Compiles a program.
    ///
    /// # Errors
    /// If the program is too large, or the processor is not supported.
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
        // SAFETY: the code only reads bytes of `data` below its length, and its tables, which live
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

    /// Compiles a graph of the compiler, whose sets become tables directly.
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
        Ok(Self { one: Jit::of(one, Arc::new(tables)), code, select, copies: source.copies() })
    }
}

/// Packets whose headers are prefetched before the code walks over them.
const CHUNK: usize = 64;

/// Packets that the code walks over in one call.
const MAX_CHUNK: usize = 1 << 27;

/// Most packets per iteration of the loop: chunks are multiples of it.
const MAX_COPIES: usize = 4;

/// The code identifies packets by the addresses of their views: shift from address difference to
/// index.
const VIEW_SHIFT: i64 = size_of::<View<'_>>().ilog2() as i64;

/// Packets that are closer together come from a buffer that was just filled, or that the processor
/// prefetches by itself.
const NEAR: usize = 4 << 20;

/// Whether prefetching headers pays.
fn is_far(packets: &[View<'_>]) -> bool {
    let [first, .., last] = packets else {
        return false;
    };
    let (first, last) = (first.data().as_ptr() as usize, last.data().as_ptr() as usize);
    first.abs_diff(last) > NEAR
}

impl Batch {
    /// Appends the indices of matching packets in whole iterations, the first of which is at
    /// `base`. The caller must reserve room in `hits`.
    fn walk(&self, chunk: &[View<'_>], base: u32, hits: &mut Vec<u32>) {
        assert!(chunk.len().is_multiple_of(self.copies) && chunk.len() <= MAX_CHUNK);
        hits.reserve(chunk.len());
        let free = hits.spare_capacity_mut();
        // SAFETY: the code reads the `chunk.len()` views, a multiple of an iteration, and their
        // bytes, and writes at most one number for each of them at `free`, where there is room.
        let found = unsafe {
            (self.select)(chunk.as_ptr().cast(), chunk.len() as u64, free.as_mut_ptr().cast())
        };
        let before = hits.len();
        // SAFETY: the code wrote `found` numbers there.
        unsafe { hits.set_len(before + found as usize) };
        for hit in &mut hits[before..] {
            *hit = (*hit >> VIEW_SHIFT) + base;
        }
    }
}

impl Engine for Batch {
    fn run(&self, packet: View<'_>) -> u32 {
        self.one.run(packet)
    }

    fn select(&self, packets: &[View<'_>], hits: &mut Vec<u32>) {
        hits.clear();
        hits.reserve(packets.len() + MAX_COPIES);
        let far = is_far(packets);
        let (mut next, last) = packets.split_at(packets.len() - packets.len() % self.copies);
        let mut base = 0;
        while !next.is_empty() {
            let (chunk, rest) = next.split_at(next.len().min(if far { CHUNK } else { MAX_CHUNK }));
            if far {
                for packet in rest.iter().take(CHUNK) {
                    fetch(*packet);
                }
            }
            self.walk(chunk, base, hits);
            base += chunk.len() as u32;
            next = rest;
        }
        if !last.is_empty() {
            // A separate iteration, padded with empty packets whose results are dropped.
            let mut round = [View::new(&[], 0); MAX_COPIES];
            round[..last.len()].copy_from_slice(last);
            self.walk(&round[..self.copies], base, hits);
            let beyond = |hit: &&u32| **hit as usize >= packets.len();
            hits.truncate(hits.len() - hits.iter().rev().take_while(beyond).count());
        }
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
    // Start of addresses and ports: the line with the EtherType is the same or adjacent.
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

/// The signature of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Bytes, their number, wire length: returns the bytes to keep.
    One,
    /// Views, their number in whole iterations, the buffer for the offsets of matching views:
    /// returns the number of matches.
    Many,
}

/// Executable code, and the data it reads.
struct Code {
    /// Freed by [`Drop`], with the code in it.
    module: ManuallyDrop<JITModule>,
    entry: *const u8,
    bytes: usize,
    text: String,
}

// SAFETY: the code does not change after compilation, and it only writes to the caller's buffer.
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

/// Cranelift's verifier, enabled with debug assertions.
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
        let made = context.compile(module.isa(), &mut ControlPlane::default());
        let made = made.map_err(|e| unavailable(e.inner))?;
        if !made.buffer.relocs().is_empty() {
            return Err(unavailable("it would call something"));
        }
        let mut bytes = made.code_buffer().to_vec();
        let text = made.vcode.clone().unwrap_or_default();
        let begin = leaf::unframe(&mut bytes, made.buffer.get_srclocs_sorted());
        bytes.splice(..begin, [leaf::NEVER_REACHED; BEFORE]);
        module.define_function_bytes(id, LINE, &bytes, &[]).map_err(unavailable)?;
        module.finalize_definitions().map_err(unavailable)?;
        // Within the code, behind the padding.
        let entry = module.get_finalized_function(id).wrapping_add(BEFORE);
        Ok(Self { module: ManuallyDrop::new(module), entry, bytes: bytes.len() - BEFORE, text })
    }
}

/// Bytes of a cache line, the unit in which the processor fetches code.
const LINE: u64 = 64;

/// Padding before the code in its first line. Filters with many branches run up to a fifth faster
/// with it than from the line's start, and up to two fifths faster than from its end; constants of
/// the code have at most 8 bytes and need no alignment.
const BEFORE: usize = 24;

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

    /// Packets per iteration of the loop over many: copies of long code would evict others from the
    /// cache.
    fn copies(&self) -> usize {
        match self {
            Self::Flat(..) => MAX_COPIES,
            Self::Tree(graph, _) => match graph.blocks.len() {
                0..=24 => MAX_COPIES,
                25..=96 => 2,
                _ => 1,
            },
            Self::Plain(_) => 1,
        }
    }

    /// Emits the program for one packet; ends in a jump to `done` with the verdict.
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

/// The loop over views, several in each iteration: matches are stored, others continue at once. An
/// iteration has a copy of the code for each of its packets, so that all of them share one loop
/// step, and a packet that is rejected early needs no jump back.
fn many(b: &mut FunctionBuilder<'_>, source: &Source<'_>, tables: &mut Tables) {
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let [views, count, hits] = params(b, entry);
    let copies = source.copies();
    let bodies: Vec<_> = (0..copies).map(|_| b.create_block()).collect();
    let [on, end] = [(); 2].map(|()| b.create_block());
    let place = b.append_block_param(bodies[0], types::I64);
    for block in bodies.iter().chain([&on, &end]) {
        b.append_block_param(*block, types::I64);
    }
    let behind = b.ins().ishl_imm_u(count, VIEW_SHIFT);
    let zero = b.ins().iconst(types::I64, 0);
    let some = b.ins().icmp_imm_u(IntCC::NotEqual, count, 0);
    b.ins().brif(some, bodies[0], &[zero.into(), hits.into()], end, &[hits.into()]);

    for (number, body) in bodies.iter().enumerate() {
        let next = bodies.get(number + 1).copied().unwrap_or(on);
        let [done, hit] = [(); 2].map(|()| b.create_block());
        let matches = b.append_block_param(done, types::I64);
        b.switch_to_block(*body);
        let free = b.block_params(*body).last().copied().unwrap_or(hits);
        let view = b.ins().iadd(views, place);
        let offset = (number as i32) << VIEW_SHIFT;
        let data = b.ins().load(types::I64, emit::VIEWS, view, offset);
        let len = b.ins().uload32(emit::VIEWS, view, offset + 8);
        let wire = b.ins().load(types::I32, emit::VIEWS, view, offset + 12);
        let exits = Exits::Loop { done, hit, next: (next, free) };
        source.emit(&mut Emit::new(b, tables, [data, len, wire], exits));

        // A verdict that was computed without branches is stored without one.
        b.switch_to_block(done);
        store(b, place, offset, free);
        let room = b.ins().ishl_imm_u(matches, 2);
        let moved = b.ins().iadd(free, room);
        b.ins().jump(next, &[moved.into()]);

        b.switch_to_block(hit);
        store(b, place, offset, free);
        let moved = b.ins().iadd_imm_u(free, 4);
        b.ins().jump(next, &[moved.into()]);
    }

    b.switch_to_block(on);
    let free = b.block_params(on).first().copied().unwrap_or(hits);
    let next_place = b.ins().iadd_imm_u(place, (copies as i64) << VIEW_SHIFT);
    let more = b.ins().icmp(IntCC::NotEqual, next_place, behind);
    b.ins().brif(more, bodies[0], &[next_place.into(), free.into()], end, &[free.into()]);

    b.switch_to_block(end);
    let last_free = b.block_params(end).first().copied().unwrap_or(hits);
    let found = b.ins().isub(last_free, hits);
    let found = b.ins().ushr_imm_u(found, 2);
    b.ins().return_(&[found]);
}

/// Stores the offset of a matching packet's view.
fn store(b: &mut FunctionBuilder<'_>, place: Clif, offset: i32, free: Clif) {
    let place = b.ins().ireduce(types::I32, place);
    let place = b.ins().iadd_imm_s(place, i64::from(offset));
    b.ins().store(emit::OWN, place, free, 0);
}
