//! Infers logins from the sizes of encrypted packets.
//!
//! The server's first encrypted packet accepts the service; it is 16 bytes longer than one that
//! accepts a user. A packet of another size is a rejection, and further packets of that size are
//! further rejections. A first packet that is much longer is a banner.

use gannet_base::Dir;

/// Minimum difference in bytes by which a banner exceeds the acceptance of the service.
const BANNER: i64 = 256;

/// Difference in bytes between the acceptance of the service and that of a user.
const DIFFERENCE: i64 = 16;

/// State inferred from the sizes so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Auth {
    decided: bool,
    client_spoke: bool,
    banner: bool,
    accept: Option<i64>,
    failure: Option<i64>,
}

impl Auth {
    /// Whether there was no rejection so far: a success then required no authentication.
    pub(super) fn is_first(&self) -> bool {
        self.failure.is_none()
    }

    /// Handles a segment with `len` encrypted bytes. Returns whether a login attempt succeeded, if
    /// there was one.
    pub(super) fn segment(&mut self, from: Dir, len: usize) -> Option<bool> {
        if self.decided {
            return None;
        }
        if from.is_orig() {
            self.client_spoke = true;
            return None;
        }
        if !self.client_spoke {
            return None;
        }
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        let Some(accept) = self.accept else {
            self.accept = Some(len);
            return None;
        };
        if let Some(failure) = self.failure
            && len == failure
        {
            return Some(false);
        }
        if len + DIFFERENCE == accept {
            self.decided = true;
            return Some(true);
        }
        if self.failure.is_none() {
            if !self.banner && len - accept > BANNER {
                self.banner = true;
            } else {
                self.failure = Some(len);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(sizes: &[(Dir, usize)]) -> Vec<Option<bool>> {
        let mut a = Auth::default();
        sizes.iter().map(|(d, n)| a.segment(*d, *n)).collect()
    }

    #[test]
    fn refusals_then_success() {
        let (o, r) = (Dir::Orig, Dir::Resp);
        let reported =
            run(&[(r, 9), (o, 48), (r, 48), (r, 64), (r, 64), (r, 100), (r, 32), (r, 64)]);
        assert_eq!(reported, [None, None, None, None, Some(false), None, Some(true), None]);
    }

    #[test]
    fn success_at_once_and_banners() {
        let (o, r) = (Dir::Orig, Dir::Resp);
        assert_eq!(run(&[(o, 48), (r, 48), (r, 32)])[2], Some(true));
        let reported = run(&[(o, 48), (r, 48), (r, 400), (r, 64), (r, 64)]);
        assert_eq!(reported[4], Some(false));
    }
}
