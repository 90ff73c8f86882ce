//! How long it takes to compile long lists: the least of several runs, and how long the programs
//! are.
//!
//! ```text
//! cargo run --release -p gannet-filter --example compile_speed ['host']
//! ```
#![allow(clippy::print_stdout)]

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use gannet_filter::{NoNames, Options, compile};

const RUNS: usize = 7;

fn main() {
    let address = |i: u32| Ipv4Addr::from(0x0a00_0000 | i.wrapping_mul(0x9e37_79b1) >> 8);
    let lists: [(&str, &dyn Fn(u32) -> String); 6] = [
        ("host", &|i| format!("host {}", address(i))),
        ("src host", &|i| format!("src host {}", address(i))),
        ("src net /24", &|i| format!("src net {}/24", Ipv4Addr::from(0x0a00_0000 | i << 9))),
        ("tcp port", &|i| format!("tcp port {}", i * 7 % 65536)),
        ("host and port", &|i| format!("(host {} and port {})", address(i), i % 65536)),
        ("host, IPv6", &|i| format!("host 2001:db8::{:x}:{:x}", i >> 16, i & 0xffff)),
    ];
    println!(
        "{:<14} {:>7} {:>12} {:>14} {:>12}",
        "list of", "length", "ms", "us an element", "instructions"
    );
    let only = std::env::args().nth(1);
    for (name, element) in lists {
        if only.as_ref().is_some_and(|o| o != name) {
            continue;
        }
        for n in [100, 400, 1000, 10_000] {
            let mut text = String::new();
            for i in 0..n {
                let _ = write!(text, "{}{}", if i > 0 { " or " } else { "" }, element(i));
            }
            let mut least = Duration::MAX;
            let mut told = String::new();
            for _ in 0..RUNS {
                let begin = Instant::now();
                let compiled = compile(&text, 1, &Options::default(), &NoNames);
                least = least.min(begin.elapsed());
                told = match compiled {
                    Ok(c) => c.program().insns().len().to_string(),
                    Err(e) => e.message().to_owned(),
                };
            }
            let ms = least.as_secs_f64() * 1e3;
            println!("{name:<14} {n:>7} {ms:>12.3} {:>14.2} {told:>12}", ms * 1e3 / f64::from(n));
        }
    }
}
