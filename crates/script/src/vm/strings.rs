//! How long the strings of scripts may be (`--max-string`).

use super::Vm;
use crate::evaluate::Stop;
use crate::ids::ExprId;
use crate::value::Value;

/// The longest string that scripts may make by default, in bytes. A longer one is an error of the script: without a limit, one that
/// grows without end would take all memory and end the process.
pub const MAX_STRING: usize = 256 << 20;

impl Vm<'_> {
    /// Refuses a string of `len` bytes for the expression that makes it.
    #[inline]
    pub(crate) fn check_string_at(&mut self, site: ExprId, len: usize) -> Result<(), Stop> {
        if len <= self.m.max_string {
            return Ok(());
        }
        Err(self.string_too_long(site, len))
    }

    /// Refuses a string of `len` bytes for the built-in function that makes it.
    #[inline]
    pub(crate) fn check_string(&mut self, len: usize) -> Result<(), Stop> {
        if len <= self.m.max_string {
            return Ok(());
        }
        let site = self.call_site();
        Err(self.string_too_long(site, len))
    }

    /// Refuses what a built-in function returns where it is too long a string.
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
        let most = self.m.max_string;
        self.error_at(
            site,
            format!("a string of {len} bytes is longer than {most}, the limit of --max-string"),
        )
    }
}
