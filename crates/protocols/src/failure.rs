//! analyzer.log: analyzers that failed on a connection after its protocol was confirmed.

use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::Sinks;
use gannet_files::ContentFault;
use gannet_flow::Conn;

use crate::Tag;

gannet_log::row! {
    /// One row for each protocol, tunnel or file with a violation.
    pub struct AnalyzerRow<'a> = "analyzer" {
        /// Time of the row.
        ts: Time = "ts",
        /// `protocol`, `packet` or `file`.
        analyzer_kind: &'a str = "analyzer_kind",
        /// Name of the analyzer.
        analyzer_name: &'a str = "analyzer_name",
        /// The connection.
        uid: Option<Uid> = "uid",
        /// The file.
        fuid: Option<Uid> = "fuid",
        /// The connection's originator and responder.
        id: Option<ConnId> = "id",
        /// Transport.
        proto: Option<Proto> = "proto",
        /// The reason of the violation.
        failure_reason: &'a [u8] = "failure_reason",
        /// The first bytes of the violating data.
        failure_data: Option<&'a [u8]> = "failure_data",
    }
}

/// Writes a row for a connection.
pub(crate) fn log(
    logs: &mut Sinks,
    now: Time,
    conn: &Conn,
    kind: &str,
    tag: Tag,
    reason: &[u8],
    data: &[u8],
) {
    let row = AnalyzerRow {
        ts: now,
        analyzer_kind: kind,
        analyzer_name: tag.name(),
        uid: Some(conn.uid),
        fuid: None,
        id: Some(conn.id),
        proto: Some(conn.proto),
        failure_reason: reason,
        failure_data: (!data.is_empty()).then_some(data),
    };
    logs.write(&row);
}

/// Writes a row for a file, which names its connection but not the transport.
pub(crate) fn log_file(
    logs: &mut Sinks,
    now: Time,
    file: &ContentFault,
    analyzer: &str,
    reason: &str,
) {
    logs.write(&AnalyzerRow {
        ts: now,
        analyzer_kind: "file",
        analyzer_name: analyzer,
        uid: file.conn.map(|(uid, _)| uid),
        fuid: Some(file.fuid),
        id: file.conn.map(|(_, id)| id),
        proto: None,
        failure_reason: reason.as_bytes(),
        failure_data: None,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;

    #[test]
    fn failures_of_protocols_that_need_spicy_are_reported_on_request() {
        for (inner, expected) in [(false, &["HTTP"][..]), (true, &["HTTP", "REDIS"])] {
            let mut h = Harness::new(Proto::Tcp, 80);
            h.env.inner_protocols = inner;
            let cx = h.cx();
            for tag in [Tag::Http, Tag::Redis] {
                cx.env.log_failure(cx.now, cx.conn, "protocol", tag, b"no such thing", b"");
            }
            let rows = h.rows("analyzer");
            let names: Vec<_> = rows.iter().map(|r| &*r["analyzer_name"]).collect();
            assert_eq!(names, expected);
        }
    }
}
