//! Images, audio and video.

use super::Step::{Any, Gap, Lit, OneOf, Run};
use super::{MANY, Signature, Step};

const fn sig(strength: i16, mime: &'static str, steps: &'static [Step]) -> Signature {
    Signature::new(strength, mime, steps)
}

/// The first box of JPEG 2000 and related formats, then the brand.
macro_rules! jp2 {
    ($mime:literal, $brand:literal) => {
        sig(70, $mime, &[Lit(b"\0\0\0\x0cjP  \r\n\x87\n"), Any(8), Lit($brand)])
    };
}

/// A number and a space, as in Netpbm headers.
const NUMBER: Step = Run(|b| b.is_ascii_digit(), 1, 50);

const fn digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// Signatures of this module.
#[rustfmt::skip]
pub(super) const SIGNATURES: &[Signature] = &[
    // Images.
    sig(70, "image/tiff", &[OneOf(&[b"MM\0*", b"MM\0+", b"II*\0", b"II+\0"])]),
    sig(70, "image/gif", &[Lit(b"GIF8")]),
    sig(52, "image/jpeg", &[Lit(b"\xff\xd8")]),
    sig(50, "image/x-ms-bmp", &[Lit(b"BM"), Any(12), Run(|b| matches!(b, 0x0c | 0x28 | 0x40 | 0x6c | 0x7c | 0x80), 1, 1), Lit(b"\0")]),
    sig(70, "image/x-icon", &[Lit(b"\0\0\x01\0")]),
    sig(70, "image/x-cursor", &[Lit(b"\0\0\x02\0")]),
    sig(70, "image/vnd.adobe.photoshop", &[Lit(b"8BPS")]),
    sig(110, "image/png", &[Lit(b"\x89PNG")]),
    sig(60, "image/jp2", &[Any(4), Lit(b"ftypjp2")]),
    sig(50, "image/jp2", &[Any(4), Lit(b"jP")]),
    jp2!("image/jp2", b"jp2 "),
    jp2!("image/jpx", b"jpx "),
    jp2!("image/jpm", b"jpm "),
    jp2!("video/mj2", b"mjp2"),
    sig(70, "image/x-xcursor", &[Lit(b"Xcur")]),
    sig(70, "image/x-niff", &[Lit(b"IIN1")]),
    sig(70, "image/x-exr", &[Lit(b"\x76\x2f\x31\x01")]),
    sig(70, "image/x-dpx", &[Lit(b"SDPX")]),
    sig(70, "image/x-cpi", &[Lit(b"CPC\xb2")]),
    sig(70, "image/x-olympus-orf", &[OneOf(&[b"IIRO", b"IIRS", b"MMOR"])]),
    sig(70, "image/x-x3f", &[Lit(b"FOVb")]),
    sig(70, "image/x-paintnet", &[Lit(b"PDN3")]),
    sig(70, "image/x-coreldraw", &[Lit(b"RIFF"), Any(4), OneOf(&[b"CDRA", b"CDR6"])]),
    sig(50, "image/x-portable-pixmap", &[Lit(b"P7")]),
    sig(70, "image/vnd.djvu", &[Lit(b"AT&TFORM"), Any(4), OneOf(&[b"DJVM", b"DJVU", b"DJVI", b"THUM"])]),
    sig(90, "image/vnd.dwg", &[OneOf(&[b"AC1.", b"AC2.", b"AC10"])]),
    sig(110, "image/x-xcf", &[Lit(b"gimp xcf")]),
    sig(160, "image/x-polar-monitor-bitmap", &[Lit(b"[BitmapInfo2]")]),
    sig(20, "image/x-award-bmp", &[Lit(b"AWBM")]),
    sig(50, "image/x-award-bioslogo", &[OneOf(&[b"\x11\x06", b"\x11\x09"])]),
    sig(70, "image/webp", &[Lit(b"RIFF"), Any(4), Lit(b"WEBP")]),
    sig(170, "image/x-canon-crw", &[Lit(b"II\x1a\0\0\0HEAPCCDR")]),
    sig(130, "image/x-canon-cr2", &[Lit(b"II*\0\x10\0\0\0CR")]),
    sig(70, "image/x-lss16", &[Lit(b"\x3d\xf3\x13\x14")]),
    sig(70, "image/x-quicktime", &[Any(4), Lit(b"idsc")]),
    sig(100, "application/x-ms-dds", &[Lit(b"DDS")]),
    // Netpbm: in the plain forms the magic may be at any offset.
    sig(42, "image/x-portable-greymap", &[Lit(b"P5"), Any(1), NUMBER, Lit(b"  "), Run(digit, 1, 50)]),
    sig(42, "image/x-portable-pixmap", &[Lit(b"P6"), Any(1), NUMBER, Lit(b"  "), Run(digit, 1, 50)]),
    sig(42, "image/x-portable-bitmap", &[Lit(b"P4"), Any(1), NUMBER, Lit(b"  "), Run(digit, 1, 50)]),
    sig(42, "image/x-portable-bitmap", &[Gap(0, MANY), Lit(b"P1"), NUMBER, Lit(b"  "), Run(digit, 1, 50)]),
    sig(42, "image/x-portable-pixmap", &[Gap(0, MANY), Lit(b"P3"), NUMBER, Lit(b"  "), Run(digit, 1, 50)]),
    sig(42, "image/x-portable-greymap", &[Gap(0, MANY), Lit(b"P2"), NUMBER, Lit(b"  "), Run(digit, 1, 50)]),

    // Audio.
    sig(20, "audio/mpeg", &[OneOf(&[b"ID3", b"\xff\xe2", b"\xff\xe3", b"\xff\xf2", b"\xff\xf3", b"\xff\xf6", b"\xff\xf7", b"\xff\xfa",
        b"\xff\xfb", b"\xff\xfc", b"\xff\xfd"])]),
    sig(70, "audio/m4a", &[Any(4), Lit(b"ftypm4a")]),
    sig(60, "audio/mp4", &[Any(4), Lit(b"ftypM4A")]),
    sig(190, "audio/x-wav", &[Lit(b"RF64\xff\xff\xff\xffWAVEds64")]),
    sig(70, "audio/x-wav", &[Lit(b"RIFF"), Any(4), Lit(b"WAVE")]),
    sig(190, "audio/x-w64", &[Lit(b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\0\0"), Any(8), Lit(b"wave\xf3\xac\xd3\x11\x8c\xd1\0\xc0O\x8e\xdb\x8a")]),
    sig(190, "audio/x-mod", &[Lit(b"Extended Module:")]),
    sig(20, "audio/x-mod", &[Lit(b"MAS_UTrack_V00/0")]),
    sig(110, "audio/x-mod", &[Any(21), OneOf(&[b"!SCREAM!", b"BMOD2STM"])]),
    sig(70, "audio/x-mod", &[Lit(b"IMPM")]),
    sig(100, "application/vnd.rn-realmedia", &[Lit(b".RMF\0\0\0")]),
    sig(70, "audio/x-pn-realaudio", &[Lit(b".ra\xfd")]),
    sig(70, "audio/x-hx-aac-adif", &[Lit(b"ADIF")]),
    sig(50, "audio/x-hx-aac-adts", &[OneOf(&[b"\xff\xf0", b"\xff\xf1", b"\xff\xf8", b"\xff\xf9"])]),
    sig(50, "audio/x-mp4a-latm", &[Lit(b"V"), Run(|b| b >= 0xe0, 1, 1)]),
    sig(70, "audio/x-ape", &[Lit(b"MAC ")]),
    sig(70, "audio/x-aiff", &[Lit(b"FORM"), Any(4), OneOf(&[b"AIFF", b"AIFC", b"8SVX"])]),
    sig(70, "audio/x-flac", &[Lit(b"fLaC")]),
    sig(70, "audio/midi", &[Lit(b"MThd")]),
    sig(70, "audio/x-dec-basic", &[Lit(b".sd\0"), Any(8), Run(|b| matches!(b, 1..=7 | 0x17), 1, 1), Lit(b"\0\0\0")]),
    sig(70, "audio/basic", &[Lit(b".snd"), Any(8), Lit(b"\0\0\0"), Run(|b| matches!(b, 1..=7), 1, 1)]),
    sig(70, "audio/x-adpcm", &[Lit(b".snd"), Any(8), Lit(b"\0\0\0\x17")]),
    sig(60, "audio/x-musepack", &[Lit(b"MP+")]),
    sig(50, "audio/vnd.dolby.dd-raw", &[Lit(b"\x0b\x77")]),
    sig(70, "application/ogg", &[Lit(b"OggS")]),

    // Video.
    sig(60, "application/x-shockwave-flash", &[OneOf(&[b"FWS", b"CWS", b"ZWS"])]),
    sig(60, "video/x-flv", &[Lit(b"FLV")]),
    sig(50, "video/x-fli", &[Any(4), Lit(b"\x11\xaf")]),
    sig(50, "video/x-flc", &[Any(4), Lit(b"\x12\xaf")]),
    sig(70, "video/x-mng", &[Lit(b"\x8aMNG")]),
    sig(70, "video/x-jng", &[Lit(b"\x8bJNG")]),
    sig(50, "video/mpeg", &[Lit(b"\0\0\x01"), Run(|b| matches!(b, 0xb0..=0xbb), 1, 1)]),
    sig(71, "video/mpv", &[Lit(b"\0\0\x01\xb3")]),
    sig(41, "video/h264", &[Lit(b"\0\0\0\x01"), Run(|b| matches!(b, 0x07 | 0x27 | 0x47 | 0x67 | 0x87 | 0xa7 | 0xc7 | 0xe7), 1, 1)]),
    sig(70, "video/webm", &[Lit(b"\x1a\x45\xdf\xa3"), Gap(0, MANY), Lit(b"B\x82"), Any(1), Lit(b"webm")]),
    sig(110, "video/x-matroska", &[Lit(b"\x1a\x45\xdf\xa3"), Gap(0, MANY), Lit(b"B\x82"), Any(1), Lit(b"matroska")]),
    sig(21, "video/mp2p", &[Lit(b"\0\0\x01\xba"), Run(|b| b & 0x40 != 0, 1, 1)]),
    // Packets of 188 bytes, each starting with a sync byte.
    sig(40, "video/mp2t", &[Lit(b"G"), Any(187), Lit(b"G"), Any(187), Lit(b"G"), Any(187), Lit(b"G"), Any(187)]),
    sig(70, "video/x-sgi-movie", &[Lit(b"MOVI")]),
    sig(70, "video/quicktime", &[Any(4), OneOf(&[b"mdat", b"moov"])]),
    sig(50, "video/quicktime", &[Any(4), Lit(b"ftypqt")]),
    sig(70, "application/x-quicktime-player", &[Any(4), Lit(b"pckg")]),
    sig(70, "video/mp4", &[Any(4), OneOf(&[b"ftypisom", b"ftypmp41", b"ftypmp42"])]),
    sig(60, "video/mp4", &[Any(4), Lit(b"ftypM4V")]),
    sig(60, "video/3gpp", &[Any(4), OneOf(&[b"ftyp3ge", b"ftyp3gg", b"ftyp3gp", b"ftyp3gs", b"ftyp3g2", b"ftypavc1", b"ftypmmp4"])]),
    sig(70, "video/x-ms-asf", &[Lit(b"\x30\x26\xb2\x75")]),
    sig(70, "video/x-msvideo", &[Lit(b"RIFF"), Any(4), Lit(b"AVI ")]),
];

#[cfg(test)]
mod tests {
    use crate::sniff::mime_type;

    #[test]
    fn images() {
        assert_eq!(mime_type(b"GIF89a\x01\0"), Some("image/gif"));
        assert_eq!(mime_type(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(mime_type(b"\xff\xd8\xff\xe0\0\x10JFIF"), Some("image/jpeg"));
        assert_eq!(mime_type(b"RIFF\x24\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(mime_type(b"II*\0\x10\0\0\0CR\x02"), Some("image/x-canon-cr2"));
        assert_eq!(mime_type(b"II*\0\x08\0\0\0"), Some("image/tiff"));
    }

    #[test]
    fn sound_and_video() {
        assert_eq!(mime_type(b"ID3\x03\0"), Some("audio/mpeg"));
        assert_eq!(mime_type(b"\0\0\0\x18ftypmp42"), Some("video/mp4"));
        assert_eq!(mime_type(b"\x1a\x45\xdf\xa3\x93B\x82B\x82\x84webm"), Some("video/webm"));
        assert_eq!(mime_type(b"\0\0\x01\xb3"), Some("video/mpv"));
        assert_eq!(mime_type(&b"G".repeat(752)), Some("video/mp2t"));
    }
}
