//! BPF programs that filter packets in the kernel, before they reach the ring.
//!
//! A program accepts all packets that the filter of the analysis matches, and possibly more: the analysis filters
//! again, with the frame as it was on the wire. The kernel strips the VLAN tag of a frame before it runs the program,
//! which changes offsets and the meaning of filters, so all tagged frames are accepted.

use gannet_filter::Insn;

/// Maximum number of instructions that the kernel accepts.
const MAX_INSNS: usize = 4096;
/// Return value that accepts a packet without truncating it.
const WHOLE_PACKET: u32 = 262_144;
/// `SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT`: whether a tag was stripped from the frame.
const TAG_PRESENT: u32 = 0xffff_f000 + 48;

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// The program that rejects all packets.
pub(crate) const REJECT_ALL: [Insn; 1] = [Insn { code: RETURN, jt: 0, jf: 0, k: 0 }];

/// The program for the kernel; `None` if it would be too long.
pub(crate) fn program(filter: &[Insn]) -> Option<Vec<Insn>> {
    let insn = |code, jt, jf, k| Insn { code, jt, jf, k };
    let mut program = vec![
        insn(LOAD, 0, 0, TAG_PRESENT),
        insn(JUMP_IF_EQUAL, 1, 0, 0),
        insn(RETURN, 0, 0, WHOLE_PACKET),
    ];
    program.extend_from_slice(filter);
    (program.len() <= MAX_INSNS).then_some(program)
}
