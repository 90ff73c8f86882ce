//! A packet in the layout that machine code reads: the only module that converts slices to pointers
//! and back.
#![allow(unsafe_code)]

use std::marker::PhantomData;

/// A packet for an engine: captured bytes and wire length.
///
/// A slice in 16 bytes of known layout, so that machine code can walk over an array of them:
/// address, captured length, wire length.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct View<'a> {
    data: *const u8,
    len: u32,
    wire_len: u32,
    bytes: PhantomData<&'a [u8]>,
}

// SAFETY: a view is a shared slice of bytes and two numbers; both may be used from every thread.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}

impl<'a> View<'a> {
    /// A packet with this wire length. Captured bytes beyond 4 GiB are ignored.
    #[inline]
    pub fn new(data: &'a [u8], wire_len: u32) -> Self {
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        Self { data: data.as_ptr(), len, wire_len, bytes: PhantomData }
    }

    /// The captured bytes.
    #[inline]
    pub fn data(self) -> &'a [u8] {
        // SAFETY: pointer and length come from a slice that lives for 'a; the length is at most the
        // slice's.
        unsafe { std::slice::from_raw_parts(self.data, self.len as usize) }
    }

    /// Bytes on the wire.
    #[inline]
    pub fn wire_len(self) -> u32 {
        self.wire_len
    }
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("len", &self.len).field("wire_len", &self.wire_len).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_return_their_data() {
        let bytes = [1, 2, 3];
        let view = View::new(&bytes, 60);
        assert_eq!((view.data(), view.wire_len()), (&bytes[..], 60));
        assert_eq!(View::new(&[], 0).data(), []);
        assert_eq!(size_of::<View<'_>>(), 16, "machine code counts on it");
    }
}
