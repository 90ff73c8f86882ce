//! Events of DNP3.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module::DNP3;

    /// Header of a request.
    pub struct Dnp3ApplicationRequestHeader = "dnp3_application_request_header" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Fragmentation and confirmation flags.
        application: u64 = "application",
        /// Function code.
        fc: u64 = "fc",
    }

    /// Header of a response.
    pub struct Dnp3ApplicationResponseHeader = "dnp3_application_response_header" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Fragmentation and confirmation flags.
        application: u64 = "application",
        /// Function code.
        fc: u64 = "fc",
        /// Internal indications of the outstation.
        iin: u16 = "iin",
    }
}
