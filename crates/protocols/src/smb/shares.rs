use std::collections::HashMap;

use gannet_base::Dir;
use gannet_base::Time;
use gannet_dict::KeyedHash;
use gannet_files::FileId;

use super::events::SmbData;
use super::events::SmbFileAction;
use super::events::SmbLastAction;
use super::events::SmbMapping;
use super::events::TransferredFile;
use super::files;
use super::info::Action;
use super::info::File;
use super::info::Pool;
use super::info::PoolIndex;
use super::info::Share;
use super::info::Text;
use super::info::Times;
use super::info::Tree;
use super::info::seconds;
use super::rows::Rows;
use crate::Context;
use crate::Tag;
use crate::support::limit_reached;

/// Maximum numbers of pending commands, open files and trees kept per connection.
const MAX_ENTRIES: usize = 1 << 16;
/// Create option: delete the file when it is closed.
const DELETE_ON_CLOSE: u32 = 0x1000;

/// A command, with its file and tree.
#[derive(Clone, Copy, Debug)]
struct Command {
    file: PoolIndex,
    tree: Option<PoolIndex>,
    options: u32,
}

type Map<K, V> = HashMap<K, V, KeyedHash>;

/// Trees, files and commands of one connection.
#[derive(Debug)]
pub(super) struct Shares {
    files: Pool<File>,
    trees: Pool<Tree>,
    by_file: Map<u64, PoolIndex>,
    by_tree: Map<u32, PoolIndex>,
    /// Commands that wait for a response, by message identifier.
    pending: Map<u64, Command>,
    /// The current command and its message.
    command: Option<(u64, Command)>,
    file: Option<PoolIndex>,
    tree: Option<PoolIndex>,
    /// The incomplete file whose contents began on this connection and may time out.
    transferred: Option<FileId>,
    /// Whether an action was performed since [`report_last_action`](Self::report_last_action) was last called.
    has_new_action: bool,
    /// A limit was exceeded and entries were dropped, which is not reported yet.
    overflowed: bool,
    rows: Rows,
}

impl Shares {
    pub(super) fn new() -> Self {
        Self {
            files: Pool::new(),
            trees: Pool::new(),
            by_file: Map::default(),
            by_tree: Map::default(),
            pending: Map::default(),
            command: None,
            file: None,
            tree: None,
            transferred: None,
            has_new_action: false,
            overflowed: false,
            rows: Rows::default(),
        }
    }

    /// Notes that data arrived.
    pub(super) fn tick(&mut self, cx: &mut Context<'_>) {
        cx.report(&mut self.rows, |c| SmbData { c });
    }

    /// Removes records without references.
    fn remove_unreferenced(&mut self) {
        if self.by_file.len() > MAX_ENTRIES {
            self.by_file.clear();
            self.overflowed = true;
        }
        if self.by_tree.len() > MAX_ENTRIES {
            self.by_tree.clear();
            self.overflowed = true;
        }
        if self.pending.len() > MAX_ENTRIES {
            self.pending.clear();
            self.overflowed = true;
        }
        let commands = || self.pending.values().chain(self.command.iter().map(|(_, c)| c));
        if self.files.is_full() {
            let used = commands().map(|c| c.file).chain(self.by_file.values().copied());
            self.files.retain(used.chain(self.file));
        }
        if self.trees.is_full() {
            let used = commands().filter_map(|c| c.tree).chain(self.by_tree.values().copied());
            self.trees.retain(used.chain(self.tree));
        }
    }

    /// Stores the state of the current command.
    fn store(&mut self) {
        if let Some((message, command)) = self.command
            && let Some(pending_command) = self.pending.get_mut(&message)
        {
            *pending_command = command;
        }
    }

    fn new_file(&mut self, now: Time) -> PoolIndex {
        self.files.add(File { ts: now, ..File::default() })
    }

