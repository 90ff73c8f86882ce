//! A filter expression in the first line, and a packet after it: machine code, optimised and not,
//! has the same verdict as the interpreter for the packet truncated to every length.
#![no_main]

use gannet_comparators::Kind;
use gannet_filter::engine::View;
use gannet_filter::{NoNames, Options, compile};

/// Maximum length of the packet; longer ones find no more.
const LONGEST: usize = 256;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |b| *b == b'\n');
    let text = parts.next().and_then(|t| std::str::from_utf8(t).ok()).unwrap_or_default();
    let Some((&link, packet)) = parts.next().unwrap_or_default().split_first() else { return };
    let packet = &packet[..packet.len().min(LONGEST)];
    let views: Vec<View<'_>> =
        (0..=packet.len()).map(|n| View::new(&packet[..n], packet.len() as u32)).collect();
    let mut expected: Option<Vec<u32>> = None;
    for optimize in [false, true] {
        let options = Options { optimize, ..Options::default() };
        let Ok(compiled) = compile(text, u16::from(link), &options, &NoNames) else { return };
        for kind in [Kind::Interp, Kind::Jit, Kind::Batch] {
            let Ok(engine) = kind.build(compiled.program()) else { continue };
            let mut hits = Vec::new();
            engine.select(&views, &mut hits);
            assert_eq!(&hits, expected.get_or_insert_with(|| hits.clone()), "{}", kind.name());
        }
    }
});
