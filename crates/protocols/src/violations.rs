//! Which violations of protocols count.

use gannet_base::Proto;
use gannet_flow::Conn;

use crate::steering::Steering;

/// After this many bytes a confirmed protocol is not removed for a violation.
const IGNORE_VIOLATIONS_AFTER: u64 = 10 * 1024;

/// Violations of one analyzer that count; the next one is reported once. Scripts change it with
/// `max_analyzer_violations`.
pub(crate) const MAX_VIOLATIONS: u16 = 1000;

/// The same, as scripts have it: 65,534 at the most.
pub(crate) fn max_violations(steering: &Steering) -> u16 {
    let most = steering.setting("max_analyzer_violations", u64::from(MAX_VIOLATIONS));
    u16::try_from(most).map_or(u16::MAX - 1, |most| most.min(u16::MAX - 1))
}

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
