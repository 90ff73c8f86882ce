//! Paths of files as clients and servers write them, and URLs of files.

use gannet_base::Addr;
use gannet_log::write_addr;

/// Maximum length of an IP address as text, in bytes.
const MAX_ADDRESS_LEN: usize = 46;

/// Whether a path is absolute: it begins with a slash, or with a drive letter, a colon and a slash.
fn is_absolute(path: &[u8]) -> bool {
    let rooted = match path {
        [b'/', ..] => true,
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    };
    rooted && !path.contains(&b'\n')
}

/// Appends the normalized path of a file in a directory.
pub(super) fn join(out: &mut Vec<u8>, dir: &[u8], file: &[u8]) {
    if dir.is_empty() || is_absolute(file) {
        return normalize(out, &[file]);
    }
    normalize(out, &[dir, file]);
}

/// Appends a normalized path: without empty and `.` components, and with `..` resolved where possible. A
/// leading `.` stays. The pieces of the path are joined by slashes.
fn normalize(path: &mut Vec<u8>, pieces: &[&[u8]]) {
    path.reserve(pieces.iter().map(|p| p.len() + 1).sum());
    let rooted = pieces.first().is_some_and(|p| p.starts_with(b"/"));
    if rooted {
        path.push(b'/');
    }
    // Offset of the first component.
    let root = path.len();
    for (i, piece) in pieces.iter().enumerate() {
        let piece = match piece {
            [b'/', rest @ ..] if i == 0 => rest,
            [b'.', rest @ ..] if i == 0 && matches!(rest, [] | [b'/', ..]) => {
                path.push(b'.');
                rest.get(1..).unwrap_or_default()
            }
            _ => piece,
        };
        if is_plain(piece) {
            add(path, root, piece);
        } else {
            piece.split(|&b| b == b'/').for_each(|part| resolve(path, root, part));
        }
    }
}

/// Whether no component of a piece is empty or begins with a dot, so that the piece is already normalized.
fn is_plain(piece: &[u8]) -> bool {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const SLASHES: u64 = LOW * b'/' as u64;
    let is_special_pair = |w: &[u8]| w[0] == b'/' && w[1] | 1 == b'/';
    // Dot (0x2e) and slash (0x2f) differ only in the lowest bit. A byte of `marks` is zero where a slash precedes a dot or
    // a slash.
    let is_special_word = |a: u64, b: u64| {
        let marks = (a ^ SLASHES) | ((b | LOW) ^ SLASHES);
        marks.wrapping_sub(LOW) & !marks & (LOW << 7) != 0
    };
    let [first, .., last] = piece else { return !matches!(piece, [] | [b'.' | b'/']) };
    if matches!(first, b'.' | b'/') || *last == b'/' {
        return false;
    }
    let (words, rest) = piece[..piece.len() - 1].as_chunks::<8>();
    let next = piece[1..].as_chunks::<8>().0;
    let word = |c: &[u8; 8]| u64::from_le_bytes(*c);
    let is_special = words.iter().zip(next).any(|(a, b)| is_special_word(word(a), word(b)));
    !is_special && !piece[piece.len() - 1 - rest.len()..].windows(2).any(is_special_pair)
}

/// Appends one or more components to the path whose components begin at offset `root`.
fn add(path: &mut Vec<u8>, root: usize, part: &[u8]) {
    if path.len() > root {
        path.push(b'/');
    }
    path.extend_from_slice(part);
}

/// Appends a component: ignores an empty one and `.`, and resolves `..` if possible.
fn resolve(path: &mut Vec<u8>, root: usize, part: &[u8]) {
    match part {
        b"" | b"." => return,
        b".." if path.len() > root => {
            let slash = memchr::memrchr(b'/', &path[root..]).map(|at| root + at);
            let last = slash.map_or(root, |at| at + 1);
            match &path[last..] {
                b"~" | b".." => {}
                b"." => path.truncate(slash.unwrap_or(root)),
                _ => return path.truncate(slash.unwrap_or(root)),
            }
        }
        _ => {}
    }
    add(path, root, part);
}

/// Returns the first absolute path in a reply, up to a quote or an unescaped space; empty if the reply has none.
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

/// Maximum length of the URL of a file without its directory and its name, in bytes.
pub(super) const MAX_URL_PREFIX: usize = b"ftp://[]//".len() + MAX_ADDRESS_LEN;

/// Appends the URL of a file on a server.
pub(super) fn url(out: &mut Vec<u8>, server: Addr, dir: &[u8], file: &[u8]) {
    out.reserve(MAX_URL_PREFIX + dir.len() + file.len());
    out.extend_from_slice(if server.is_v4() { b"ftp://" } else { b"ftp://[" });
    write_addr(out, server);
    out.extend_from_slice(if server.is_v4() { b"" } else { b"]" });
    let at = out.len();
    join(out, dir, file);
    if out.get(at) != Some(&b'/') {
        out.insert(at, b'/');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn joining() {
        let join = |dir: &str, file: &str| {
            let mut path = Vec::new();
            join(&mut path, dir.as_bytes(), file.as_bytes());
            String::from_utf8_lossy(&path).into_owned()
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
        let url = |server, dir: &[u8], file: &[u8]| {
            let mut url = Vec::new();
            super::url(&mut url, server, dir, file);
            assert!(url.len() <= MAX_URL_PREFIX + dir.len() + file.len());
            url
        };
        let v4 = Addr::v4([192, 0, 2, 1]);
        assert_eq!(url(v4, b".", b"a"), b"ftp://192.0.2.1/./a");
        assert_eq!(url(v4, b"/", b"a"), b"ftp://192.0.2.1/a");
        let mut six = [0; 16];
        six[15] = 1;
        assert_eq!(url(Addr::v6(six), b"/", b"a"), b"ftp://[::1]/a");
    }

    fn normalize(pieces: &[&[u8]]) -> Vec<u8> {
        // The text before it is not part of the path.
        let mut path = b"a/..".to_vec();
        super::normalize(&mut path, pieces);
        path.split_off(4)
    }

    proptest! {
        #[test]
        fn normalization_is_idempotent(path in "[/.a~]{0,20}") {
            let once = normalize(&[path.as_bytes()]);
            prop_assert_eq!(normalize(&[&once]), once);
        }

        #[test]
        fn joining_pieces_equals_normalizing_the_whole(a in "[/.a~]{1,9}", b in "[/.a~]{0,9}") {
            let pieces = normalize(&[a.as_bytes(), b.as_bytes()]);
            prop_assert_eq!(pieces, normalize(&[format!("{a}/{b}").as_bytes()]));
        }

        /// Compares with a reference implementation on a list of components.
        #[test]
        fn as_a_list_of_components(path in "([/.a~]|abcdefg|/abcdefgh){0,20}") {
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
