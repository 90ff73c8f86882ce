//! Copies of cells that own nothing.
#![allow(unsafe_code)]

use super::Value;

impl Value {
    /// A copy of a value that owns nothing: its 16 bytes.
    #[inline(always)]
    pub(super) fn copied(&self) -> Self {
        debug_assert!(!self.owns_memory());
        // SAFETY: `clone` calls this only where `owns_memory` is false: the variant's fields are numbers, arrays of bytes and other types
        // that are `Copy`, so that both copies may be used and dropped.
        unsafe { std::ptr::read(self) }
    }
}
