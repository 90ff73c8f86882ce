//! Events of XMPP.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Xmpp);

    /// TLS begins.
    pub struct XmppStarttls = "xmpp_starttls", opt_in {
        /// The connection.
        c: Connection = "c",
    }
}
