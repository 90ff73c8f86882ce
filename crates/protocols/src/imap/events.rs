//! Events of IMAP.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Imap);

    /// A connection switches to TLS: the server accepts STARTTLS.
    pub struct ImapStarttls = "imap_starttls", opt_in {
        /// The connection.
        c: Connection = "c",
    }

    /// A server lists its capabilities.
    pub struct ImapCapabilities<'a> = "imap_capabilities", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Names of the capabilities.
        capabilities: Vec<&'a [u8]> = "capabilities",
    }
}
