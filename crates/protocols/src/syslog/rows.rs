use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Type;
use gannet_log::Value;

use super::events::SyslogMessage;
use super::message::NONE;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// One row for each syslog message.
    pub struct SyslogRow<'a> = "syslog" {
        /// When it was sent.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// Transport.
        proto: Proto = "proto",
        /// Facility code.
        facility: Facility = "facility",
        /// Severity code.
        severity: &'static str = "severity",
        /// The text.
        message: &'a [u8] = "message",
    }
}

const FACILITIES: [&str; 24] = [
    "KERN", "USER", "MAIL", "DAEMON", "AUTH", "SYSLOG", "LPR", "NEWS", "UUCP", "CRON", "AUTHPRIV",
    "FTP", "NTP", "AUDIT", "ALERT", "CLOCK", "LOCAL0", "LOCAL1", "LOCAL2", "LOCAL3", "LOCAL4",
    "LOCAL5", "LOCAL6", "LOCAL7",
];

const SEVERITIES: [&str; 8] =
    ["EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG"];

const UNSPECIFIED: &str = "UNSPECIFIED";

/// The name of a facility.
pub struct Facility(u64);

impl Value for Facility {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        match usize::try_from(self.0).ok().and_then(|facility| FACILITIES.get(facility)) {
            Some(name) => e.plain(name.as_bytes()),
            None if self.0 == NONE => e.plain(UNSPECIFIED.as_bytes()),
            None => e.string(format!("?-{}", self.0).as_bytes()),
        }
    }
}

/// The name of a severity.
fn severity(severity: u64) -> &'static str {
    let known = usize::try_from(severity).ok().and_then(|severity| SEVERITIES.get(severity));
    known.copied().unwrap_or(UNSPECIFIED)
}

/// Writes a row for each message.
pub(super) struct Rows;

impl OnEvent<SyslogMessage<'_>> for Rows {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SyslogMessage<'_>) {
        cx.log(&SyslogRow {
            ts: cx.now,
            uid: cx.conn.uid,
            id: cx.conn.id,
            proto: cx.conn.proto,
            facility: Facility(event.facility),
            severity: severity(event.severity),
            message: event.msg,
        });
    }
}
