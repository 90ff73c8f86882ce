//! The CPU time of compiling long lists (the minimum of several runs), the peak memory of the
//! process, and the length of the programs.
//!
//! ```text
//! cargo run --release -p gannet-filter --example compile_speed ['host']
//! cargo run --release -p gannet-filter --features jit --example compile_speed list 1000000
//! ```
#![allow(clippy::print_stdout)]

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::time::Duration;

use gannet_filter::{Filter, NoNames, Options, Resolver, compile};
use rustix::time::{ClockId, clock_gettime};

const RUNS: usize = 7;

/// A list of addresses as a file holds it.
struct List(String);

impl Resolver for List {
    fn list(&self, _name: &str) -> Result<String, String> {
        Ok(self.0.clone())
    }
}

/// `host in @FILE` with `n` random addresses.
fn compile_list_file(n: u32) {
    let mut random = gannet_filter::proof::Random::new(1);
    let mut text = String::new();
    for _ in 0..n {
        let _ = writeln!(text, "{}", Ipv4Addr::from(random.bits() as u32));
    }
    let names = List(text);
    let shared = std::sync::Arc::new(List(names.0.clone()));
    for expression in ["src host in @list", "host in @list"] {
        let (before, begin) = (peak(), cpu());
        let ready = Filter::with(expression, Options::default(), shared.clone())
            .is_ok_and(|filter| filter.engine(1).is_ok());
        let ms = cpu().saturating_sub(begin).as_secs_f64() * 1e3;
        let more = peak() - before;
        println!(
            "{expression} of {n}, ready to run: {ready} in {ms:.0} ms, {more} MiB more at most"
        );
    }
    let before = peak();
    for expression in ["src host in @list", "host in @list"] {
        let begin = cpu();
        let told = match compile(expression, 1, &Options::default(), &names) {
            Ok(c) => format!("{} instructions", c.program().insns().len()),
            Err(e) => e.message().to_owned(),
        };
        let ms = cpu().saturating_sub(begin).as_secs_f64() * 1e3;
        println!("{expression} of {n}: {ms:.0} ms, {told}, {} MiB more at most", peak() - before);
    }
}

/// CPU time of this thread.
fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Peak memory of the process in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim_end_matches("kB").trim().parse::<u64>().unwrap_or_default() / 1024
}

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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [list, n] = &arguments[..]
        && list == "list"
        && let Ok(n) = n.parse()
    {
        return compile_list_file(n);
    }
    println!(
        "{:<14} {:>7} {:>12} {:>14} {:>12} {:>9}",
        "list of", "length", "ms", "us an element", "instructions", "peak MiB"
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
                let begin = cpu();
                let compiled = compile(&text, 1, &Options::default(), &NoNames);
                least = least.min(cpu().saturating_sub(begin));
                told = match compiled {
                    Ok(c) => c.program().insns().len().to_string(),
                    Err(e) => e.message().to_owned(),
                };
            }
            let ms = least.as_secs_f64() * 1e3;
            println!(
                "{name:<14} {n:>7} {ms:>12.3} {:>14.2} {told:>12} {:>9}",
                ms * 1e3 / f64::from(n),
                peak()
            );
        }
    }
}
