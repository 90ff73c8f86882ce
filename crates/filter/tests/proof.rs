//! Every pass of the optimizer is compared with its input, over random filters and packets
//! truncated to every length.
//!
//! `GANNET_PROOFS` sets the number of filters, `GANNET_PROOF_SEED` the seed; `cargo xtask
//! filter-proof` runs a hundred thousand.
#![allow(clippy::print_stderr)]

use gannet_filter::proof::{Expressions, check_as};
use gannet_filter::{Dialect, NoNames};

fn variable_or(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn no_pass_changes_a_verdict() {
    let (count, seed) = (variable_or("GANNET_PROOFS", 300), variable_or("GANNET_PROOF_SEED", 1));
    let mut expressions = Expressions::new(seed);
    let (mut filters, mut runs, mut wrong) = (0, 0, 0);
    let mut tries = 0;
    while filters < count {
        tries += 1;
        assert!(tries < count * 20 + 1000, "hardly any random filter compiles");
        let (link, text) = expressions.filter();
        let dialect = if tries % 4 == 0 { Dialect::Scoped } else { Dialect::Libpcap };
        match check_as(dialect, &text, link, &NoNames, 6, seed ^ tries, &[]) {
            Ok(None) => (),
            Ok(Some(n)) => {
                filters += 1;
                runs += n;
            }
            Err(disagreement) => {
                filters += 1;
                wrong += 1;
                eprintln!("link type {link}: {text}\n  {disagreement}");
                assert!(wrong < 20, "too many disagreements");
            }
        }
    }
    eprintln!("{filters} filters of {tries} tried, {runs} runs, {wrong} disagreements");
    assert_eq!(wrong, 0, "passes change verdicts");
}
