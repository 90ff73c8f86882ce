//! An echo server for queries.

use std::io::BufRead;
use std::io::BufReader;
use std::process::Child;
use std::process::Stdio;

use crate::support::gannet;

/// An echo server in a process of its own, ended when dropped.
pub(crate) struct Echo {
    pub(crate) child: Child,
    /// The address, with a port that the system chose.
    pub(crate) address: String,
}

impl Echo {
    /// Starts a server, which listens when this returns.
    pub(crate) fn start(options: &[&str]) -> Self {
        let mut child = gannet()
            .args(["replay", "--serve", "127.0.0.1:0"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split(' ').find(|w| w.starts_with("127."));
        Self { child, address: address.unwrap_or_else(|| panic!("{line}")).to_owned() }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
    }
}
