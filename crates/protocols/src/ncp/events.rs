//! Events of NCP.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ncp);

    /// A request.
    pub struct NcpRequest = "ncp_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Type of the frame.
        frame_type: u16 = "frame_type",
        /// Number of bytes after the frame's header.
        length: u64 = "length",
        /// Function code; for function 0x57 the low byte is the subfunction.
        func: u16 = "func",
    }

    /// A reply.
    pub struct NcpReply = "ncp_reply", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Type of the frame.
        frame_type: u16 = "frame_type",
        /// Number of bytes after the frame's header.
        length: u64 = "length",
        /// Type of the last request's frame; 0 if none was seen.
        req_frame: u16 = "req_frame",
        /// Function of the last request; 0 if none was seen.
        req_func: u16 = "req_func",
        /// Completion code; 0 is success.
        completion_code: u64 = "completion_code",
    }
}
