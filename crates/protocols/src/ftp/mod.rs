//! FTP.

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

/// The analyzer of one connection.
pub struct Data {}

impl Data {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {}
    }
}

impl Analyze for Data {}

/// What all connections of a shard share for this protocol.
#[derive(Debug, Default)]
pub struct Shared {}
