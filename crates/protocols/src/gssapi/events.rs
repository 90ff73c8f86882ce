//! Events of GSSAPI.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Gssapi);

    /// A login goes on or ends.
    pub struct GssapiNegResult = "gssapi_neg_result" {
        /// The connection.
        c: Connection = "c",
        /// How it stands: 0 accepted, 1 not yet over, 2 rejected.
        state: u64 = "state",
    }
}
