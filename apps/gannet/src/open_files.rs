//! How many files may be open at once.

use nix::sys::resource::Resource;
use nix::sys::resource::getrlimit;
use nix::sys::resource::setrlimit;

/// Raises the soft limit, which is 1,024 on most systems: captures that overlap in time are all open at
/// once. The hard limit is the administrator's.
pub(crate) fn raise_limit() {
    /// More captures than that are not merged.
    const ENOUGH: u64 = 1 << 20;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = hard.min(ENOUGH);
    if soft < wanted {
        // Without it, a capture that cannot be opened is reported by its name.
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).unwrap_or_default();
    }
}
