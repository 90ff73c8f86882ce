//! Code without a stack frame.
//!
//! Cranelift starts each function for x86-64 with a frame, for stack walkers, and ends it at each
//! return: five of some thirty instructions per packet, although the code makes no calls and
//! usually has nothing on the stack. If nothing is stored in the frame, execution starts after the
//! prologue, and epilogues become plain returns.

use cranelift_codegen::ir::SourceLoc;
use cranelift_codegen::{Final, MachSrcLoc};

/// Marks returns, so that their code can be found.
pub(super) fn end() -> SourceLoc {
    SourceLoc::new(1)
}

/// `push rbp; mov rbp, rsp`.
const PUSH: [u8; 4] = [0x55, 0x48, 0x89, 0xe5];

/// `mov rsp, rbp; pop rbp; ret`.
const POP: [u8; 5] = [0x48, 0x89, 0xec, 0x5d, 0xc3];

/// Traps on x86-64.
pub(super) const NEVER_REACHED: u8 = 0xcc;

/// `ret`, padded to the length of [`POP`].
const RETURN: [u8; 5] = [0xc3, NEVER_REACHED, NEVER_REACHED, NEVER_REACHED, NEVER_REACHED];

/// `sub rsp, ...`, with an operand of one byte and of four.
const ALLOCATE: [[u8; 3]; 2] = [[0x48, 0x83, 0xec], [0x48, 0x81, 0xec]];

/// Removes the frame from code that does not use it; returns the offset at which execution starts.
/// Unexpected code is left unchanged and starts at 0.
pub(super) fn unframe(code: &mut [u8], locations: &[MachSrcLoc<Final>]) -> usize {
    let Some(body) = code.strip_prefix(&PUSH) else { return 0 };
    if !cfg!(target_arch = "x86_64") || ALLOCATE.iter().any(|room| body.starts_with(room)) {
        return 0;
    }
    let is_end = |p: &&MachSrcLoc<Final>| p.loc == end();
    let ends = || locations.iter().filter(is_end).map(|p| p.end as usize);
    let ends_so = |end: usize| code.get(..end).is_some_and(|c| c.ends_with(&POP));
    if ends().next().is_none() || !ends().all(ends_so) {
        return 0;
    }
    for end in ends() {
        code[end - POP.len()..end].copy_from_slice(&RETURN);
    }
    PUSH.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: u32, end: u32, loc: SourceLoc) -> MachSrcLoc<Final> {
        MachSrcLoc { start, end, loc }
    }

    #[test]
    fn an_unused_frame_is_removed() {
        // `xor eax, eax` in between; a constant after the code that looks like a return is none.
        let code = [&PUSH[..], &[0x31, 0xc0], &POP, &POP].concat();
        let mut leaf = code.clone();
        assert_eq!(unframe(&mut leaf, &[at(4, 6, SourceLoc::default()), at(6, 11, end())]), 4);
        assert_eq!(leaf, [&PUSH[..], &[0x31, 0xc0], &RETURN, &POP].concat());
    }

    #[test]
    fn other_code_stays_as_it_is() {
        let room = [&PUSH[..], &[0x48, 0x83, 0xec, 0x10], &POP].concat();
        let odd = [&PUSH[..], &[0x31, 0xc0, 0xc3]].concat();
        let open = [&PUSH[..], &POP].concat();
        let ends = [at(8, 13, end()), at(4, 7, end()), at(4, 9, SourceLoc::default())];
        for (code, end) in [room, odd, open].into_iter().zip(ends) {
            let mut left = code.clone();
            assert_eq!(unframe(&mut left, &[end]), 0);
            assert_eq!(left, code);
        }
        assert_eq!(unframe(&mut [], &[]), 0);
    }
}
