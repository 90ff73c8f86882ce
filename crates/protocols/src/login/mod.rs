//! Logins in clear text: Telnet (RFC 854), rlogin (RFC 1282) and rsh.
//!
//! [`Telnet`], [`Rlogin`] and [`Rsh`] split both directions into lines, and remove Telnet options
//! (`terminal.rs`, `options.rs`) and the names at the start of an rlogin or rsh stream (`names.rs`). The
//! `Dialog` (`dialog.rs`) receives each line, and decides by texts of the server whether a login succeeded or failed.
//!
//! These texts depend on the servers of a network. Scripts define lists of them (`login_prompts` and so on), and the
//! dialog queries the listener whether a line contains one of them ([`LoginText`](events::LoginText)). As in Zeek, these
//! analyzers have no ports and no detection rules: only scripts start them. There is no log, and no service name.

mod dialog;
pub mod events;
mod names;
mod options;
mod rlogin;
mod rsh;
mod telnet;
mod terminal;

pub use rlogin::Rlogin;
pub use rsh::Rsh;
pub use telnet::Telnet;
pub use terminal::Item;
pub use terminal::items;

pub(crate) use options::Options;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// Analyzers and events of the protocols.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry::new(Tag::Telnet, "TELNET", "telnet"),
        Entry::new(Tag::Rlogin, "RLOGIN", "rlogin"),
        Entry::new(Tag::Rsh, "RSH", "rsh"),
    ],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};

/// Maximum length of a line, of an option and of a name, in bytes.
const MAX_LINE: usize = 16 * 1024 * 1024 - 100;

/// Returns the part of a text before its first NUL, which ends the string in Zeek.
fn before_nul(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}
