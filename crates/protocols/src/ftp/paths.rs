//! Where files are: paths as clients and servers write them.

use gannet_base::Addr;
use gannet_log::write_addr;

/// Bytes of the longest address.
const ADDRESS: usize = 46;

/// Whether a path stands for itself: it begins with a slash, or a drive letter, a colon and a
/// slash.
fn is_absolute(path: &[u8]) -> bool {
    let rooted = match path {
        [b'/', ..] => true,
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    };
    rooted && !path.contains(&b'\n')
}

/// The path of a file in a directory, without detours.
pub(super) fn join(dir: &[u8], file: &[u8]) -> Vec<u8> {
    if dir.is_empty() || is_absolute(file) {
        return normalize(&[file]);
    }
    normalize(&[dir, file])
}

/// A path without empty and `.` components, and with `..` resolved where something is there to
/// leave. A leading `.` stays. It is given in pieces, with a slash between them.
fn normalize(pieces: &[&[u8]]) -> Vec<u8> {
    let root = usize::from(pieces.first().is_some_and(|p| p.starts_with(b"/")));
    let mut path = Vec::with_capacity(pieces.iter().map(|p| p.len() + 1).sum());
    path.extend_from_slice(&b"/"[..root]);
    let parts = pieces.iter().flat_map(|p| p.split(|&b| b == b'/'));
    for (i, part) in parts.enumerate() {
        match part {
            b"" => continue,
            b"." if i > 0 => continue,
            b".." if path.len() > root => {
                let slash = memchr::memrchr(b'/', &path).filter(|at| *at >= root);
                let last = slash.map_or(root, |at| at + 1);
                match &path[last..] {
                    b"~" | b".." => {}
                    b"." => path.truncate(slash.unwrap_or(root)),
                    _ => {
                        path.truncate(slash.unwrap_or(root));
                        continue;
                    }
                }
            }
            _ => {}
        }
        if path.len() > root {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    path
}

/// The first absolute path in a reply; it ends at a quote or a space that no backslash precedes.
/// Empty when there is none.
pub(super) fn first_path(text: &[u8]) -> &[u8] {
    let start = |i: usize| match &text[i..] {
        [b'/', ..] => Some(1),
        [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic() => Some(3),
        _ => None,
    };
    let Some((from, len)) = (0..text.len()).find_map(|i| start(i).map(|len| (i, len))) else {
        return &[];
    };
    let mut to = from + len;
    loop {
        match &text[to..] {
            [b'\\', b' ', ..] => to += 2,
            [] | [b'"' | b' ', ..] => return &text[from..to],
            _ => to += 1,
        }
    }
}

/// The address of a file on a server.
pub(super) fn url(server: Addr, dir: &[u8], file: &[u8]) -> Vec<u8> {
    let path = join(dir, file);
    let mut url = Vec::with_capacity(b"ftp://[]/".len() + ADDRESS + path.len());
    url.extend_from_slice(if server.is_v4() { b"ftp://" } else { b"ftp://[" });
    write_addr(&mut url, server);
    url.extend_from_slice(if server.is_v4() { b"" } else { b"]" });
    if !path.starts_with(b"/") {
        url.push(b'/');
    }
    url.extend_from_slice(&path);
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn joining() {
        let join = |dir: &str, file: &str| {
            String::from_utf8_lossy(&join(dir.as_bytes(), file.as_bytes())).into_owned()
        };
        assert_eq!(join(".", "a/b"), "./a/b");
        assert_eq!(join("/x", "a"), "/x/a");
        assert_eq!(join("/x/", "../a"), "/a");
        assert_eq!(join("/x", "/.."), "/..");
        assert_eq!(join(".", ".."), "..");
        assert_eq!(join("..", ".."), "../..");
        assert_eq!(join("/x", "C:\\y"), "C:\\y");
        assert_eq!(join("/", ""), "/");
        assert_eq!(join("/a", "b//./c/"), "/a/b/c");
    }

    #[test]
    fn paths_in_replies() {
        assert_eq!(first_path(b"\"/a/b\" is the current directory"), b"/a/b");
        assert_eq!(first_path(b"at c:\\a\\ b c"), b"c:\\a\\ b");
        assert_eq!(first_path(b"none"), b"");
    }

    #[test]
    fn urls() {
        let v4 = Addr::v4([192, 0, 2, 1]);
        assert_eq!(url(v4, b".", b"a"), b"ftp://192.0.2.1/./a");
        assert_eq!(url(v4, b"/", b"a"), b"ftp://192.0.2.1/a");
        let mut six = [0; 16];
        six[15] = 1;
        assert_eq!(url(Addr::v6(six), b"/", b"a"), b"ftp://[::1]/a");
    }

    proptest! {
        #[test]
        fn normal_paths_stay(path in "[/.a~]{0,20}") {
            let once = normalize(&[path.as_bytes()]);
            prop_assert_eq!(normalize(&[&once]), once);
        }

        #[test]
        fn pieces_are_as_their_whole(a in "[/.a~]{1,9}", b in "[/.a~]{0,9}") {
            let pieces = normalize(&[a.as_bytes(), b.as_bytes()]);
            prop_assert_eq!(pieces, normalize(&[format!("{a}/{b}").as_bytes()]));
        }

        /// Component by component, with a list of those that are kept.
        #[test]
        fn as_a_list_of_components(path in "[/.a~]{0,20}") {
            let mut kept: Vec<&str> = Vec::new();
            for (i, part) in path.split('/').enumerate() {
                match (part, kept.last()) {
                    ("", _) => {}
                    (".", _) if i > 0 => {}
                    ("..", Some(&".")) => *kept.last_mut().unwrap() = part,
                    ("..", Some(last)) if !["~", ".."].contains(last) => drop(kept.pop()),
                    _ => kept.push(part),
                }
            }
            let root = if path.starts_with('/') { "/" } else { "" };
            prop_assert_eq!(normalize(&[path.as_bytes()]), (root.to_owned() + &kept.join("/")).into_bytes());
        }
    }
}
