//! Which protocol violations count.

use gannet_base::Proto;
use gannet_flow::Conn;

use crate::activation::Activation;

/// After this many bytes a confirmed protocol is not removed for a violation.
const IGNORE_VIOLATIONS_AFTER: u64 = 10 * 1024;

/// Maximum number of violations of one analyzer that count; the next one is reported once. The
/// script option `max_analyzer_violations` changes it.
pub(crate) const MAX_VIOLATIONS: u16 = 1000;

/// The limit that scripts set, at most 65,534, or the default.
pub(crate) fn max_violations(activation: &Activation) -> u16 {
    let limit = activation.setting("max_analyzer_violations", u64::from(MAX_VIOLATIONS));
    u16::try_from(limit).map_or(u16::MAX - 1, |limit| limit.min(u16::MAX - 1))
}

/// Whether a violation counts: early, and on a stream without gaps, since missing data may be its
/// cause.
pub(crate) fn violation_counts(conn: &Conn) -> bool {
    !is_incomplete(conn) && !is_long(conn)
}

/// Whether the connection is so long that violations no longer count.
#[inline]
pub(crate) fn is_long(conn: &Conn) -> bool {
    conn.payload() > IGNORE_VIOLATIONS_AFTER
}

/// Whether a part of the stream is missing.
pub(crate) fn is_incomplete(conn: &Conn) -> bool {
    conn.proto == Proto::Tcp && (conn.is_partial() || conn.has_gap())
}
