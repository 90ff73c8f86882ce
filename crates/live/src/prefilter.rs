//! The program that filters packets in the kernel, before they reach the ring.
//!
//! It lets through whatever the analysis may want, and perhaps more: the analysis filters again, with the frame as it
//! was on the wire. The kernel takes the VLAN tag out of a frame before a program sees the frame, so that offsets and
//! meaning differ there; such frames all pass.

use gannet_filter::Insn;

/// The kernel takes no longer programs.
const MAX: usize = 4096;
/// Bytes of a packet that are kept: all.
const ALL: u32 = 262_144;
/// `SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT`: whether a tag was taken out of the frame.
const TAG_PRESENT: u32 = 0xffff_f000 + 48;

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Rejects all.
pub(crate) const NOTHING: [Insn; 1] = [Insn { code: RETURN, jt: 0, jf: 0, k: 0 }];

/// The program for the kernel; `None` where it would be too long.
pub(crate) fn program(filter: &[Insn]) -> Option<Vec<Insn>> {
    let insn = |code, jt, jf, k| Insn { code, jt, jf, k };
    let mut program =
        vec![insn(LOAD, 0, 0, TAG_PRESENT), insn(JUMP_IF_EQUAL, 1, 0, 0), insn(RETURN, 0, 0, ALL)];
    program.extend_from_slice(filter);
    (program.len() <= MAX).then_some(program)
}
