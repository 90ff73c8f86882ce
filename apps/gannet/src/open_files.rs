//! The limit of open files.

use nix::sys::resource::Resource;
use nix::sys::resource::getrlimit;
use nix::sys::resource::setrlimit;

/// Raises the soft limit, which is 1,024 on most systems: captures that overlap in time are all open at
/// once. The hard limit is the administrator's.
pub(crate) fn raise_limit() {
    /// Upper bound of the raised limit.
    const MAX_OPEN: u64 = 1 << 20;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let limit = hard.min(MAX_OPEN);
    if soft < limit {
        // If this fails, a capture that cannot be opened is reported by its name.
        setrlimit(Resource::RLIMIT_NOFILE, limit, hard).unwrap_or_default();
    }
}
