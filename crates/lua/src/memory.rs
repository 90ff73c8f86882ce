//! Memory of Lua states: where there is none left, a script gets an error, and the process goes on.
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

/// Memory that is freed when an allocation fails, so that there is enough to report it: for the trace-back.
const RESERVE: Layout = match Layout::from_size_align(1 << 20, 16) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};
static RESERVED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// Bytes that Lua shortens the name of a file to (`LUA_IDSIZE`).
const FILE: usize = 60;

/// Where a script was when an allocation failed.
#[derive(Clone, Copy, Debug)]
struct SourceLine {
    file: [c_char; FILE],
    line: c_int,
    /// The first line of its function, 0 for that of the file.
    begin: c_int,
}

thread_local! {
    /// The Lua thread of the script, null where none runs.
    static SCRIPT: Cell<*mut ffi::lua_State> = const { Cell::new(ptr::null_mut()) };
    static FAILED: Cell<Option<SourceLine>> = const { Cell::new(None) };
}

/// While it exists, failed allocations note where the script is.
pub(crate) struct Watch(());

impl Watch {
    /// Watches no script until [`watch`] is called with its thread.
    pub(crate) fn new() -> Self {
        Self(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        SCRIPT.set(ptr::null_mut());
    }
}

/// A function for Lua: its argument is the thread in which the script runs.
///
/// # Safety
/// Lua calls it.
pub(crate) unsafe extern "C-unwind" fn watch(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: by this function's contract the state is valid; a value that is no thread gives null.
    SCRIPT.set(unsafe { ffi::lua_tothread(state, 1) });
    0
}

/// File, line, and first line of the function where the last allocation failed that did.
pub(crate) fn place() -> Option<(String, c_int, c_int)> {
    let SourceLine { file, line, begin } = FAILED.get()?;
    // SAFETY: Lua ends the text with a zero within the array.
    let file = unsafe { CStr::from_ptr(file.as_ptr()) };
    Some((file.to_string_lossy().into_owned(), line, begin))
}

/// Notes where the script is: LuaJIT calls no error handler where memory ended, and then the innermost function of a thread
/// has no line any more.
fn note() {
    let state = SCRIPT.get();
    if state.is_null() {
        return;
    }
    for level in 0.. {
        let mut about = MaybeUninit::<ffi::lua_Debug>::zeroed();
        // SAFETY: the thread lives as long as `Watch`, as `call.lua` has it. Neither call allocates nor raises errors, and the frames of the
        // stack are consistent where an allocation is requested: LuaJIT itself raises the error from there. In code of the JIT
        // they are those at its entry, and the line is another one of the function.
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

/// Makes a state raise "not enough memory" where an allocation fails: mlua's allocator ends the process.
pub(crate) fn raise_errors(lua: &Lua) -> mlua::Result<()> {
    // SAFETY: the size is not 0.
    let reserve = unsafe { alloc(RESERVE) };
    let kept =
        RESERVED.compare_exchange(ptr::null_mut(), reserve, Ordering::AcqRel, Ordering::Acquire);
    if kept.is_err() && !reserve.is_null() {
        // SAFETY: it was allocated above, and nothing else has it.
        unsafe { dealloc(reserve, RESERVE) };
    }
    // SAFETY: blocks of mlua's allocator are of the global allocator and of this alignment, as are those of `allocate`, so either
    // frees what the other allocated. mlua knows its allocator by its address and does without statistics otherwise.
    unsafe { lua.exec_raw((), |state| ffi::lua_setallocf(state, allocate, ptr::null_mut())) }
}

/// Allocates, resizes and frees, as `lua_Alloc` says.
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
        note();
    }
    new_block.cast()
}

/// Frees the reserve.
fn release() {
    let reserve = RESERVED.swap(ptr::null_mut(), Ordering::AcqRel);
    if !reserve.is_null() {
        // SAFETY: `raise_errors` allocated it with this layout, and the swap gave it to this call alone.
        unsafe { dealloc(reserve, RESERVE) };
    }
}