    fn new_tree(&mut self, now: Time) -> PoolIndex {
        self.trees.add(Tree { ts: now, ..Tree::default() })
    }

    /// The current command; before the first message, a placeholder.
    fn command(&mut self, now: Time) -> &mut Command {
        let files = &mut self.files;
        let fresh = || {
            let file = files.add(File { ts: now, ..File::default() });
            (u64::MAX, Command { file, tree: None, options: 0 })
        };
        &mut self.command.get_or_insert_with(fresh).1
    }

    /// Begins a message of version 2. A response with STATUS_PENDING keeps its command pending.
    pub(super) fn v2(&mut self, now: Time, tree: u32, message: u64, from: Dir, is_pending: bool) {
        self.store();
        self.remove_unreferenced();
        let mut command = match self.pending.get(&message) {
            Some(command) => *command,
            None => Command { file: self.new_file(now), tree: None, options: 0 },
        };
        let at = if tree == 0 {
            self.new_tree(now)
        } else {
            match (command.tree, self.by_tree.get(&tree)) {
                (None, Some(at)) => *at,
                (at, _) => {
                    let at = at.unwrap_or_else(|| self.new_tree(now));
                    self.by_tree.insert(tree, at);
                    at
                }
            }
        };
        command.tree = Some(at);
        self.file = Some(command.file);
        self.has_new_action = true;
        self.tree = Some(at);
        self.command = Some((message, command));
        if from.is_orig() || is_pending {
            self.pending.insert(message, command);
        } else {
            self.pending.remove(&message);
        }
    }

    /// Begins a message of version 1.
    pub(super) fn v1(&mut self, now: Time, tree: u32, message: u64, from: Dir) {
        self.store();
        self.remove_unreferenced();
        let at = match self.by_tree.get(&tree) {
            Some(at) => *at,
            None => {
                let at = self.new_tree(now);
                self.by_tree.insert(tree, at);
                at
            }
        };
        self.tree = Some(at);
        let command = match self.pending.get(&message) {
            Some(command) => *command,
            None => Command { file: self.new_file(now), tree: Some(at), options: 0 },
        };
        self.command = Some((message, command));
        if from.is_orig() {
            self.pending.insert(message, command);
        } else {
            self.pending.remove(&message);
        }
    }

    /// Drops files and commands, because too many requests are pending in the analyzer. Returns the
    /// numbers of all entries before, as text.
    pub(super) fn discard(&mut self) -> String {
        let counts = format!(
            "fid_map={} tid_map={} pending_cmds={} pipe_map=0",
            self.by_file.len(),
            self.by_tree.len(),
            self.pending.len()
        );
        self.by_file.clear();
        self.pending.clear();
        counts
    }

    /// Notes that the current tree is a pipe share, according to the name of a file in it.
    pub(super) fn mark_as_pipe(&mut self) {
        if let Some(tree) = self.tree {
            let tree = self.trees.get(tree);
            tree.path = Some((*b"<unknown>").into());
            tree.share = Share::Pipe;
        }
    }

    fn share(&mut self) -> Share {
        self.tree.map_or(Share::Disk, |t| self.trees.get(t).share)
    }

    fn tree_path(&mut self) -> Option<Text> {
        self.tree.and_then(|t| self.trees.get(t).path.clone())
    }

    /// Makes the file with this number the current one.
    pub(super) fn set_file(&mut self, now: Time, number: u64) -> &mut File {
        let unnamed = self.command(now).file;
        let at = *self.by_file.entry(number).or_insert(unnamed);
        self.command(now).file = at;
        self.file = Some(at);
        self.has_new_action = true;
        self.files.get(at)
    }

    /// Notes an action on a file.
    pub(super) fn act(&mut self, cx: &mut Context<'_>, number: u64, action: Action) {
        let share = self.share();
        self.set_file(cx.now, number).action = Some((action, action.logged(share)));
        self.report(cx);
    }

