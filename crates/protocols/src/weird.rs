//! Oddities: weird.log and its suppression.
//!
//! Zeek logs an oddity once for each name and identifier within ten minutes (some names once a
//! connection or an originator, some never), and samples the loud ones.

use gannet_base::Time;
use gannet_flow::Conn;
use gannet_log::Logs;

/// Decides which oddities become rows.
#[derive(Debug, Default)]
pub struct Weirds {}

impl Weirds {
    /// An oddity of a connection.
    pub fn conn(
        &mut self,
        _logs: &mut Logs,
        _now: Time,
        _conn: &mut Conn,
        _name: &'static str,
        _addl: &str,
        _source: Option<&'static str>,
    ) {
    }

    /// An oddity of no connection.
    pub fn net(&mut self, _logs: &mut Logs, _now: Time, _name: &'static str, _addl: &str) {}
}
