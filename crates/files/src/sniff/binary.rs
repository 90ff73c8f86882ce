//! Programs, fonts, databases and other binary files.

use super::Step::{Any, Gap, Lit, OneOf, Run};
use super::{MANY, Signature};

const fn sig(strength: i16, mime: &'static str, steps: &'static [super::Step]) -> Signature {
    Signature::new(strength, mime, steps)
}

/// The start of a Python bytecode file: a magic number that changes with each version, then a DOS
/// line end, so that transfers in text mode break it.
fn python_bytecode(data: &[u8]) -> bool {
    let [low, high, b'\r', b'\n', ..] = *data else {
        return false;
    };
    match high {
        0xc4 => low == 0xfc,
        0x4e => low == 0x99,
        0xc6 => low == 0x87,
        0xed => matches!(low, 0x2a | 0x2d),
        0xf2 => matches!(
            low,
            0x3b | 0x45
                | 0x59
                | 0x63
                | 0x6d
                | 0x77
                | 0x81
                | 0x8b
                | 0x8c
                | 0x95
                | 0x9f
                | 0xa9
                | 0xb3
                | 0xc7
                | 0xd1
                | 0xdb
                | 0xe5
                | 0xef
                | 0xf9
        ),
        0xf3 => low == 0x03,
        0x0b => matches!(low, 0xb8 | 0xc2 | 0xcc | 0xd6 | 0xe0 | 0xea | 0xf4 | 0xf5 | 0xff),
        0x0c => matches!(
            low,
            0x09 | 0x13
                | 0x1d
                | 0x1f
                | 0x27
                | 0x3b
                | 0x45
                | 0x4f
                | 0x58
                | 0x62
                | 0x6c
                | 0x76
                | 0x80
                | 0x94
                | 0x9e
                | 0xb2
                | 0xc6
                | 0xcc
                | 0xd0
                | 0xda
                | 0xe4
                | 0xee
                | 0xf8
        ),
        0x0d => matches!(
            low,
            0x02 | 0x0c | 0x16 | 0x17 | 0x20 | 0x21 | 0x2a..=0x2d | 0x2f..=0x33 | 0x3e..=0x42 | 0x48 | 0x49 | 0x52..=0x55
                | 0x5c..=0x61 | 0x66..=0x6f | 0x7a..=0xa7 | 0xac..=0xcb | 0xde..=0xf3
        ),
        0x0e => matches!(low, 0x10..=0x19),
        _ => false,
    }
}

/// An ELF file of the given kind in both byte orders.
macro_rules! elf {
    ($mime:literal, $kind:literal) => {
        [
            sig(
                50,
                $mime,
                &[
                    Lit(b"\x7fELF"),
                    Run(|b| b == 1 || b == 2, 1, 1),
                    Lit(b"\x01"),
                    Any(10),
                    Lit(&[$kind, 0]),
                ],
            ),
            sig(
                50,
                $mime,
                &[
                    Lit(b"\x7fELF"),
                    Run(|b| b == 1 || b == 2, 1, 1),
                    Lit(b"\x02"),
                    Any(10),
                    Lit(&[0, $kind]),
                ],
            ),
        ]
    };
}

const OBJECT: [Signature; 2] = elf!("application/x-object", 1);
const EXECUTABLE: [Signature; 2] = elf!("application/x-executable", 2);
const SHARED: [Signature; 2] = elf!("application/x-sharedlib", 3);
const CORE: [Signature; 2] = elf!("application/x-coredump", 4);

