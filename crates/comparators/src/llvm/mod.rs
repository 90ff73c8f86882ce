//! LLVM's code for a program, from the system's library: the binary is not linked to it, and
//! building does not need it.
//!
//! The program is passed as text (`text`), the only form that LLVM's versions share, optimized with
//! the passes of `-O2`, and compiled for the current processor. It is independent of this crate's
//! graphs, so it serves as a reference for the engines.
#![allow(unsafe_code)]

mod text;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use gannet_filter::engine::{Engine, Unavailable, View};
use gannet_filter::{Insn, Program};

/// Maximum number of instructions; LLVM needs seconds for longer programs.
pub const MAX_INSNS: usize = 1 << 13;

/// Compiled code of a program, and LLVM's engine that owns it.
#[derive(Debug)]
pub struct Llvm {
    run: Run,
    engine: *mut c_void,
    context: *mut c_void,
    library: &'static Library,
}

// SAFETY: the code neither changes nor writes anything; its owner is accessed only on drop.
unsafe impl Send for Llvm {}
// SAFETY: as above.
unsafe impl Sync for Llvm {}

/// Bytes, their number, wire length: returns the bytes to keep.
type Run = unsafe extern "C" fn(*const u8, u64, u32) -> u32;

type Any = *mut c_void;
type Text = *const c_char;

/// Declares the functions loaded from the library, all of which LLVM 13 and later have.
macro_rules! library {
    ($($name:ident = $symbol:literal: fn($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of `llvm-c` in use.
        #[derive(Debug)]
        struct Library {
            version: u32,
            $($name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
        }

        impl Library {
            fn of(handle: Any, version: u32) -> Option<Self> {
                Some(Self {
                    version,
                    // SAFETY: these functions have these signatures in llvm-c of LLVM 13 to 20.
                    $($name: unsafe {
                        std::mem::transmute::<Any, unsafe extern "C" fn($($arg),*) $(-> $result)?>(
                            symbol(handle, $symbol)?
                        )
                    },)*
                })
            }
        }
    };
}

library! {
    new_context = c"LLVMContextCreate": fn() -> Any;
    free_context = c"LLVMContextDispose": fn(Any);
    copy = c"LLVMCreateMemoryBufferWithMemoryRangeCopy": fn(Text, usize, Text) -> Any;
    parse = c"LLVMParseIRInContext": fn(Any, Any, *mut Any, *mut *mut c_char) -> c_int;
    free_module = c"LLVMDisposeModule": fn(Any);
    triple = c"LLVMGetDefaultTargetTriple": fn() -> *mut c_char;
    cpu = c"LLVMGetHostCPUName": fn() -> *mut c_char;
    features = c"LLVMGetHostCPUFeatures": fn() -> *mut c_char;
    free_text = c"LLVMDisposeMessage": fn(*mut c_char);
    target = c"LLVMGetTargetFromTriple": fn(Text, *mut Any, *mut *mut c_char) -> c_int;
    machine = c"LLVMCreateTargetMachine": fn(Any, Text, Text, Text, c_int, c_int, c_int) -> Any;
    free_machine = c"LLVMDisposeTargetMachine": fn(Any);
    set_triple = c"LLVMSetTarget": fn(Any, Text);
    layout = c"LLVMCreateTargetDataLayout": fn(Any) -> Any;
    set_layout = c"LLVMSetModuleDataLayout": fn(Any, Any);
    free_layout = c"LLVMDisposeTargetData": fn(Any);
    pass_options = c"LLVMCreatePassBuilderOptions": fn() -> Any;
    free_pass_options = c"LLVMDisposePassBuilderOptions": fn(Any);
    run_passes = c"LLVMRunPasses": fn(Any, Text, Any, Any) -> Any;
    error_text = c"LLVMGetErrorMessage": fn(Any) -> *mut c_char;
    free_error_text = c"LLVMDisposeErrorMessage": fn(*mut c_char);
    engine = c"LLVMCreateMCJITCompilerForModule":
        fn(*mut Any, Any, *const c_uint, usize, *mut *mut c_char) -> c_int;
    free_engine = c"LLVMDisposeExecutionEngine": fn(Any);
    address = c"LLVMGetFunctionAddress": fn(Any, Text) -> u64;
}

/// Functions that initialize LLVM for the processor; `None` for untested processors.
const PREPARE: Option<[&CStr; 4]> = if cfg!(target_arch = "x86_64") {
    Some([
        c"LLVMInitializeX86TargetInfo",
        c"LLVMInitializeX86Target",
        c"LLVMInitializeX86TargetMC",
        c"LLVMInitializeX86AsmPrinter",
    ])
} else if cfg!(target_arch = "aarch64") {
    Some([
        c"LLVMInitializeAArch64TargetInfo",
        c"LLVMInitializeAArch64Target",
        c"LLVMInitializeAArch64TargetMC",
        c"LLVMInitializeAArch64AsmPrinter",
    ])
} else {
    None
};

/// Supported versions; the newest installed one is used.
const VERSIONS: std::ops::RangeInclusive<u32> = 13..=20;

/// `CodeGenOptLevel` of an engine and of a target machine, and its relocation mode.
const AGGRESSIVE: c_uint = 3;
const RELOC_DEFAULT: c_int = 0;
const CODE_MODEL_JIT: c_int = 1;

fn symbol(handle: Any, name: &CStr) -> Option<Any> {
    // SAFETY: `handle` is an open library, and the name ends in zero.
    let at = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!at.is_null()).then_some(at)
}

fn library() -> Result<&'static Library, Unavailable> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    let missing = || Unavailable::new("no libLLVM of version 13 to 20 is installed");
    LIBRARY.get_or_init(|| VERSIONS.rev().find_map(open)).as_ref().ok_or_else(missing)
}

/// Loads the library of a version, by its names on Debian, on Fedora and Arch, and on macOS.
fn open(version: u32) -> Option<Library> {
    let names = [
        format!("libLLVM-{version}.so.1"),
        format!("libLLVM.so.{version}.1"),
        format!("libLLVM-{version}.so"),
        format!("libLLVM-{version}.dylib"),
    ];
    let handle = names.into_iter().find_map(|name| {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends in zero. Loading runs the library's initializers, as intended; it
        // is never unloaded.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        (!handle.is_null()).then_some(handle)
    })?;
    for name in PREPARE? {
        let prepare = symbol(handle, name)?;
        // SAFETY: these functions have neither parameters nor results, and run once, within a lock.
        unsafe { std::mem::transmute::<Any, unsafe extern "C" fn()>(prepare)() };
    }
    Library::of(handle, version)
}

fn unavailable(what: impl std::fmt::Display) -> Unavailable {
    Unavailable::new(format!("LLVM: {what}"))
}

/// A resource of the library with its release function.
struct Owned(Any, unsafe extern "C" fn(Any));

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the release function of this resource, called once.
        unsafe { (self.1)(self.0) }
    }
}

