//! Which violations of protocols count.

use gannet_base::Proto;
use gannet_flow::Conn;

/// After this many bytes a confirmed protocol is not removed for a violation.
const IGNORE_VIOLATIONS_AFTER: u64 = 10 * 1024;

/// Violations of one analyzer that count; the next one is reported once.
pub(crate) const MAX_VIOLATIONS: u16 = 1000;

/// Whether a violation counts: early, and on a complete stream, since missing data may be its
/// cause.
pub(crate) fn blames(conn: &Conn) -> bool {
    !is_incomplete(conn) && !is_long(conn)
}

/// Whether so much was sent that violations do not count any more.
#[inline]
pub(crate) fn is_long(conn: &Conn) -> bool {
    conn.payload() > IGNORE_VIOLATIONS_AFTER
}

/// Whether a part of the stream was missed.
pub(crate) fn is_incomplete(conn: &Conn) -> bool {
    conn.proto == Proto::Tcp && (conn.is_partial() || conn.has_gap())
}
