//! Archives, compressed data, and documents that are archives.

use super::Step::{Any, Gap, Lit, OneOf, Run};
use super::{MANY, Signature, Step};

const fn sig(strength: i16, mime: &'static str, steps: &'static [Step]) -> Signature {
    Signature::new(strength, mime, steps)
}

/// An archive whose first entry, stored, is called `mimetype` and contains the type.
macro_rules! says {
    ($strength:literal, $mime:literal, $($step:expr),+) => {
        sig($strength, $mime, &[Lit(b"PK\x03\x04"), Any(22), Lit(b"\x08\0\0\0mimetypeapplication/"), $($step),+])
    };
}

/// An archive as written by office programs: the folder of the document is not the first entry.
macro_rules! office {
    ($mime:literal, $folder:literal) => {
        sig(
            80,
            $mime,
            &[
                Lit(b"PK\x03\x04"),
                Any(26),
                OneOf(&[b"[Content_Types].xml", b"_rels/.rels", $folder]),
                Gap(0, MANY),
                Lit(b"PK\x03\x04"),
                Any(26),
                Lit($folder),
            ],
        )
    };
}

/// Any byte except a dash, with which `-template` and similar types continue.
const NO_DASH: Step = Run(|b| b != b'-', 1, 1);

const fn digit_or_space(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b' '
}

