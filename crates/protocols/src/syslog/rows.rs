use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Type;
use gannet_log::Value;

use super::message::Priority;

gannet_log::row! {
    /// One row for each syslog message.
    pub struct SyslogRow<'a> = "syslog" {
        /// When it was sent.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
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

/// The facility in words.
pub struct Facility(pub(super) Option<Priority>);

impl Value for Facility {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        match self.0 {
            None => e.plain(UNSPECIFIED.as_bytes()),
            Some(p) => match FACILITIES.get(usize::from(p.facility)) {
                Some(name) => e.plain(name.as_bytes()),
                None => e.string(format!("?-{}", p.facility).as_bytes()),
            },
        }
    }
}

/// The severity in words.
pub(super) fn severity(p: Option<Priority>) -> &'static str {
    p.map_or(UNSPECIFIED, |p| SEVERITIES[usize::from(p.severity & 7)])
}
