//! Filters written by hand in C (`hand.c`), compiled by the system's compiler when the suite
//! starts.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// A filter in C: bytes, and their number.
type Function = unsafe extern "C" fn(*const u8, usize) -> bool;

/// A filter written by hand.
#[derive(Clone, Copy)]
pub(crate) struct Hand(Function);

impl Hand {
    pub(crate) fn matches(self, packet: &[u8]) -> bool {
        // SAFETY: the functions only read below the given length.
        unsafe { (self.0)(packet.as_ptr(), packet.len()) }
    }
}

/// The library with the filters.
pub(crate) struct Library(*mut std::ffi::c_void);

impl Library {
    /// Compiles and loads it.
    pub(crate) fn new() -> Result<Self, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/suite/hand.c");
        let object = std::env::temp_dir().join(format!("gannet-hand-{}.so", std::process::id()));
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let status = Command::new(&compiler)
            .args(["-O3", "-march=native", "-shared", "-fPIC", "-o"])
            .args([&object, &source])
            .status()
            .map_err(|e| format!("{compiler}: {e}"))?;
        if !status.success() {
            return Err(format!("{compiler} does not compile hand.c"));
        }
        let name = CString::new(object.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: the name ends in zero; the library was just built and has no initializers.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        std::fs::remove_file(&object).map_err(|e| e.to_string())?;
        if library.is_null() { Err("hand.c cannot be loaded".into()) } else { Ok(Self(library)) }
    }

    /// The function for a filter, if the library has one. The library is never unloaded.
    pub(crate) fn of(&self, filter: &str) -> Option<Hand> {
        let name = match filter {
            "S1" => c"post_1",
            "S2" => c"post_2",
            "H3" => c"tcp_port_80",
            _ => return None,
        };
        // SAFETY: the library is open, and the name ends in zero.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if symbol.is_null() {
            return None;
        }
        // SAFETY: these functions have this signature: see hand.c.
        let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(symbol) };
        Some(Hand(function))
    }
}
