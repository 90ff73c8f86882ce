use std::collections::HashMap;
use std::collections::HashSet;

use gannet_base::Dir;
use gannet_dict::KeyedHash;

use super::events::SmbDiscardedDceRpcAnalyzers;
use super::events::SmbPipeConnectHeuristic;
use super::shares::Shares;
use super::v1::PendingRequests as PendingRequests1;
use super::v2::PendingRequests as PendingRequests2;
use crate::Context;
use crate::dce_rpc;
use crate::gssapi;
use crate::gssapi::Logins;
use crate::ntlm;
use crate::support::limit_reached;

/// Maximum number of pipes of one connection whose data is analyzed.
const MAX_PIPES: usize = 1000;
/// Maximum number of pipe trees kept.
const MAX_TREES: usize = 4096;

/// Names of files that only pipe trees have.
const PIPES: [&[u8]; 8] =
    [b"MsFteWds", b"lsarpc", b"netdfs", b"samr", b"spoolss", b"srvsvc", b"winreg", b"wkssvc"];

/// State of a connection that all kinds of messages use.
pub(super) struct Core {
    pub(super) shares: Shares,
    pub(super) v1: PendingRequests1,
    pub(super) v2: PendingRequests2,
    pipe_trees: HashSet<u32, KeyedHash>,
    pipes: HashMap<u64, dce_rpc::Stream, KeyedHash>,
    calls: dce_rpc::Calls,
    gssapi: gssapi::Inner,
    ntlm: ntlm::Inner,
    logins: Logins,
    /// Whether a login token was seen.
    reads_logins: bool,
}

impl Core {
    pub(super) fn new() -> Self {
        Self {
            shares: Shares::new(),
            v1: PendingRequests1::default(),
            v2: PendingRequests2::default(),
            pipe_trees: HashSet::default(),
            pipes: HashMap::default(),
            calls: dce_rpc::Calls::default(),
            gssapi: gssapi::Inner::default(),
            ntlm: ntlm::Inner::default(),
            logins: Logins::default(),
            reads_logins: false,
        }
    }

    /// Whether a tree is a pipe tree.
    pub(super) fn is_pipe(&self, tree: u32) -> bool {
        self.pipe_trees.contains(&tree)
    }

    /// Marks a tree as a pipe tree.
    pub(super) fn set_pipe(&mut self, cx: &mut Context<'_>, tree: u32) {
        if self.pipe_trees.len() >= MAX_TREES && !self.pipe_trees.contains(&tree) {
            self.pipe_trees.clear();
            limit_reached(cx, "SMB_discarded_pipe_trees", &MAX_TREES.to_string(), Some("SMB"));
        }
        self.pipe_trees.insert(tree);
    }

    /// Removes a tree.
    pub(super) fn unset_pipe(&mut self, tree: u32) {
        self.pipe_trees.remove(&tree);
    }

    /// Marks the tree of an opened file as a pipe tree, if the file's name indicates it.
    pub(super) fn detect_pipe(&mut self, cx: &mut Context<'_>, tree: u32, name: &[u8]) {
        let names_pipe = || cx.env.names_pipe(name).unwrap_or_else(|| PIPES.contains(&name));
        if !self.is_pipe(tree) && names_pipe() {
            self.set_pipe(cx, tree);
            cx.raise(|c| SmbPipeConnectHeuristic { c });
            self.shares.mark_as_pipe();
        }
    }

    /// Handles the token of a login.
    pub(super) fn login(&mut self, cx: &mut Context<'_>, from: Dir, token: &[u8]) {
        if !std::mem::replace(&mut self.reads_logins, true) {
            // Both analyzers start with the first token, as in Zeek. NTLM within GSSAPI is a
            // separate one.
            self.gssapi.start(cx);
            self.ntlm.start(cx);
        }
        if token.len() < 8 {
            return;
        }
        if token.starts_with(b"NTLMSSP") {
            self.ntlm.deliver(cx, &mut self.logins.ntlm, token);
        } else {
            self.gssapi.deliver(cx, &mut self.logins, from, token);
        }
    }

    /// Delivers bytes that are written to or read from a pipe.
    pub(super) fn pipe(&mut self, cx: &mut Context<'_>, pipe: u64, from: Dir, data: &[u8]) {
        let limit = cx.env.setting("SMB::max_dce_rpc_analyzers", MAX_PIPES as u64);
        if !self.pipes.contains_key(&pipe) && limit > 0 && self.pipes.len() as u64 >= limit {
            self.pipes.clear();
            self.calls.clear();
            cx.raise(|c| SmbDiscardedDceRpcAnalyzers { c });
            cx.weird("SMB_discarded_dce_rpc_analyzers", "", Some("SMB"));
        }
        let stream = self.pipes.entry(pipe).or_insert_with(|| dce_rpc::Stream::nested(cx, pipe));
        stream.deliver(cx, &mut self.calls, &mut self.logins, from, data);
    }

    /// Closes a pipe.
    pub(super) fn close_pipe(&mut self, pipe: u64) {
        self.pipes.remove(&pipe);
        self.calls.close(pipe);
    }

    /// Suspends the analysis: drops the state that relates messages to each other, but not that of
    /// rows.
    pub(super) fn suspend(&mut self) {
        self.v1 = PendingRequests1::default();
        self.v2 = PendingRequests2::default();
        self.pipe_trees.clear();
        self.pipes.clear();
        self.gssapi = gssapi::Inner::default();
        self.ntlm = ntlm::Inner::default();
    }

    /// Ends the analysis of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.shares.finish(cx);
        self.calls.finish(cx);
        self.logins.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;

    use super::*;
    use crate::testing::Harness;

    #[test]
    fn names_of_scripts_are_those_of_pipes() {
        let guess = |names: Option<&[&[u8]]>, name: &[u8]| {
            let mut h = Harness::new(Proto::Tcp, 445);
            if let Some(names) = names {
                let names = names.iter().map(|name| name.to_vec()).collect();
                h.env.apply_command(h.now, gannet_event::Command::PipeNames(names));
            }
            let mut core = Core::new();
            core.detect_pipe(&mut h.cx(), 5, name);
            core.is_pipe(5)
        };
        assert_eq!([&b"samr"[..], b"own", b""].map(|name| guess(None, name)), [true, false, false]);
        let own: &[&[u8]] = &[b"own", b"winreg"];
        let names = [&b"samr"[..], b"own", b"winreg"];
        assert_eq!(names.map(|name| guess(Some(own), name)), [false, true, true]);
        assert!(!guess(Some(&[]), b"samr"));
    }
}
