//! libpcap's interpreter, loaded at run time: the binary is not linked with libpcap.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use gannet_filter::engine::{Engine, Unavailable, View, foreign};
use gannet_filter::opcode::{ALU, LSH, RSH};
use gannet_filter::{Insn, Program};

/// `bpf_filter` of the system's libpcap.
#[derive(Debug)]
pub struct Libpcap {
    insns: Vec<RawInsn>,
    library: &'static Library,
}

/// `struct bpf_insn`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct RawInsn {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

/// `struct bpf_program`.
#[repr(C)]
struct RawProgram {
    len: c_uint,
    insns: *mut RawInsn,
}

type Filter = unsafe extern "C" fn(*const RawInsn, *const u8, c_uint, c_uint) -> c_uint;
type Validate = unsafe extern "C" fn(*const RawInsn, c_int) -> c_int;
type Compile =
    unsafe extern "C" fn(*mut c_void, *mut RawProgram, *const c_char, c_int, c_uint) -> c_int;
type OpenDead = unsafe extern "C" fn(c_int, c_int) -> *mut c_void;
type Close = unsafe extern "C" fn(*mut c_void);
type FreeCode = unsafe extern "C" fn(*mut RawProgram);
type Version = unsafe extern "C" fn() -> *const c_char;

#[derive(Debug)]
struct Library {
    filter: Filter,
    validate: Validate,
    compile: Compile,
    open_dead: OpenDead,
    close: Close,
    free_code: FreeCode,
    version: Version,
}

/// Names of the library on Linux, the BSDs and macOS.
const NAMES: [&CStr; 4] = [c"libpcap.so.0.8", c"libpcap.so.1", c"libpcap.so", c"libpcap.dylib"];

fn library() -> Result<&'static Library, Unavailable> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    let missing = || Unavailable::new("libpcap is not installed");
    LIBRARY.get_or_init(load).as_ref().ok_or_else(missing)
}

fn load() -> Option<Library> {
    // SAFETY: the names are zero-terminated. Loading runs the library's initializers, as intended;
    // it is never unloaded.
    let open = |name: &CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    let handle = NAMES.into_iter().map(open).find(|h| !h.is_null())?;
    let symbol = |name: &CStr| {
        // SAFETY: `handle` is an open library, and the name ends in zero.
        let at = unsafe { libc::dlsym(handle, name.as_ptr()) };
        (!at.is_null()).then_some(at)
    };
    // SAFETY: these functions have these signatures in every libpcap since 1.0: pcap/bpf.h,
    // pcap/pcap.h.
    unsafe {
        Some(Library {
            filter: std::mem::transmute::<*mut c_void, Filter>(symbol(c"bpf_filter")?),
            validate: std::mem::transmute::<*mut c_void, Validate>(symbol(c"bpf_validate")?),
            compile: std::mem::transmute::<*mut c_void, Compile>(symbol(c"pcap_compile")?),
            open_dead: std::mem::transmute::<*mut c_void, OpenDead>(symbol(c"pcap_open_dead")?),
            close: std::mem::transmute::<*mut c_void, Close>(symbol(c"pcap_close")?),
            free_code: std::mem::transmute::<*mut c_void, FreeCode>(symbol(c"pcap_freecode")?),
            version: std::mem::transmute::<*mut c_void, Version>(symbol(c"pcap_lib_version")?),
        })
    }
}

/// Shifting by a constant.
const SHIFT_LEFT: u16 = ALU | LSH;
const SHIFT_RIGHT: u16 = ALU | RSH;

