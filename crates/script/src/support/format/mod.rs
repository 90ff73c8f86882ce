//! Text of values: numbers, times, addresses and strings as `print`, `cat`, `fmt` and `to_json` write them.
//!
//! Functions append to a buffer. Compound values are composed by the caller.
//!
//! ```
//! use gannet_script::support::format;
//!
//! let mut out = Vec::new();
//! format::double(&mut out, 3.0);
//! out.push(b' ');
//! format::interval(&mut out, 86_400.0 + 90.0);
//! out.push(b' ');
//! format::port(&mut out, 80, "tcp");
//! assert_eq!(out, b"3.0 1.0 day 1.0 min 30.0 secs 80/tcp");
//!
//! // A string printed to a file, in a log, as a literal of the language.
//! out.clear();
//! format::escape::printed(&mut out, b"a\n\\");
//! assert_eq!(out, b"a\\x0a\\");
//!
//! // fmt("%05.1f|%-4s|", 2.25, "ab")
//! use format::fmt::{Arg, fmt};
//! let args = [Arg::Double(2.25), Arg::Text(b"ab")];
//! assert_eq!(fmt(b"%05.1f|%-4s|", &args).text, b"002.2|ab  |");
//! ```

pub mod escape;
pub mod fmt;
mod grisu;
pub mod json;
mod number;
pub mod time;

pub use number::{
    addr, addr_hex, double, double_fixed, double_of_json, double_of_log, general, interval, port,
    seconds_of_log, subnet,
};

#[cfg(test)]
mod tests;
