//! Memory of Lua states: where there is none left, a script gets an error, and the process goes on.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::alloc::alloc;
use std::alloc::dealloc;
use std::alloc::realloc;
use std::ffi::c_void;

use mlua::Lua;
use mlua::ffi;

/// Makes a state raise "not enough memory" where an allocation fails: mlua's allocator ends the process.
pub(crate) fn raise_errors(lua: &Lua) -> mlua::Result<()> {
    // SAFETY: blocks of mlua's allocator are of the global allocator and of this alignment, as are those of `allocate`, so either
    // frees what the other allocated. mlua knows its allocator by its address and does without statistics otherwise.
    unsafe { lua.exec_raw((), |state| ffi::lua_setallocf(state, allocate, std::ptr::null_mut())) }
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
    let (Ok(before), Ok(after)) = (layout(old), layout(new)) else { return std::ptr::null_mut() };
    // SAFETY: by this function's contract; sizes that are allocated are not 0.
    let new_block = unsafe {
        match (block.is_null(), new) {
            (true, 0) => block,
            (true, _) => alloc(after),
            (false, 0) => {
                dealloc(block, before);
                std::ptr::null_mut()
            }
            (false, _) => realloc(block, before, new),
        }
    };
    new_block.cast()
}
