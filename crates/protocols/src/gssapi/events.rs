//! Events of GSSAPI.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Gssapi);

    /// A server reports the state of the negotiation.
    pub struct GssapiNegResult = "gssapi_neg_result" {
        /// The connection.
        c: Connection = "c",
        /// Negotiation state: 0 accepted, 1 incomplete, 2 rejected.
        state: u64 = "state",
    }
}