impl Libpcap {
    /// Loads a program that libpcap accepts and whose behaviour C defines.
    ///
    /// # Errors
    /// If the library is not installed or refuses the program.
    pub fn new(program: &Program) -> Result<Self, Unavailable> {
        let library = library()?;
        let raw = |i: &Insn| RawInsn { code: i.code, jt: i.jt, jf: i.jf, k: i.k };
        let insns: Vec<RawInsn> = program.insns().iter().map(raw).collect();
        let refused = || Unavailable::new("libpcap rejects the program");
        let len = c_int::try_from(insns.len()).map_err(|_| refused())?;
        // Before 1.10.7, a scratch word that is read before it is written holds garbage from the
        // stack.
        if foreign::unwritten(program.insns()).is_some() {
            return Err(Unavailable::new("it reads scratch words that were not written"));
        }
        // In C such a shift is undefined.
        let shifts = |i: &Insn| matches!(i.code, SHIFT_LEFT | SHIFT_RIGHT) && i.k > 31;
        if program.insns().iter().any(shifts) {
            return Err(Unavailable::new("it shifts by more than 31 bits, which is not defined"));
        }
        // SAFETY: `len` instructions exist.
        if unsafe { (library.validate)(insns.as_ptr(), len) } == 0 {
            return Err(refused());
        }
        Ok(Self { insns, library })
    }
}

impl Engine for Libpcap {
    #[inline]
    fn run(&self, packet: View<'_>) -> u32 {
        let data = packet.data();
        // SAFETY: the program was validated: its jumps and scratch words are within bounds. The
        // function checks loads against the length of the data.
        unsafe {
            let len = data.len() as c_uint;
            (self.library.filter)(self.insns.as_ptr(), data.as_ptr(), packet.wire_len(), len)
        }
    }
}

/// The version string of the library.
///
/// # Errors
/// If the library is not installed.
pub fn version() -> Result<String, Unavailable> {
    let library = library()?;
    // SAFETY: the function returns a string that is never freed.
    let text = unsafe { CStr::from_ptr((library.version)()) };
    Ok(text.to_string_lossy().into_owned())
}

/// Compiles an expression with libpcap's own compiler.
///
/// # Errors
/// If the library is not installed, or refuses the expression.
pub fn compile(
    expression: &str,
    link_type: u16,
    snaplen: u32,
    optimize: bool,
) -> Result<Program, Unavailable> {
    let library = library()?;
    let refused = |what: &str| Unavailable::new(format!("libpcap: {what}"));
    let text = std::ffi::CString::new(expression).map_err(|_| refused("a zero in the text"))?;
    // SAFETY: two numbers; the handle is closed below.
    let handle = unsafe { (library.open_dead)(c_int::from(link_type), snaplen as c_int) };
    if handle.is_null() {
        return Err(refused("no handle"));
    }
    let mut raw = RawProgram { len: 0, insns: std::ptr::null_mut() };
    // SAFETY: an open handle, a program to fill, a string that ends in zero.
    let failed = unsafe {
        (library.compile)(handle, &raw mut raw, text.as_ptr(), c_int::from(optimize), u32::MAX)
    };
    let mut insns = Vec::new();
    if failed == 0 && !raw.insns.is_null() {
        // SAFETY: the library has written `raw.len` instructions.
        let all = unsafe { std::slice::from_raw_parts(raw.insns, raw.len as usize) };
        insns.extend(all.iter().map(|i| Insn { code: i.code, jt: i.jt, jf: i.jf, k: i.k }));
        // SAFETY: `compile` filled the program, and it is freed once.
        unsafe { (library.free_code)(&raw mut raw) };
    }
    // SAFETY: the handle is open, and closed once.
    unsafe { (library.close)(handle) };
    Program::new(insns).map_err(|e| refused(&e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::print_stderr)]
    fn programs_undefined_in_c_are_refused() {
        if let Err(why) = library() {
            eprintln!("skipped: {why}");
            return;
        }
        let of = |text: &str| Libpcap::new(&Program::from_text(text).unwrap());
        assert!(of("ld #pktlen\nrsh #31\nret #1").is_ok());
        let why = of("ld #pktlen\nrsh #32\nret #1").unwrap_err();
        assert!(why.to_string().contains("31 bits"), "{why}");
    }
}
