//! Memory of Lua states: when memory is exhausted, the script gets an error and the process
//! continues.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::alloc::alloc;
use std::alloc::dealloc;
use std::alloc::realloc;
use std::cell::Cell;
use std::ffi::CStr;
use std::ffi::c_char;
use std::ffi::c_int;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering;

use mlua::Lua;
use mlua::ffi;

/// Memory that is freed when an allocation fails, so that enough is available for the error and its
/// trace-back.
const RESERVE: Layout = match Layout::from_size_align(1 << 20, 16) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};
static RESERVED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// Size of a file name in Lua's debug information, in bytes (`LUA_IDSIZE`).
const FILE: usize = 60;

/// The position of a script when an allocation failed.
#[derive(Clone, Copy, Debug)]
struct SourceLine {
    file: [c_char; FILE],
    line: c_int,
    /// The first line of the function, 0 for the main chunk.
    begin: c_int,
}

thread_local! {
    /// The Lua thread of the script, null if none runs.
    static SCRIPT: Cell<*mut ffi::lua_State> = const { Cell::new(ptr::null_mut()) };
    static FAILED: Cell<Option<SourceLine>> = const { Cell::new(None) };
}

/// While it exists, failed allocations record the position of the script.
pub(crate) struct Watch(());

impl Watch {
    /// Records no position until [`watch`] is called with the script's thread.
    pub(crate) fn new() -> Self {
        Self(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        SCRIPT.set(ptr::null_mut());
    }
}

/// A Lua function whose argument is the thread in which the script runs.
///
/// # Safety
/// Only Lua may call it.
pub(crate) unsafe extern "C-unwind" fn watch(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: by this function's contract the state is valid; a value that is not a thread yields
    // null.
    SCRIPT.set(unsafe { ffi::lua_tothread(state, 1) });
    0
}

/// File, line, and first line of the function of the last failed allocation.
pub(crate) fn failure_position() -> Option<(String, c_int, c_int)> {
    let SourceLine { file, line, begin } = FAILED.get()?;
    // SAFETY: Lua ends the text with a zero within the array.
    let file = unsafe { CStr::from_ptr(file.as_ptr()) };
    Some((file.to_string_lossy().into_owned(), line, begin))
}

/// Records the position of the script: LuaJIT calls no error handler when memory is exhausted, and
/// afterwards the line of the innermost function is lost.
fn record_position() {
    let state = SCRIPT.get();
    if state.is_null() {
        return;
    }
    for level in 0.. {
        let mut about = MaybeUninit::<ffi::lua_Debug>::zeroed();
        // SAFETY: `call.lua` keeps the thread alive as long as `Watch`. Neither call allocates nor
        // raises errors, and the frames of the stack are consistent where an allocation is
        // requested: LuaJIT itself raises the error from there. In JIT-compiled code they are those
        // at its entry, and the line may be another one of the function.
        let about = unsafe {
            if ffi::lua_getstack(state, level, about.as_mut_ptr()) == 0
                || ffi::lua_getinfo(state, c"Sl".as_ptr(), about.as_mut_ptr()) == 0
            {
                return;
            }
            about.assume_init()
        };
        // SAFETY: a function has a source, which may be empty.
        let is_file = !about.source.is_null() && unsafe { about.source.read() } == b'@' as c_char;
        if is_file && about.currentline > 0 {
            let (file, line, begin) = (about.short_src, about.currentline, about.linedefined);
            FAILED.set(Some(SourceLine { file, line, begin }));
            return;
        }
    }
}

/// Makes a state raise "not enough memory" if an allocation fails; mlua's own allocator would abort
/// the process.
pub(crate) fn raise_errors(lua: &Lua) -> mlua::Result<()> {
    // SAFETY: the size is not 0.
    let reserve = unsafe { alloc(RESERVE) };
    let kept =
        RESERVED.compare_exchange(ptr::null_mut(), reserve, Ordering::AcqRel, Ordering::Acquire);
    if kept.is_err() && !reserve.is_null() {
        // SAFETY: it was allocated above and is not shared.
        unsafe { dealloc(reserve, RESERVE) };
    }
    // SAFETY: both mlua's allocator and `allocate` use the global allocator with this alignment, so
    // either can free the other's blocks. mlua recognises its allocator by its address and
    // otherwise keeps no statistics.
    unsafe { lua.exec_raw((), |state| ffi::lua_setallocf(state, allocate, ptr::null_mut())) }
}

/// Allocates, resizes and frees as specified for `lua_Alloc`.
///
/// # Safety
/// `block` is null, or came from this function or from mlua's allocator with `old` bytes.
unsafe extern "C" fn allocate(
    _: *mut c_void,
    block: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    let layout = |size| Layout::from_size_align(size, ffi::SYS_MIN_ALIGN);
    let block = block.cast::<u8>();
    let (Ok(before), Ok(after)) = (layout(old), layout(new)) else { return ptr::null_mut() };
    // SAFETY: by this function's contract; sizes that are allocated are not 0.
    let new_block = unsafe {
        match (block.is_null(), new) {
            (true, 0) => block,
            (true, _) => alloc(after),
            (false, 0) => {
                dealloc(block, before);
                ptr::null_mut()
            }
            (false, _) => realloc(block, before, new),
        }
    };
    if new_block.is_null() && new > 0 {
        release();
        record_position();
    }
    new_block.cast()
}

/// Frees the reserve.
fn release() {
    let reserve = RESERVED.swap(ptr::null_mut(), Ordering::AcqRel);
    if !reserve.is_null() {
        // SAFETY: `raise_errors` allocated it with this layout, and the swap makes this call its
        // only owner.
        unsafe { dealloc(reserve, RESERVE) };
    }
}
