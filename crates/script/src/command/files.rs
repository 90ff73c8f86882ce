//! Distinguishes scripts, captures and signature files among the arguments.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Magic numbers of captures: pcap in both byte orders and precisions, pcapng, and compressed files (zstd, xz, LZ4). No script
/// begins with them.
const CAPTURE_MAGIC: [[u8; 4]; 8] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0x28, 0xb5, 0x2f, 0xfd],
    [0xfd, b'7', b'z', b'X'],
    [0x04, 0x22, 0x4d, 0x18],
];

/// Whether a file is a capture and not a script, by its first four bytes.
pub(super) fn is_capture(file: &Path) -> bool {
    // A pipe can be read only once.
    if !file.is_file() {
        return false;
    }
    let mut magic = [0; 4];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && (CAPTURE_MAGIC.contains(&magic) || magic.starts_with(&[0x1f, 0x8b]))
}

/// Whether a file has signatures and not scripts, by its name.
pub(super) fn has_signatures(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "sig") && file.is_file()
}

/// Whether an argument that may be a script or a capture is a script: by its name; or because no such file exists and
/// another argument names the capture (`is_read`), as in `-r trace.pcap local`.
#[must_use]
pub fn is_script(path: &Path, is_read: bool) -> bool {
    let is_named = path.extension().is_some_and(|extension| extension == "zeek");
    let is_searched = is_read && path != Path::new("-") && !path.exists();
    (is_named || is_searched) && !is_capture(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_take_precedence_over_names() {
        let folder = std::env::temp_dir().join(format!("gannet-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let packed = [0x1f, 0x8b, 8, 0];
        let all = [
            (file("a.zeek", b"print 1;"), false, true),
            (file("b.zeek", &CAPTURE_MAGIC[1]), true, false),
            (file("c.pcap", &CAPTURE_MAGIC[4]), true, false),
            (file("d.pcap.gz", &packed), true, false),
            (file("e.sig", b"signature x { }"), false, false),
            (file("short", b"x"), false, false),
            (folder.clone(), false, false),
            (folder.join("none"), false, true),
        ];
        for (path, capture, script) in &all {
            let is = (is_capture(path), is_script(path, true));
            assert_eq!(is, (*capture, *script), "{}", path.display());
        }
        let signatures: Vec<_> = all.iter().filter(|(path, ..)| has_signatures(path)).collect();
        assert!(matches!(signatures[..], [(path, ..)] if path.ends_with("e.sig")));
        assert!(!is_script(&folder.join("none"), false) && !is_script(Path::new("-"), true));
        assert!(is_script(&folder.join("none.zeek"), false));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
