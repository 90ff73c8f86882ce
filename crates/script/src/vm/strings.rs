//! The limit on the length of strings (`--max-string`).

use super::Vm;
use crate::evaluate::Stop;
use crate::ids::ExprId;
use crate::value::Value;

/// Default maximum length of a string in bytes. A longer string is an error of the script: without a limit, a string that keeps
/// growing would exhaust memory and end the process.
pub const MAX_STRING: usize = 256 << 20;

impl Vm<'_> {
    /// Reports an error at `site` if a string of `len` bytes is too long.
    #[inline]
    pub(crate) fn check_string_at(&mut self, site: ExprId, len: usize) -> Result<(), Stop> {
        if len <= self.m.max_string {
            return Ok(());
        }
        Err(self.string_too_long(site, len))
    }

    /// Reports an error at the running built-in function if a string of `len` bytes is too long.
    #[inline]
    pub(crate) fn check_string(&mut self, len: usize) -> Result<(), Stop> {
        if len <= self.m.max_string {
            return Ok(());
        }
        let site = self.call_site();
        Err(self.string_too_long(site, len))
    }

    /// Replaces the result of a built-in function by an error if it is too long a string.
    #[inline]
    pub(super) fn check_returned(
        &mut self,
        site: ExprId,
        result: Result<Value, Stop>,
    ) -> Result<Value, Stop> {
        if let Ok(Value::Long(text)) = &result
            && text.len() > self.m.max_string
        {
            let len = text.len();
            return Err(self.string_too_long(site, len));
        }
        result
    }

    #[cold]
    fn string_too_long(&mut self, site: ExprId, len: usize) -> Stop {
        let limit = self.m.max_string;
        self.error_at(
            site,
            format!("a string of {len} bytes is longer than {limit}, the limit of --max-string"),
        )
    }
}