    /// Like [`act`](Self::act) in version 1, where every share counts as a disk.
    pub(super) fn act_v1(&mut self, cx: &mut Context<'_>, number: u64, action: Action) {
        let path = self.tree_path();
        let file = self.set_file(cx.now, number);
        file.action = Some((action, action.logged(Share::Disk)));
        if file.path.is_none() {
            file.path = path;
        }
    }

    /// Version 2: a tree connect request.
    pub(super) fn connect(&mut self, path: Vec<u8>) {
        if let Some(tree) = self.tree {
            self.trees.get(tree).path = Some(path.into());
        }
    }

    /// Version 2: a tree connect response.
    pub(super) fn connected(&mut self, cx: &mut Context<'_>, share: Share) {
        if let Some(tree) = self.tree {
            let tree = self.trees.get(tree);
            tree.share = share;
            report_tree(cx, &mut self.rows, tree);
        }
    }

    /// Version 1: a tree connect request.
    pub(super) fn connect_v1(&mut self, now: Time, path: Vec<u8>, service: Vec<u8>) {
        let tree = Tree {
            ts: now,
            path: Some(path.into()),
            service: Some(service.into()),
            ..Tree::default()
        };
        let tree = self.trees.add(tree);
        self.command(now).tree = Some(tree);
    }

    /// Version 1: a tree connect response.
    pub(super) fn connected_v1(
        &mut self,
        cx: &mut Context<'_>,
        number: u32,
        service: Vec<u8>,
        file_system: Vec<u8>,
    ) {
        let Some(at) = self.command(cx.now).tree else { return };
        let tree = self.trees.get(at);
        if service == b"IPC" {
            tree.share = Share::Pipe;
        }
        tree.service = Some(service.into());
        if !file_system.is_empty() {
            tree.file_system = Some(file_system.into());
        }
        report_tree(cx, &mut self.rows, tree);
        self.tree = Some(at);
        self.by_tree.insert(number, at);
    }

    /// A tree disconnect.
    pub(super) fn disconnect(&mut self, number: u32) {
        if self.by_tree.remove(&number).is_some() {
            self.tree = None;
            if let Some((_, command)) = &mut self.command {
                command.tree = None;
            }
        }
    }

    /// Version 2: a create request.
    pub(super) fn create(&mut self, now: Time, name: Vec<u8>, options: u32) {
        let name = if name.is_empty() { b"<share_root>".to_vec() } else { name };
        let share = self.share();
        self.command(now).options = options;
        if let Some(file) = self.file {
            let file = self.files.get(file);
            file.name = Some(name.into());
            file.action = Some((Action::Open, Action::Open.logged(share)));
        }
    }

    /// Version 2: a create response.
    pub(super) fn created(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        size: u64,
        times: Times,
        is_success: bool,
    ) {
        let path = self.tree_path();
        let file = self.set_file(cx.now, number);
        file.size = size;
        if path.is_some() {
            file.path = path;
        }
        if is_set(times.modified) {
            file.times = Some(times);
        }
        self.report(cx);
        if is_success && self.command(cx.now).options & DELETE_ON_CLOSE != 0 {
            self.act(cx, number, Action::Delete);
        }
    }

    /// Version 1: a create request.
    pub(super) fn create_v1(&mut self, now: Time, name: Vec<u8>) {
        let file = self.files.add(File {
            ts: now,
            name: Some(name.into()),
            action: Some((Action::Open, Action::Open.logged(Share::Disk))),
            ..File::default()
        });
        self.command(now).file = file;
        self.file = Some(file);
        self.has_new_action = true;
    }

    /// Version 1: a create response.
    pub(super) fn created_v1(
        &mut self,
        cx: &mut Context<'_>,
        number: u64,
        size: u64,
        times: Times,
    ) {
        let at = self.command(cx.now).file;
        let file = self.files.get(at);
        file.action = Some((Action::Open, Action::Open.logged(Share::Disk)));
        file.size = size;
        if is_set(times.modified) {
            file.times = Some(times);
        }
        self.by_file.insert(number, at);
        self.file = Some(at);
        self.has_new_action = true;
        self.report(cx);
    }

