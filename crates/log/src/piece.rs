//! Values that all formats write in the same way, each with a function that takes and returns the write position in a
//! register.

use gannet_base::Addr;
use gannet_base::Uid;

use crate::number::write_addr;
use crate::number::write_count;
use crate::text::LineBuffer;
use crate::text::Sink;
use crate::text::append;

#[inline(never)]
pub(crate) fn plain(buffer: &mut [u8], at: u32, v: &[u8]) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    append(&mut out, v);
    out.into_position()
}

#[inline(never)]
pub(crate) fn uid(buffer: &mut [u8], at: u32, v: &Uid) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    let (text, len) = v.text();
    out.put(text, len);
    out.into_position()
}

#[inline(never)]
pub(crate) fn addr(buffer: &mut [u8], at: u32, v: Addr) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    write_addr(&mut out, v);
    out.into_position()
}

#[inline(never)]
pub(crate) fn count(buffer: &mut [u8], at: u32, v: u64) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    write_count(&mut out, v);
    out.into_position()
}