/// Signatures of this module.
#[rustfmt::skip]
pub(super) const SIGNATURES: &[Signature] = &[
    // Programs.
    OBJECT[0], OBJECT[1], EXECUTABLE[0], EXECUTABLE[1], SHARED[0], SHARED[1], CORE[0], CORE[1],
    sig(51, "application/x-dosexec", &[Lit(b"MZ")]),
    sig(190, "application/x-dosexec", &[Any(369), Lit(b"MICROSOFT PIFEX\0")]),
    sig(100, "application/x-mach-o-executable", &[OneOf(&[b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe"])]),
    sig(100, "application/x-mach-o-executable", &[Lit(b"\xca\xfe\xba\xbe"), Any(2), Lit(b"\0"), Run(|b| matches!(b, 1..=0x14), 1, 1)]),
    sig(71, "application/x-java-applet", &[Lit(b"\xca\xfe\xba\xbe"), Any(3), Run(|b| matches!(b, 0x2d..=0x34), 1, 1)]),
    sig(1, "application/x-java-pack200", &[Lit(b"\xca\xfe\xd0\x0d"), Any(1)]),
    sig(10, "application/x-elc", &[Lit(b";ELC"), Run(|b| !matches!(b, 0x20..=0x7f), 1, 1)]),
    Signature::test(80, "application/x-python-bytecode", |_| true, python_bytecode),

    // Fonts.
    sig(70, "application/font-woff2", &[Lit(b"wOF2")]),
    sig(70, "application/font-woff", &[Lit(b"wOFF")]),
    sig(80, "application/x-font-ttf", &[Lit(b"\0\x01\0\0\0")]),
    sig(50, "application/vnd.ms-fontobject", &[Any(34), Lit(b"LP")]),
    sig(70, "application/x-font-sfn", &[OneOf(&[b"\x04\0\0\0", b"\0\0\0\x04"]), Any(100), OneOf(&[b"\x04\0\0\0", b"\0\0\0\x04"])]),
    sig(70, "application/vnd.ms-opentype", &[Lit(b"OTTO")]),
    sig(190, "application/x-mif", &[Lit(b"<MakerScreenFont")]),
    sig(160, "application/vnd.font-fontforge-sfd", &[Lit(b"SplineFontDB:")]),

    // Keys and certificates.
    sig(70, "application/x-java-keystore", &[Lit(b"\xfe\xed\xfe\xed")]),
    sig(70, "application/x-java-jce-keystore", &[Lit(b"\xce\xce\xce\xce")]),
    sig(0, "application/x-pem", &[Lit(b"-----BEGIN CERTIFICATE-----")]),
    sig(71, "application/ocsp-request", &[Gap(11, 19), Lit(b"\x06\x05\x2b\x0e\x03\x02\x1a")]),
    sig(71, "application/ocsp-response", &[Gap(11, 19), Lit(b"\x06\x09\x2b\x06\x01\x05\x05\x07\x30\x01\x01")]),
    sig(330, "application/pgp-keys", &[Any(2), Lit(b"---BEGIN PGP PUBLIC KEY BLOCK-")]),
    sig(280, "application/pgp-signature", &[Lit(b"-----BEGIN PGP SIGNATURE-")]),
    sig(260, "application/pgp", &[Lit(b"-----BEGIN PGP MESSAGE-")]),
    sig(50, "application/x-pgp-keyring", &[OneOf(&[b"\x99\0", b"\x95\x01", b"\x95\0"])]),
    sig(50, "application/x-gnupg-keyring", &[Lit(b"\x99\x01")]),
    sig(50, "text/PGP", &[OneOf(&[b"\xa6\0", b"\x85\x02"])]),

    // Formats of single vendors.
    sig(49, "application/x-ms-shortcut", &[Lit(b"\x4c\0\0\0\x01\x14\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46")]),
    sig(49, "application/vnd.ms-pol", &[Lit(b"PReg")]),
    sig(49, "application/vnd.ms-reg", &[OneOf(&[b"REGEDIT4",
        b"\xff\xfeW\0i\0n\0d\0o\0w\0s\0 \0R\0e\0g\0i\0s\0t\0r\0y\0 \0E\0d\0i\0t\0o\0r\0 \0V\0e\0r\0s\0i\0o\0n\0 \x005\0.\x000\x000"])]),
    sig(49, "application/vnd.ms-regf", &[Lit(b"regf")]),
    sig(49, "application/vnd.ms-outlook", &[Lit(b"!BDN"), Any(6), Run(|b| matches!(b, 0x0e | 0x0f | 0x15 | 0x17), 1, 1), Run(|b| b <= 2, 1, 1)]),
    sig(0, "application/vnd.apple-afpinfo", &[Lit(b"AFP")]),
    sig(100, "application/vnd.ms-tnef", &[Lit(b"\x78\x9f\x3e\x22")]),
    sig(100, "application/bplist", &[Lit(b"bplist")]),
    sig(100, "application/mshelp", &[Lit(b"ITSF")]),
    sig(1, "application/x-ms-reader", &[Lit(b"ITOLITLS"), Any(4)]),
    sig(100, "application/msqm", &[Lit(b"MSQM")]),
    sig(50, "application/x-windows-minidump", &[Lit(b"MDMP")]),
    sig(100, "application/x-vim-tmp", &[Lit(b"b0VIM")]),
    sig(100, "application/map-tile", &[Lit(b"VMP4")]),
    sig(100, "application/chrome-ext", &[Lit(b"Cr24")]),
    sig(70, "application/chrome-ext-upd", &[Lit(b"CrOD")]),
    sig(100, "application/x-game-mpq", &[Lit(b"MPQ\x1a")]),
    sig(100, "application/x-blizgame", &[Lit(b"BLTE")]),
    sig(100, "application/bsdiff", &[Lit(b"BSDIFF")]),
    sig(100, "application/bindiff", &[Lit(b"DIFF")]),
    sig(100, "application/x-kaspavdb", &[Lit(b"KLZF")]),
    sig(100, "application/x-kaspavupdate", &[Lit(b"KLD2")]),
    sig(70, "x-epoc/x-sisx-app", &[Lit(b"\x7a\x1a\x20\x10")]),
    sig(70, "application/vnd.symbian.install", &[Any(8), Lit(b"\x19\x04\0\x10")]),
    sig(70, "application/x-epoc-agenda", &[Lit(b"\x50\0\0\x10\x6d\0\0\x10\x84\0\0\x10")]),
    sig(70, "application/x-epoc-data", &[Lit(b"\x50\0\0\x10\x6d\0\0\x10\x86\0\0\x10")]),
    sig(70, "application/x-epoc-jotter", &[Lit(b"\x50\0\0\x10\x6d\0\0\x10\xea\x0c\0\x10")]),
    sig(70, "image/x-epoc-mbm", &[Lit(b"\x37\0\0\x10\x42\0\0\x10")]),
    sig(70, "image/x-epoc-sketch", &[Lit(b"\x37\0\0\x10\x6d\0\0\x10\x7d\0\0\x10")]),
    sig(70, "application/x-epoc-word", &[Lit(b"\x37\0\0\x10\x6d\0\0\x10\x7f\0\0\x10")]),
    sig(70, "application/x-epoc-opl", &[Lit(b"\x37\0\0\x10\x6d\0\0\x10\x85\0\0\x10")]),
    sig(70, "application/x-epoc-sheet", &[Lit(b"\x37\0\0\x10\x6d\0\0\x10\x88\0\0\x10")]),
    sig(70, "application/x-epoc-opo", &[Lit(b"\x37\0\0\x10\x73\0\0\x10")]),
    sig(70, "application/x-epoc-app", &[Lit(b"\x37\0\0\x10\x74\0\0\x10")]),

    // Data, databases, captures.
    sig(70, "application/vnd.tcpdump.pcap", &[OneOf(&[b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1"])]),
    sig(100, "application/vnd.tcpdump.pcap", &[Lit(b"\x0a\x0d\x0d\x0a"), Any(4), OneOf(&[b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"])]),
    sig(100, "application/mssql-bak", &[Lit(b"MSSQLBAK")]),
    sig(100, "application/mtf", &[Lit(b"TAPE")]),
    sig(40, "application/x-tokyocabinet-hash", &[Lit(b"ToKyO CaBiNeT\n"), Any(18), Lit(b"\0")]),
    sig(40, "application/x-tokyocabinet-btree", &[Lit(b"ToKyO CaBiNeT\n"), Any(18), Lit(b"\x01")]),
    sig(40, "application/x-tokyocabinet-fixed", &[Lit(b"ToKyO CaBiNeT\n"), Any(18), Lit(b"\x02")]),
    sig(40, "application/x-tokyocabinet-table", &[Lit(b"ToKyO CaBiNeT\n"), Any(18), Lit(b"\x03")]),
    sig(80, "application/vnd.fdo.journal", &[Lit(b"LPKSHHRH"), Any(8), Run(|b| b <= 3, 1, 1), Any(7), Run(|b| b != 0, 48, 48)]),
    sig(110, "application/x-hdf", &[Lit(b"\x89HDF\r\n\x1a\n")]),
    sig(70, "application/x-hdf", &[Lit(b"\x0e\x03\x13\x01")]),
    sig(70, "application/x-dbm", &[OneOf(&[b"\x61\x15\x06\0", b"\0\x06\x15\x61"])]),
    sig(70, "application/x-gdbm", &[OneOf(&[b"GDBM", b"\xce\x9a\x57\x13", b"\x13\x57\x9a\xce"])]),
    sig(70, "application/dicom", &[Any(128), Lit(b"DICM")]),
    sig(140, "application/x-bittorrent", &[Lit(b"d8:announce")]),
    sig(140, "application/x-ia-arc", &[Lit(b"filedesc://")]),
    sig(50, "application/marc", &[Run(|b| b.is_ascii_digit(), 5, 5), Run(|b| matches!(b, b'a' | b'c' | b'd' | b'n'), 1, 1), Lit(b"w")]),
    sig(100, "application/skp", &[Lit(b"\xff\xfe\xff\x0eS\0k\0e\0t\0c\0h\0U\0p\0 \0M\0o\0d\0e\0l\0")]),
    sig(10, "application/sla", &[Lit(b"solid ")]),

    // Documents.
    sig(50, "application/msword", &[Lit(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")]),
    sig(180, "application/x-msaccess", &[Any(4), Lit(b"Standard "), OneOf(&[b"Jet", b"ACE"]), Lit(b" DB\0")]),
    sig(80, "application/pdf", &[Lit(b"%PDF-")]),
    sig(80, "application/vnd.fdf", &[Lit(b"%FDF-")]),
    sig(80, "text/rtf", &[Lit(b"{\\rtf")]),
    sig(50, "application/postscript", &[Lit(b"%!")]),
    sig(60, "application/postscript", &[Lit(b"\x04%!")]),
    sig(50, "application/x-dvi", &[Lit(b"\xf7\x02")]),
    sig(120, "application/vnd.lotus-wordpro", &[Lit(b"WordPro\r\xfb")]),
    sig(110, "application/vnd.lotus-wordpro", &[Lit(b"WordPro\0")]),
    sig(90, "application/x-quark-xpress-3", &[Any(2), Lit(b"MMXPR3")]),
    sig(40, "application/x-ichitaro4", &[Lit(b"DOC"), Any(40), Lit(b"\x14")]),
    sig(40, "application/x-ichitaro5", &[Lit(b"DOC"), Any(40), Lit(b"\x15")]),
    sig(40, "application/x-ichitaro6", &[Lit(b"DOC"), Any(40), Lit(b"\x16")]),
    sig(40, "application/vnd.cups-raster", &[OneOf(&[b"3SaR", b"RaS3"])]),
    sig(140, "application/x-sc", &[Any(38), Lit(b"Spreadsheet")]),
    sig(160, "application/x-gnumeric", &[Any(39), Lit(b"<gmr:Workbook")]),
    sig(130, "application/x-mif", &[Lit(b"<MakerFile")]),
    sig(120, "application/x-mif", &[Lit(b"<BookFile")]),
    sig(110, "application/x-mif", &[Lit(b"<MIFFile")]),
    sig(90, "application/x-mif", &[Lit(b"<Maker")]),
    sig(70, "application/x-mif", &[Lit(b"<MML")]),

    // Setup scripts whose section names are in 16-bit characters or far from the start.
    sig(110, "application/x-setupscript", &[OneOf(SETUP_HEADS), Gap(0, MANY), Lit(b"[\0"), Run(|b| in_both_cases(b, b'v'), 1, 1),
        Lit(b"\0"), Run(|b| in_both_cases(b, b'e'), 1, 1), Lit(b"\0"), Run(|b| in_both_cases(b, b'r'), 1, 1), Lit(b"\0"),
        Run(|b| in_both_cases(b, b's'), 1, 1), Lit(b"\0"), Run(|b| in_both_cases(b, b'i'), 1, 1), Lit(b"\0"),
        Run(|b| in_both_cases(b, b'o'), 1, 1), Lit(b"\0"), Run(|b| in_both_cases(b, b'n'), 1, 1), Lit(b"\0]")]),
    // The fifth character is matched loosely: the "in" of "strings" counts as one character.
    sig(110, "application/x-setupscript", &[OneOf(SETUP_HEADS), Gap(0, MANY), Lit(b"[\0"), Run(|b| in_both_cases(b, b's'), 1, 1),
        Lit(b"\0"), Run(|b| in_both_cases(b, b't'), 1, 1), Lit(b"\0"), Run(|b| in_both_cases(b, b'r'), 1, 1), Lit(b"\0"),
        Run(|b| matches!(b, b'I' | b'i' | b')' | b'(' | 0 | b'[' | b'N' | b'n'), 1, 1), Lit(b"\0"),
        Run(|b| in_both_cases(b, b'g'), 1, 1), Lit(b"\0"), Run(|b| in_both_cases(b, b's'), 1, 1), Lit(b"\0]")]),
    sig(100, "application/x-setupscript", &[OneOf(SETUP_HEADS), Gap(0, MANY), Lit(b"["), Gap(0, MANY), Lit(b"["), super::Step::NoCase(b"version")]),
];

/// How these setup scripts start.
const SETUP_HEADS: &[&[u8]] = &[b"`\r\n", b"`;", b"`[", b"`\xff\xfe"];

/// Whether a byte is the given lower-case letter in either case.
const fn in_both_cases(byte: u8, lower: u8) -> bool {
    byte | 0x20 == lower
}

#[cfg(test)]
mod tests {
    use crate::sniff::mime_type;

    #[test]
    fn programs() {
        assert_eq!(mime_type(b"MZ\x90\0\x03"), Some("application/x-dosexec"));
        assert_eq!(
            mime_type(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0"),
            Some("application/x-sharedlib")
        );
        assert_eq!(
            mime_type(b"\x7fELF\x01\x02\x01\0\0\0\0\0\0\0\0\0\0\x02\0\x08"),
            Some("application/x-executable")
        );
        assert_eq!(mime_type(b"\xca\xfe\xba\xbe\0\0\0\x34"), Some("application/x-java-applet"));
        assert_eq!(
            mime_type(b"\xca\xfe\xba\xbe\0\0\0\x02"),
            Some("application/x-mach-o-executable")
        );
        assert_eq!(mime_type(b"\xcb\x0d\r\n\0\0\0\0"), Some("application/x-python-bytecode"));
    }

    #[test]
    fn ocsp_in_http() {
        let mut request =
            vec![0x30, 0x51, 0x30, 0x4f, 0x30, 0x4d, 0x30, 0x4b, 0x30, 0x49, 0x30, 0x09];
        request.extend(b"\x06\x05\x2b\x0e\x03\x02\x1a\x05\0");
        assert_eq!(mime_type(&request), Some("application/ocsp-request"));
        request.splice(0..0, [0; 8]);
        assert_eq!(mime_type(&request), None);
    }

    #[test]
    fn documents() {
        assert_eq!(mime_type(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3"), Some("application/pdf"));
        assert_eq!(mime_type(b"\0\x01\0\0Standard ACE DB\0"), Some("application/x-msaccess"));
        assert_eq!(mime_type(b"`;x[a][vErsion"), Some("application/x-setupscript"));
        assert_eq!(mime_type(b"`;x[\0V\0e\0r\0s\0i\0o\0n\0]"), Some("application/x-setupscript"));
    }
}