    /// A file is renamed.
    pub(super) fn rename(&mut self, cx: &mut Context<'_>, number: u64, name: Vec<u8>) {
        let file = self.set_file(cx.now, number);
        if file.name.is_some() {
            file.previous = file.name.take();
        }
        file.name = Some(name.into());
        self.act(cx, number, Action::Rename);
    }

    /// A file is marked for deletion, or the mark is removed.
    pub(super) fn delete(&mut self, cx: &mut Context<'_>, number: u64, is_wanted: bool) {
        if is_wanted {
            self.act(cx, number, Action::Delete);
        } else {
            self.set_file(cx.now, number);
            self.report(cx);
        }
    }

    /// A file is closed.
    pub(super) fn close(&mut self, cx: &mut Context<'_>, number: u64, share: Option<Share>) {
        let share = share.unwrap_or_else(|| self.share());
        let path = self.tree_path();
        let file = self.set_file(cx.now, number);
        file.action = Some((Action::Close, Action::Close.logged(share)));
        if path.is_some() {
            file.path = path;
        }
        self.by_file.remove(&number);
        self.report(cx);
        if let Some(file) = self.file
            && files::end(cx, self.files.get(file))
        {
            // Zeek also logs this action when the file's contents end.
            self.report(cx);
        }
    }

    /// Delivers a part of the contents of the current file.
    pub(super) fn data(&mut self, cx: &mut Context<'_>, from: Dir, offset: u64, data: &[u8]) {
        let Some(at) = self.file else {
            return cx.raise_handle_without_file(Tag::Smb, from);
        };
        let file = self.files.get(at);
        if let Some((fuid, new_transfer)) = files::data(cx, file, from, offset, data) {
            let uid = cx.conn.uid;
            let lasts = self.transferred.is_some_and(|id| cx.env.files.is_carried_by(id, uid));
            self.transferred =
                self.transferred.filter(|_| lasts).or(new_transfer).or(self.transferred);
            self.has_new_action = true;
            file.fuid = Some(fuid);
            self.report(cx);
        }
    }

    /// Reports the action on the current file, if it is logged.
    fn report(&mut self, cx: &mut Context<'_>) {
        let Some(at) = self.file else { return };
        let file = &*self.files.get(at);
        if file.logged_action().is_some() {
            cx.report(&mut self.rows, |c| SmbFileAction { c, file });
        }
    }

    /// Called after each chunk. Reports the last action, if contents that began on this connection
    /// may time out.
    pub(super) fn report_last_action(&mut self, cx: &mut Context<'_>) {
        if std::mem::take(&mut self.overflowed) {
            let limit = MAX_ENTRIES.to_string();
            limit_reached(cx, "SMB_discarded_files_state", &limit, Some("SMB"));
        }
        let Some(transferred) =
            self.transferred.filter(|_| std::mem::take(&mut self.has_new_action))
        else {
            return;
        };
        let file = self.file.map(|at| &*self.files.get(at));
        let file = file.filter(|f| f.logged_action().is_some());
        cx.report(&mut self.rows, |c| SmbLastAction {
            c,
            file,
            transferred: TransferredFile(transferred),
        });
    }

    /// Writes pending rows at the end of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.rows.finish(cx);
    }
}

fn report_tree(cx: &mut Context<'_>, rows: &mut Rows, tree: &Tree) {
    cx.report(rows, |c| SmbMapping {
        c,
        ts: tree.ts,
        path: tree.path.as_deref(),
        service: tree.service.as_deref(),
        native_file_system: tree.file_system.as_deref(),
        share: tree.share,
    });
}

/// Whether a time is after 1970; those of pipes are not.
fn is_set(filetime: u64) -> bool {
    seconds(filetime) > 0.0
}