impl Owned {
    /// Transfers ownership to the library.
    fn release(self) -> Any {
        std::mem::ManuallyDrop::new(self).0
    }
}

impl Library {
    /// Copies and frees a text of the library.
    fn own(&self, text: *mut c_char, free: unsafe extern "C" fn(*mut c_char)) -> CString {
        if text.is_null() {
            return CString::default();
        }
        // SAFETY: a zero-terminated text, which the caller owns.
        unsafe {
            let own = CStr::from_ptr(text).to_owned();
            free(text);
            own
        }
    }

    fn refused(&self, text: *mut c_char) -> Unavailable {
        unavailable(self.own(text, self.free_text).to_string_lossy())
    }

    /// The code of a program.
    fn compile(&'static self, insns: &[Insn]) -> Result<Llvm, Unavailable> {
        // SAFETY: functions without parameters, or with a valid text of this program or of the
        // library.
        let (triple, cpu, features) = unsafe {
            (
                self.own((self.triple)(), self.free_text),
                self.own((self.cpu)(), self.free_text),
                self.own((self.features)(), self.free_text),
            )
        };
        let attributes = format!(
            "\"target-cpu\"=\"{}\" \"target-features\"=\"{}\"",
            cpu.to_string_lossy(),
            features.to_string_lossy()
        );
        let source = text::function(insns, self.version >= 15, &attributes);
        let mut error = std::ptr::null_mut();
        // SAFETY: every pointer is one that the library returned for this use, or to a local of the
        // right size. Ownership is as in llvm-c: the parser takes the buffer, the engine takes the
        // module, even if they fail.
        unsafe {
            let context = Owned((self.new_context)(), self.free_context);
            let buffer = (self.copy)(source.as_ptr().cast(), source.len(), c"filter".as_ptr());
            let mut module = std::ptr::null_mut();
            if (self.parse)(context.0, buffer, &raw mut module, &raw mut error) != 0 {
                return Err(self.refused(error));
            }
            let module = Owned(module, self.free_module);
            let mut target = std::ptr::null_mut();
            if (self.target)(triple.as_ptr(), &raw mut target, &raw mut error) != 0 {
                return Err(self.refused(error));
            }
            let machine = (self.machine)(
                target,
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                AGGRESSIVE as c_int,
                RELOC_DEFAULT,
                CODE_MODEL_JIT,
            );
            if machine.is_null() {
                return Err(unavailable("no code for this processor"));
            }
            let machine = Owned(machine, self.free_machine);
            let layout = Owned((self.layout)(machine.0), self.free_layout);
            (self.set_triple)(module.0, triple.as_ptr());
            (self.set_layout)(module.0, layout.0);
            let options = Owned((self.pass_options)(), self.free_pass_options);
            let passes = c"default<O2>".as_ptr();
            let failed = (self.run_passes)(module.0, passes, machine.0, options.0);
            if !failed.is_null() {
                let text = self.own((self.error_text)(failed), self.free_error_text);
                return Err(unavailable(text.to_string_lossy()));
            }
            let mut engine = std::ptr::null_mut();
            let (level, size) = (AGGRESSIVE, size_of::<c_uint>());
            let module = module.release();
            // Only the first option, the optimization level, is set.
            if (self.engine)(&raw mut engine, module, &raw const level, size, &raw mut error) != 0 {
                return Err(self.refused(error));
            }
            let engine = Owned(engine, self.free_engine);
            let name = CString::new(text::NAME).map_err(unavailable)?;
            let address = (self.address)(engine.0, name.as_ptr());
            if address == 0 {
                return Err(unavailable("no code"));
            }
            let run = std::mem::transmute::<*const c_void, Run>(address as *const c_void);
            let (engine, context) = (engine.release(), context.release());
            Ok(Llvm { run, engine, context, library: self })
        }
    }
}

