//! No expression crashes or hangs the compiler: too large ones are refused, and the time of long
//! ones is linear in their length.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::time::{Duration, Instant};

use gannet_filter::{Dialect, NoNames, Options, compile};

/// Time limit: far more than any of these expressions takes, even without optimization on a busy
/// machine, and far less than quadratic time.
const TIME_LIMIT: Duration = Duration::from_mins(2);

fn compile_result(text: &str, optimize: bool, dialect: Dialect) -> Result<usize, String> {
    let options = Options { optimize, dialect, ..Options::default() };
    let begin = Instant::now();
    let result = compile(text, 1, &options, &NoNames);
    let took = begin.elapsed();
    assert!(took < TIME_LIMIT, "{took:?}: {text:.60}");
    result.map(|c| c.program().insns().len()).map_err(|e| e.message().to_owned())
}

fn chain(n: usize, join: &str, one: impl Fn(usize) -> String) -> String {
    (0..n).map(one).collect::<Vec<_>>().join(join)
}

#[test]
fn too_deep_nesting_is_reported() {
    for (deep, word) in [
        ("(".repeat(200_000) + "ip" + &")".repeat(200_000), "deeper"),
        ("not ".repeat(200_000) + "ip", "deeper"),
        ("!".repeat(200_000) + "ip", "deeper"),
        ("port (".repeat(100_000) + "1", "syntax error"),
        ("port ".to_owned() + &"(not ".repeat(100_000) + "1", "deeper"),
        ("- ".repeat(200_000) + "1 = 1", "deeper"),
        ("ip[".repeat(100_000) + "0" + &"]".repeat(100_000) + " = 1", "deeper"),
        ("1 = ".to_owned() + &"(".repeat(100_000) + "1", "deeper"),
        ("1 ^ ".repeat(100_000) + "1 = 1", "deeper"),
        (chain(100_000, " + ", |i| i.to_string()) + " = 1", "in a row"),
    ] {
        let message = compile_result(&deep, true, Dialect::Libpcap).unwrap_err();
        assert!(message.contains(word), "{message}: {deep:.40}");
    }
}

#[test]
fn compile_time_is_linear_in_length() {
    let many = [
        chain(20_000, " and ", |i| format!("not port {i}")),
        chain(20_000, " or ", |i| format!("ether[{i}:4] = {i}")),
        chain(20_000, " and ", |i| format!("ether[{}] != {}", i % 64, i % 256)),
        chain(2_000, " or ", |i| format!("(host 10.0.{}.{} and port {i})", i / 256, i % 256)),
        chain(20_000, " or ", |i| format!("ether host 02:00:00:00:{:x}:{:x}", i / 256, i % 256)),
        chain(5_000, " or ", |i| format!("portrange {}-{}", i * 10, i * 10 + 5)),
        chain(3_000, " or ", |i| format!("ip6 net 2001:db8:{i:x}::/48")),
        format!(
            "not ({})",
            chain(20_000, " or ", |i| format!("host 10.1.{}.{}", i / 256, i % 256))
        ),
        chain(20_000, " or ", |i| format!("len = {i}")),
        chain(500, " or ", |i| format!("ip proto {} and tcp[{i}] & 3 = 1", i % 256)),
        format!("port in {{{}}}", chain(60_000, ", ", |i| i.to_string())),
        chain(3_000, " or ", |_| "ip6 protochain 6".to_owned()),
        chain(20_000, " and ", |_| "vlan".to_owned()),
        chain(20_000, " or ", |i| format!("mpls {i}")),
    ];
    for text in many {
        for optimize in [true, false] {
            if let Ok(n) = compile_result(&text, optimize, Dialect::Libpcap) {
                assert!(n < text.len() * 4, "{n} instructions for {text:.60}");
            }
        }
        let _ = compile_result(&text, true, Dialect::Scoped);
    }
}

#[test]
fn too_many_variables_are_reported() {
    for inner in ["geneve", "vxlan 7"] {
        let message =
            compile_result(&chain(100, " and ", |_| inner.to_owned()), true, Dialect::Libpcap);
        assert!(message.unwrap_err().contains("too many registers"), "{inner}");
    }
    // Nested deeper than the number of BPF's scratch words.
    let sum = (0..40).fold("ip[0]".to_owned(), |inner, i| format!("ip[{i}] * ip[{inner}]"));
    assert!(compile_result(&format!("{sum} = 1"), true, Dialect::Libpcap).is_ok());
}
