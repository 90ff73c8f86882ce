//! Values that all formats write alike, each by a separate function that takes and returns the
//! write position in a register.

use gannet_base::Addr;
use gannet_base::Uid;

use crate::number::write_addr;
use crate::number::write_count;
use crate::text::Room;
use crate::text::Sink;
use crate::text::append;

#[inline(never)]
pub(crate) fn plain(room: &mut [u8], at: u32, v: &[u8]) -> u32 {
    let mut out = Room::at(room, at);
    append(&mut out, v);
    out.place()
}

#[inline(never)]
pub(crate) fn uid(room: &mut [u8], at: u32, v: &Uid) -> u32 {
    let mut out = Room::at(room, at);
    let (text, len) = v.text();
    out.put(text, len);
    out.place()
}

#[inline(never)]
pub(crate) fn addr(room: &mut [u8], at: u32, v: Addr) -> u32 {
    let mut out = Room::at(room, at);
    write_addr(&mut out, v);
    out.place()
}

#[inline(never)]
pub(crate) fn count(room: &mut [u8], at: u32, v: u64) -> u32 {
    let mut out = Room::at(room, at);
    write_count(&mut out, v);
    out.place()
}
