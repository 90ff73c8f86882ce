//! A BPF program as text, run on the bytes after an empty line.
#![no_main]

use gannet_filter::Program;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let end = data.windows(2).position(|w| w == b"\n\n").unwrap_or(data.len());
    let text = std::str::from_utf8(&data[..end]).unwrap_or_default();
    if let Ok(program) = Program::from_text(text) {
        let again = Program::from_text(&program.to_decimal());
        assert_eq!(again.as_ref(), Ok(&program));
        let packet = data.get(end + 2..).unwrap_or_default();
        program.run(packet, packet.len() as u32);
    }
});