/// Signatures of this module.
#[rustfmt::skip]
pub(super) const SIGNATURES: &[Signature] = &[
    // Name, then mode, owner and group, then size and time, then checksum, then kind.
    sig(100, "application/x-tar", &[Run(|b| matches!(b, 0 | 0x20..=0x7e), 100, 100), Run(digit_or_space, 7, 7), Lit(b"\0"),
        Run(digit_or_space, 7, 7), Lit(b"\0"), Run(digit_or_space, 7, 7), Lit(b"\0"), Run(digit_or_space, 11, 11), Lit(b"\0"),
        Run(digit_or_space, 11, 11), Lit(b"\0"), Run(|b| b == 0 || digit_or_space(b), 7, 7), Run(|b| b == b' ' || b == 0, 1, 1),
        Run(|b| matches!(b, 0 | b'0'..=b'7'), 1, 1)]),
    sig(10, "application/zip", &[Lit(b"PK\x03\x04"), Any(2)]),
    sig(10, "application/zip", &[Lit(b"PK\x07\x08PK\x03\x04")]),
    sig(340, "application/zip", &[Lit(b"MZ"), Any(28), OneOf(&[b"Copyright 1989-1990 PKWARE Inc.", b"PKLITE Copr."])]),
    sig(70, "application/x-rar", &[Lit(b"Rar!")]),
    sig(100, "application/x-gzip", &[Lit(b"\x1f\x8b")]),
    sig(110, "application/vnd.ms-cab-compressed", &[Lit(b"MSCF\0\0\0\0")]),
    sig(100, "application/x-dmg", &[OneOf(&[b"\x78\x01\x73\x0d\x62\x62\x60", b"\x78\xda\x63\x60\x18\x05", b"\x78\x01\x63\x60\x18\x05", b"\x78\xda\x73\x0d"])]),
    sig(100, "application/x-dmg", &[Lit(b"\x78"), Run(|b| b == 0x01 || b == 0xda, 1, 1), Lit(b"\xed"), Run(|b| matches!(b, 0xd0..=0xd9), 1, 1)]),
    sig(100, "application/x-xar", &[Lit(b"xar!")]),
    sig(70, "application/x-rpm", &[OneOf(&[b"drpm", b"\xed\xab\xee\xdb"])]),
    sig(171, "application/x-debian-package", &[Lit(b"!<arch>\ndebian")]),
    sig(70, "application/x-stuffit", &[OneOf(&[b"SIT!", b"StuffIt"])]),
    sig(70, "application/x-archive", &[OneOf(&[b"!<ar>", b"!<arch>", b"<ar>", b"<arch>"])]),
    sig(70, "application/x-arc", &[Run(|b| b <= 0x7f, 2, 2), Run(|b| matches!(b, 0x02..=0x0a | 0x14 | 0x48), 1, 1), Lit(b"\x1a")]),
    sig(70, "application/x-eet", &[Lit(b"\x1e\xe7\xff\0")]),
    sig(70, "application/x-zoo", &[Any(20), Lit(b"\xdc\xa7\xc4\xfd")]),
    sig(70, "application/x-lz4", &[OneOf(&[b"\x02\x21\x4c\x18", b"\x04\x22\x4d\x18"])]),
    sig(1, "application/x-lrzip", &[Lit(b"LRZI")]),
    sig(70, "application/x-lzip", &[Lit(b"LZIP")]),
    sig(80, "application/x-lzh", &[Any(2), Lit(b"-lh"), Run(|b| matches!(b, b' ' | b'a'..=b'e' | b'x' | b'0'..=b'9'), 1, 1), Lit(b"-")]),
    sig(80, "application/x-lzh", &[Any(2), Lit(b"-lz"), Run(|b| matches!(b, b's' | b'2'..=b'8'), 1, 1), Lit(b"-")]),
    sig(80, "application/x-lzh", &[Any(2), OneOf(&[b"-pms-", b"-pm0-", b"-pm1-", b"-pm2-", b"-pc1-"])]),
    sig(120, "application/x-lha", &[Lit(b"MZ"), Any(34), OneOf(&[b"LHa's SFX", b"LHA's SFX"])]),
    sig(50, "application/warc", &[Lit(b"WARC/")]),
    sig(50, "application/x-7z-compressed", &[Lit(b"7z\xbc\xaf\x27\x1c")]),
    sig(90, "application/x-xz", &[Lit(b"\xfd7zXZ\0")]),
    sig(50, "application/x-arj", &[Lit(b"\x60\xea")]),
    sig(50, "application/x-cpio", &[OneOf(&[b"\x71\xc7", b"\xc7\x71"])]),
    sig(50, "application/x-compress", &[Lit(b"\x1f\x9d")]),
    sig(71, "application/x-lzma", &[Lit(b"\x5d\0\0")]),
    sig(100, "application/x-ace", &[Any(7), Lit(b"**ACE**")]),
    sig(60, "application/x-bzip2", &[Lit(b"BZh")]),

    // Document and program formats that are archives.
    sig(100, "application/java-archive", &[Lit(b"PK\x03\x04"), Gap(1, 200), Lit(b"\x14\0"), Any(2), Lit(b"META-INF/MANIFEST.MF")]),
    sig(100, "application/vnd.google-earth.kmz", &[Lit(b"PK\x03\x04\x14"), Any(25), Lit(b"doc.kml")]),
    sig(50, "application/vnd.openxmlformats-officedocument", &[Lit(b"PK\x03\x04\x14\0\x06\0")]),
    office!("application/vnd.openxmlformats-officedocument.wordprocessingml.document", b"word/"),
    office!("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", b"xl/"),
    office!("application/vnd.openxmlformats-officedocument.presentationml.presentation", b"ppt/"),
    says!(110, "application/epub+zip", Lit(b"epub+zip")),
    says!(110, "application/vnd.oasis.opendocument.text", Lit(b"vnd.oasis.opendocument.text"), NO_DASH),
    says!(120, "application/vnd.oasis.opendocument.text-template", Lit(b"vnd.oasis.opendocument.text-template")),
    says!(70, "application/vnd.oasis.opendocument.text-web", Lit(b"vnd.oasis.opendocument.text-web")),
    says!(100, "application/vnd.oasis.opendocument.text-master", Lit(b"vnd.oasis.opendocument.text-master")),
    says!(110, "application/vnd.oasis.opendocument.graphics", Lit(b"vnd.oasis.opendocument.graphics"), NO_DASH),
    says!(120, "application/vnd.oasis.opendocument.graphics-template", Lit(b"vnd.oasis.opendocument.graphics-template")),
    says!(110, "application/vnd.oasis.opendocument.presentation", Lit(b"vnd.oasis.opendocument.presentation"), NO_DASH),
    says!(120, "application/vnd.oasis.opendocument.presentation-template", Lit(b"vnd.oasis.opendocument.presentation-template")),
    says!(110, "application/vnd.oasis.opendocument.spreadsheet", Lit(b"vnd.oasis.opendocument.spreadsheet"), NO_DASH),
    says!(120, "application/vnd.oasis.opendocument.spreadsheet-template", Lit(b"vnd.oasis.opendocument.spreadsheet-template")),
    says!(110, "application/vnd.oasis.opendocument.chart", Lit(b"vnd.oasis.opendocument.chart"), NO_DASH),
    says!(120, "application/vnd.oasis.opendocument.chart-template", Lit(b"vnd.oasis.opendocument.chart-template")),
    says!(110, "application/vnd.oasis.opendocument.formula", Lit(b"vnd.oasis.opendocument.formula"), NO_DASH),
    says!(120, "application/vnd.oasis.opendocument.formula-template", Lit(b"vnd.oasis.opendocument.formula-template")),
    says!(110, "application/vnd.oasis.opendocument.database", Lit(b"vnd.oasis.opendocument.database")),
    says!(110, "application/vnd.oasis.opendocument.image", Lit(b"vnd.oasis.opendocument.image"), NO_DASH),
    says!(120, "application/vnd.oasis.opendocument.image-template", Lit(b"vnd.oasis.opendocument.image-template")),
];

