//! Events of syslog.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Syslog);

    /// A syslog message.
    pub struct SyslogMessage<'a> = "syslog_message" {
        /// The connection.
        c: Connection = "c",
        /// Facility; 999 if the message has no priority.
        facility: u64 = "facility",
        /// Severity, 0 is the most severe; 999 if the message has no priority.
        severity: u64 = "severity",
        /// The text after the priority.
        msg: &'a [u8] = "msg",
    }
}
