//! A count, BPF instructions of eight bytes each, and a packet: valid programs have the same result
//! in the interpreter and as machine code.
#![no_main]

use gannet_comparators::Kind;
use gannet_filter::engine::{View, foreign};
use gannet_filter::{Insn, Program};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&count, rest)) = data.split_first() else { return };
    let Some((code, packet)) = rest.split_at_checked(8 * usize::from(count)) else { return };
    let insn = |b: &[u8]| Insn {
        code: u16::from_le_bytes([b[0], b[1]]),
        jt: b[2],
        jf: b[3],
        k: u32::from_le_bytes([b[4], b[5], b[6], b[7]]),
    };
    let Ok(program) = Program::new(code.chunks_exact(8).map(insn).collect()) else { return };
    // Loops may run up to the interpreter's limit: only programs that the kernel accepts are
    // certain to be short.
    if foreign::check(&program).is_err() {
        return;
    }
    let view = View::new(packet, packet.len() as u32);
    let expected = program.run(packet, packet.len() as u32);
    for kind in [Kind::Jit, Kind::Batch] {
        let Ok(engine) = kind.build(&program) else { continue };
        assert_eq!(engine.run(view), expected, "{}\n{program}", kind.name());
        let mut hits = Vec::new();
        engine.select(&[view], &mut hits);
        assert_eq!(hits.len(), usize::from(expected != 0), "{}\n{program}", kind.name());
    }
});
