//! Protocol detection by content.

use crate::Analyze;
use crate::Context;

/// The analyzer of one connection.
pub struct Detector {}

impl Detector {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {}
    }
}

impl Analyze for Detector {}
