//! Contents of files, which several connections may carry.

use std::collections::HashMap;

use gannet_base::Dir;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_files::FileId;
use gannet_files::FileStart;
use gannet_files::era;

use super::info::File;
use crate::Context;
use crate::Env;

/// What all connections of a shard share for SMB: files in transit, by client, server, share, name
/// and time of the last change.
#[derive(Debug, Default)]
pub struct Shared {
    files: HashMap<Box<[u8]>, FileId, KeyedHash>,
    swept: Time,
}

impl Shared {
    /// Forgets files that have ended.
    fn sweep(env: &mut Env, now: Time) {
        if era(env.smb.swept) == era(now) {
            return;
        }
        env.smb.swept = now;
        let mut files = std::mem::take(&mut env.smb.files);
        files.retain(|_, id| {
            let over = env.files.is_forgotten(*id, now);
            if over {
                env.files.end(&mut env.logs, now, *id);
            }
            !over
        });
        env.smb.files = files;
    }
}

/// What makes a file the same one; `None` if too little is known of it.
fn key(cx: &Context<'_>, file: &File) -> Option<Box<[u8]>> {
    if file.name.is_none() && file.path.is_none() {
        return None;
    }
    let id = cx.conn.id;
    let modified = file.times.map_or(0, |t| t.modified);
    let path = file.path.as_deref().unwrap_or_default();
    let name = file.name.as_deref().unwrap_or_default();
    let ends = [id.orig_h.octets(), id.resp_h.octets()];
    let key = [ends.as_flattened(), &modified.to_be_bytes(), path, b"\0", name].concat();
    Some(key.into())
}

/// A part of a file. Returns its name in the logs if it is new to the connection.
pub(super) fn data(
    cx: &mut Context<'_>,
    file: &File,
    from: Dir,
    offset: u64,
    data: &[u8],
) -> Option<Uid> {
    Shared::sweep(cx.env, cx.now);
    let key = key(cx, file)?;
    let (uid, conn, now) = (cx.conn.uid, cx.conn.id, cx.now);
    let known = cx.env.smb.files.get(&key).copied();
    let (id, is_new) = match known {
        Some(id) if !cx.env.files.is_over(id) => (id, cx.env.files.join(id, uid, conn)),
        _ => {
            if let Some(id) = known {
                cx.file_end(id);
            }
            let id = cx.file_start(FileStart {
                source: "SMB",
                from,
                depth: 0,
                filename: None,
                total_bytes: None,
                parent: None,
                mime_type: None,
            });
            // However often it is opened, it has one name until it changes.
            let fuid = cx.env.uids.named_file(&key);
            cx.env.files.set_fuid(id, fuid);
            cx.env.smb.files.insert(key, id);
            (id, true)
        }
    };
    let env = &mut *cx.env;
    if is_new {
        if file.size > 0 {
            env.files.set_total(id, file.size);
        }
        if let Some(name) = &file.name {
            env.files.set_filename(id, name);
        }
    }
    let fuid = env.files.fuid(id).filter(|_| is_new);
    env.files.data_at(&mut env.logs, now, id, offset, data);
    fuid
}

/// A file is closed.
pub(super) fn end(cx: &mut Context<'_>, file: &File) {
    if let Some(key) = key(cx, file)
        && let Some(id) = cx.env.smb.files.remove(&key)
    {
        cx.file_end(id);
    }
}
