//! Rows of weird.log and notice.log.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Enum;
use gannet_log::Set;

gannet_log::row! {
    /// One row for each weird, after suppression.
    pub struct WeirdRow<'a> = "weird" {
        /// Time of the weird.
        ts: Time = "ts",
        /// The connection that is its subject.
        uid: Option<Uid> = "uid",
        /// Originator and responder of that connection; ports are 0 for a pair of hosts.
        id: Option<ConnId> = "id",
        /// Name of the weird.
        name: &'a str = "name",
        /// Details.
        addl: Option<&'a [u8]> = "addl",
        /// Whether it also raised a notice.
        notice: bool = "notice",
        /// Name of the reporting process: always `zeek`, as for a process outside of a cluster.
        peer: &'a str = "peer",
        /// The analyzer that reported it.
        source: Option<&'static str> = "source",
    }
}

gannet_log::row! {
    /// One row for each notice. Only weirds raise notices, and capture_loss.log if it is enabled.
    pub struct NoticeRow<'a> = "notice" {
        /// Time of the notice.
        ts: Time = "ts",
        /// The connection that is its subject.
        uid: Option<Uid> = "uid",
        /// Originator and responder of that connection.
        id: Option<ConnId> = "id",
        /// The related file.
        fuid: Option<Uid> = "fuid",
        /// The file's type.
        file_mime_type: Option<&'a str> = "file_mime_type",
        /// Description of the file.
        file_desc: Option<&'a str> = "file_desc",
        /// Transport.
        proto: Option<Proto> = "proto",
        /// Type of notice.
        note: Enum = "note",
        /// Description.
        msg: &'a str = "msg",
        /// Details.
        sub: Option<&'a [u8]> = "sub",
        /// Source address.
        src: Option<Addr> = "src",
        /// Destination address.
        dst: Option<Addr> = "dst",
        /// Port.
        p: Option<gannet_log::Port> = "p",
        /// A count.
        n: Option<u64> = "n",
        /// Name of the process that raised it.
        peer_descr: Option<&'a str> = "peer_descr",
        /// Actions taken.
        actions: Set<Enum> = "actions",
        /// Recipients of mail about the notice.
        email_dest: Set<&'a str> = "email_dest",
        /// Interval in which further notices of the same type are suppressed.
        suppress_for: Interval = "suppress_for",
        /// Country of the remote host.
        country: Option<&'a str> = "remote_location.country_code",
        /// Region of the remote host.
        region: Option<&'a str> = "remote_location.region",
        /// City of the remote host.
        city: Option<&'a str> = "remote_location.city",
        /// Latitude of the remote host.
        latitude: Option<f64> = "remote_location.latitude",
        /// Longitude of the remote host.
        longitude: Option<f64> = "remote_location.longitude",
    }
}

impl<'a> NoticeRow<'a> {
    /// Creates a notice without connection and hosts.
    pub(crate) fn plain(ts: Time, note: &'static str, msg: &'a str) -> Self {
        Self {
            ts,
            uid: None,
            id: None,
            fuid: None,
            file_mime_type: None,
            file_desc: None,
            proto: None,
            note: Enum(note),
            msg,
            sub: None,
            src: None,
            dst: None,
            p: None,
            n: None,
            peer_descr: None,
            actions: Set(vec![Enum("Notice::ACTION_LOG")]),
            email_dest: Set(Vec::new()),
            suppress_for: Interval::from_secs(3600),
            country: None,
            region: None,
            city: None,
            latitude: None,
            longitude: None,
        }
    }
}
