//! Expressions that no packet can match are refused if libpcap refuses them.
#![cfg(all(feature = "foreign", target_os = "linux"))]
#![allow(clippy::print_stderr)]

use gannet_comparators::libpcap;
use gannet_filter::proof::Expressions;
use gannet_filter::{NoNames, Options, compile};

/// Random expressions of the whole language, compared with the installed libpcap.
#[test]
fn libpcap_refuses_the_same() {
    if let Err(why) = libpcap::version() {
        eprintln!("skipped: {why}");
        return;
    }
    let mut expressions = Expressions::new(7);
    let (mut all, mut both, mut ours, mut theirs) = (0, 0, 0, 0);
    for _ in 0..2000 {
        let (link, text) = expressions.filter();
        let refuses = |optimize| {
            let options = Options { optimize, ..Options::default() };
            let own = compile(&text, link, &options, &NoNames).is_err();
            (own, libpcap::compile(&text, link, 262_144, optimize).is_err())
        };
        if refuses(false) != (false, false) {
            continue;
        }
        all += 1;
        match refuses(true) {
            (true, true) => both += 1,
            (true, false) => {
                ours += 1;
                eprintln!("libpcap takes {link} {text}");
            }
            (false, true) => theirs += 1,
            (false, false) => {}
        }
    }
    eprintln!("of {all}: {both} refused by both, {ours} here alone, {theirs} by libpcap alone");
    assert!(both * 20 > all && ours * 100 < all && theirs * 50 < all);
}