impl Llvm {
    /// Compiles a program.
    ///
    /// # Errors
    /// If the library is not installed, the program is too long, or LLVM refuses it.
    pub fn new(program: &Program) -> Result<Self, Unavailable> {
        if program.insns().len() > MAX_INSNS {
            return Err(unavailable(format_args!(
                "only programs of up to {MAX_INSNS} instructions"
            )));
        }
        library()?.compile(program.insns())
    }
}

impl Drop for Llvm {
    fn drop(&mut self) {
        // SAFETY: the code does not run any more; the engine frees the module, and is disposed
        // before the context of both.
        unsafe {
            (self.library.free_engine)(self.engine);
            (self.library.free_context)(self.context);
        }
    }
}

impl Engine for Llvm {
    #[inline]
    fn run(&self, packet: View<'_>) -> u32 {
        let data = packet.data();
        // SAFETY: the code only reads below the given length: a check precedes each load.
        unsafe { (self.run)(data.as_ptr(), data.len() as u64, packet.wire_len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_filter::opcode::*;

    #[test]
    #[allow(clippy::print_stderr)]
    fn loops_end_when_the_interpreters_do() {
        if let Err(why) = library() {
            eprintln!("skipped: {why}");
            return;
        }
        let ja = |by: i32| Insn::new(JMP | JA, by.cast_unsigned());
        // Advances one byte per iteration, until a byte is zero or the packet ends.
        let insns = [
            Insn::new(LDX | IMM, 0),
            Insn::new(LD | B | IND, 0),
            Insn { code: JMP | JEQ, jt: 4, jf: 0, k: 0 },
            Insn::new(MISC | TXA, 0),
            Insn::new(ALU | ADD, 1),
            Insn::new(MISC | TAX, 0),
            ja(-6),
            Insn::new(RET, 7),
        ];
        let program = Program::new(insns.to_vec()).unwrap();
        let llvm = Llvm::new(&program).unwrap();
        for packet in [&[][..], &[0], &[1], &[1, 0]] {
            let view = View::new(packet, packet.len() as u32);
            assert_eq!(llvm.run(view), program.run(packet, view.wire_len()), "{packet:?}");
        }
        let forever = Program::new(vec![ja(-1), Insn::new(RET, 1)]).unwrap();
        assert_eq!(Llvm::new(&forever).unwrap().run(View::new(&[], 0)), 0);
    }
}
