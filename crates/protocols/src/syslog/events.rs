//! Events of syslog.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Syslog);

    /// A message of syslog.
    pub struct SyslogMessage<'a> = "syslog_message" {
        /// The connection.
        c: Connection = "c",
        /// Which part of the sender speaks; 999 where the message does not say.
        facility: u64 = "facility",
        /// Severity, 0 is the worst; 999 if the message has none.
        severity: u64 = "severity",
        /// The text behind the priority.
        msg: &'a [u8] = "msg",
    }
}