#[cfg(test)]
mod tests {
    use crate::sniff::mime_type;

    #[test]
    fn archives() {
        assert_eq!(mime_type(b"PK\x03\x04\x0a\0\0\0"), Some("application/zip"));
        assert_eq!(
            mime_type(b"PK\x03\x04\x14\0\x06\0\x08\0"),
            Some("application/vnd.openxmlformats-officedocument")
        );
        assert_eq!(mime_type(b"\x1f\x8b\x08\0"), Some("application/x-gzip"));
        assert_eq!(mime_type(b"!<arch>\ndebian-binary"), Some("application/x-debian-package"));
        assert_eq!(mime_type(b"\0\0-lh5-"), Some("application/x-lzh"));
    }

    #[test]
    fn tar_header() {
        let mut header = vec![0u8; 512];
        header[..4].copy_from_slice(b"file");
        for (at, field) in [
            (100, "0000644"),
            (108, "0001750"),
            (116, "0001750"),
            (124, "00000001234"),
            (136, "14567654321"),
            (148, "012345"),
        ] {
            header[at..at + field.len()].copy_from_slice(field.as_bytes());
        }
        header[155..157].copy_from_slice(b" 0");
        assert_eq!(mime_type(&header), Some("application/x-tar"));
    }

    #[test]
    fn office_documents() {
        let mut docx = b"PK\x03\x04\x14\0\x06\0".to_vec();
        docx.resize(30, 0);
        docx.extend(b"[Content_Types].xmlPK\x03\x04 PK\x03\x04");
        docx.extend([0; 26]);
        docx.extend(b"word/document.xml");
        assert_eq!(
            mime_type(&docx),
            Some("application/vnd.openxmlformats-officedocument.wordprocessingml.document")
        );
        let mut odt = b"PK\x03\x04".to_vec();
        odt.extend([0; 22]);
        odt.extend(b"\x08\0\0\0mimetypeapplication/vnd.oasis.opendocument.text");
        assert_eq!(mime_type(&odt), Some("application/zip"));
        odt.extend(b"PK");
        assert_eq!(mime_type(&odt), Some("application/vnd.oasis.opendocument.text"));
    }
}
