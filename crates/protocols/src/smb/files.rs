//! Contents of files, which several connections may transfer.

use std::hash::BuildHasher;

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
use crate::Tag;

/// Removes files that have ended.
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
    env.smb.rows.sweep(&env.files);
}

/// Maximum stored length of a key, in bytes. Paths may be much longer, and a short message can
/// cause another one to be stored.
const MAX_KEY: usize = 512;
/// Maximum stored length of a file's name, in bytes: more than logs show.
const MAX_NAME: usize = 8192;

/// The stored form of a key: of a long one, its beginning and a hash.
fn stored_key(mut key: Vec<u8>) -> Box<[u8]> {
    if key.len() > MAX_KEY {
        let digest = KeyedHash.hash_one(&key[..]);
        key.truncate(MAX_KEY);
        key.extend(digest.to_be_bytes());
    }
    key.into()
}

/// Key that identifies a file; `None` if too little is known of it.
fn key(cx: &Context<'_>, file: &File) -> Option<Vec<u8>> {
    if file.name.is_none() && file.path.is_none() {
        return None;
    }
    let id = cx.conn.id;
    let modified = file.times.map_or(0, |t| t.modified);
    let path = file.path.as_deref().unwrap_or_default();
    let name = file.name.as_deref().unwrap_or_default();
    let ends = [id.orig_h.octets(), id.resp_h.octets()];
    Some([ends.as_flattened(), &modified.to_be_bytes(), path, b"\0", name].concat())
}

/// Delivers a part of a file. Returns its identifier if it is new to the connection, and its
/// [`FileId`] if its contents began there.
pub(super) fn data(
    cx: &mut Context<'_>,
    file: &File,
    from: Dir,
    offset: u64,
    data: &[u8],
) -> Option<(Uid, Option<FileId>)> {
    sweep(cx.env, cx.now);
    let Some(full_key) = key(cx, file) else {
        cx.raise_handle_without_file(Tag::Smb, from);
        return None;
    };
    let long = (full_key.len() > MAX_KEY).then(|| full_key.clone());
    let key = stored_key(full_key);
    let (uid, conn, now) = (cx.conn.uid, cx.conn.id, cx.now);
    let known = cx.env.smb.files.get(&key).copied();
    let (id, is_new, started_here) = match known {
        Some(id) if !cx.env.files.is_over(id) => {
            cx.raise_handle_without_file(Tag::Smb, from);
            (id, cx.env.files.join(&mut cx.env.logs, cx.now, id, uid, conn), None)
        }
        _ => {
            if let Some(id) = known {
                cx.file_end(id);
            }
            // The file keeps its identifier, however often it is opened, until it changes.
            let fuid = cx.env.uids.named_file(long.as_deref().unwrap_or(&key));
            cx.env.files.set_next_fuid(fuid);
            let id = cx.file_start(FileStart { source: "SMB", from, ..FileStart::default() });
            cx.env.files.watch(id);
            cx.env.smb.files.insert(key, id);
            (id, true, Some(id))
        }
    };
    cx.resume_file(id);
    let env = &mut *cx.env;
    if is_new {
        if file.size > 0 {
            env.files.set_total(id, file.size);
        }
        if let Some(name) = &file.name {
            env.files.set_filename(id, &name[..name.len().min(MAX_NAME)]);
        }
    }
    let fuid = env.files.fuid(id).filter(|_| is_new);
    env.files.data_at(&mut env.logs, now, id, offset, data);
    fuid.map(|fuid| (fuid, started_here))
}

/// Ends the contents of a file that is closed. Returns whether they began on this connection.
pub(super) fn end(cx: &mut Context<'_>, file: &File) -> bool {
    let Some(id) = key(cx, file).and_then(|key| cx.env.smb.files.remove(&stored_key(key))) else {
        return false;
    };
    let ends = cx.env.files.is_carried_by(id, cx.conn.uid);
    cx.file_end(id);
    ends
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;

    use super::*;
    use crate::testing::Harness;

    #[test]
    fn long_keys_are_kept_short() {
        let key = |len, last: u8| [&vec![b'a'; len][..], &[last]].concat();
        assert_eq!(*stored_key(key(MAX_KEY - 1, b'x')), key(MAX_KEY - 1, b'x'));
        assert_eq!(stored_key(key(60_000, b'x')).len(), MAX_KEY + 8);
        assert_eq!(stored_key(key(60_000, b'x')), stored_key(key(60_000, b'x')));
        assert_ne!(stored_key(key(60_000, b'x')), stored_key(key(60_000, b'y')));
    }

    #[test]
    fn scripts_are_asked_for_the_file_of_each_part() {
        let mut h = Harness::new(Proto::Tcp, 445);
        h.listen("get_file_handle");
        let named = File { name: Some((*b"a").into()), ..File::default() };
        for file in [&named, &named, &File::default()] {
            data(&mut h.cx(), file, Dir::Orig, 0, b"x");
        }
        assert_eq!(h.events().len(), 3);
    }

    /// A client that wrote repeatedly to a file with a long path, which changed in between, had
    /// each path stored.
    #[test]
    fn files_with_long_paths_cost_little() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let long = || Some(vec![b'a'; 60_000].into());
        let times =
            |modified| super::super::info::Times { created: 0, accessed: 0, modified, changed: 0 };
        for n in 0..100 {
            let file =
                File { path: long(), name: long(), times: Some(times(n)), ..File::default() };
            assert!(data(&mut h.cx(), &file, Dir::Orig, 0, b"x").is_some(), "a new one");
            assert!(data(&mut h.cx(), &file, Dir::Orig, 1, b"x").is_none(), "the same");
        }
        assert_eq!(h.env.smb.files.len(), 100);
        assert!(h.env.smb.files.keys().all(|k| k.len() <= MAX_KEY + 8));
    }
}
