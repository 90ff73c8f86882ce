//! Filter expressions through every stage, for a link type of the first byte: with and without the
//! optimizer the verdict on the bytes after the first line is the same, and every stage can be
//! shown.
#![no_main]

use gannet_filter::{Dialect, NoNames, Options, compile};

/// Maximum number of tests of a drawn graph; larger drawings take long and find no more.
const SHOWN: usize = 200;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((selector, rest)) = data.split_first() else { return };
    let mut parts = rest.splitn(2, |b| *b == b'\n');
    let text = parts.next().and_then(|t| std::str::from_utf8(t).ok()).unwrap_or_default();
    let packet = parts.next().unwrap_or_default();
    let link = u16::from(selector & 0x7f) * 3;
    let dialect = if selector & 0x80 == 0 { Dialect::Libpcap } else { Dialect::Scoped };
    let options = |optimize| Options { optimize, dialect, ..Options::default() };
    let wire = packet.len() as u32;
    let plain = match compile(text, link, &options(false), &NoNames) {
        Ok(plain) => plain,
        Err(error) => {
            assert!(error.column() <= text.chars().count() + 1, "{error}");
            return;
        }
    };
    let told = plain.program().run(packet, wire);
    match compile(text, link, &options(true), &NoNames) {
        Ok(short) => {
            assert_eq!(short.program().run(packet, wire), told, "{text}");
            if let Some(graph) = short.graph().filter(|g| g.blocks.len() < SHOWN) {
                let shown = [short.ast(), short.predicates(), short.passes_listed()];
                assert!(shown.iter().all(|s| !s.is_empty()));
                assert!(graph.to_svg().ends_with("</svg>\n"));
                assert!(short.explain().contains("lets through"));
                assert!(short.program().to_c_function("f").ends_with("}\n"));
            }
        }
        // Only the optimizer reports that no packet can match.
        Err(error) => assert!(told == 0, "{error}"),
    }
});
