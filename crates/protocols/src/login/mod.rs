//! Logins in clear text: Telnet (RFC 854), rlogin (RFC 1282) and rsh.
//!
//! [`Telnet`], [`Rlogin`] and [`Rsh`] split both directions into lines, and take out what is no text: Telnet's options
//! (`terminal.rs`, `options.rs`), and the names that begin a stream of rlogin and rsh (`names.rs`). Each line goes to the
//! `Dialog` (`dialog.rs`), which decides from the server's texts whether a login succeeded or failed.
//!
//! What these texts are depends on the servers of a network. Scripts list them (`login_prompts` and so on), so that the
//! dialog asks the listener whether a line has one of them ([`LoginText`](events::LoginText)). Zeek puts these analyzers on
//! no port and detects none of them: scripts start them. There is no log, and no service.

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

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// What the rest of gannet knows of the protocols.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry::new(Tag::Telnet, "TELNET", "telnet"),
        Entry::new(Tag::Rlogin, "RLOGIN", "rlogin"),
        Entry::new(Tag::Rsh, "RSH", "rsh"),
    ],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};

/// Bytes of a line, of an option or of a name.
const MAX_LINE: usize = 16 * 1024 * 1024 - 100;

/// The part of a text before its first NUL: what Zeek's strings of C hold.
fn before_nul(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}
