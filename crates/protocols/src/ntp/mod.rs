//! NTP.

use crate::Analyze;
use crate::Context;

/// The analyzer of one connection.
pub struct Analyzer {}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {}
    }
}

impl Analyze for Analyzer {}
