//! Text: markup, mail, scripts, data formats, and plain text as the fallback.

use memchr::{memchr, memchr2, memmem};

use super::Step::{Any, Gap, Lit, NoCase, OneOf, Opt, Run};
use super::{MANY, Signature, Step, starts_with_no_case};

const fn sig(strength: i16, mime: &'static str, steps: &'static [Step]) -> Signature {
    Signature::new(strength, mime, steps)
}

/// A script whose first line names an interpreter.
macro_rules! script {
    ($strength:literal, $mime:literal, $($name:literal),+) => {
        Signature::test($strength, $mime, |b| b == b'#', |data| interpreter(data, &[$($name),+]))
    };
}

/// A document whose first tag, after byte order mark, comments and XML declaration, passes a test.
macro_rules! tag {
    ($strength:literal, $mime:literal, $test:expr) => {
        Signature::test($strength, $mime, starts_markup, |data| first_tag(data, true, true, $test))
    };
}

const PHP: &[u8] = b"<?php";

/// Signatures of this module.
#[rustfmt::skip]
pub(super) const SIGNATURES: &[Signature] = &[
    Signature::test(-20, "text/plain", |b| is_text(b) || matches!(b, 0 | 0xef | 0xfe | 0xff), plain),

    // Markup.
    Signature::test(10, "application/xml", |b| b == 0 || starts_markup(b), |data| first_tag(data, true, false, xml_declaration)),
    tag!(100, "text/html", |tag| doctype(tag, b"html") || starts_with_no_case(tag, b"<html") || meta(tag)),
    tag!(49, "text/html", |tag| doctype(tag, b"html")),
    tag!(20, "text/html", |tag| [&b"<head"[..], b"<html", b"<title", b"<body"].iter().any(|name| starts_with_no_case(tag, name))),
    tag!(90, "text/rss", |tag| starts_with_no_case(tag, b"<rss")),
    tag!(100, "text/atom", atom),
    tag!(49, "application/soap+xml", |tag| starts_with_no_case(tag, b"<soap:envelope") || starts_with_no_case(tag, b"<soap-env:envelope")),
    tag!(49, "application/xml-rpc", |tag| starts_with_no_case(tag, b"<methodresponse>")),
    tag!(49, "application/f4m", media_manifest),
    Signature::test(49, "text/x-cross-domain-policy", starts_markup, |data| first_tag(data, false, true, |tag| {
        doctype(tag, b"cross-domain-policy") || starts_with_no_case(tag, b"<cross-domain-policy")
    })),
    Signature::test(20, "magnus-internal/cold-fusion", starts_markup, |data| first_tag(data, false, false, |tag| {
        [&b"<CFPARAM"[..], b"<CFSET", b"<CFIF"].iter().any(|name| tag.starts_with(name))
    })),
    sig(100, "application/x-java-jnlp-file", &[Lit(b"<jnlp ")]),
    sig(43, "model/x3d", &[Lit(b"<?xml version=\""), Any(5), Gap(0, MANY), Lit(b"<!DOCTYPE"), Opt(b" "), Lit(b"X3D")]),
    sig(37, "application/xml-sitemap", &[Lit(b"<?xml version=\""), Run(|b| b != 0, 1, 1), Any(3), Gap(0, MANY), Lit(b"<urlset")]),
    sig(38, "image/svg+xml", &[Lit(b"<?xml version=\""), Run(|b| b != 0, 1, 1), Any(3), Gap(0, MANY), Lit(b"<svg")]),
    sig(37, "application/x-gnucash", &[Lit(b"<?xml version=\""), Run(|b| b != 0, 1, 1), Any(3), Gap(0, MANY), Lit(b"<gnc-v2")]),
    sig(61, "application/vnd.google-earth.kml+xml", &[Lit(b"<?xml"), Any(15), Gap(0, MANY), Lit(b" xmlns="), Run(is_quote, 1, 1),
        Lit(b"http://earth"), Any(1), Lit(b"google"), Any(1), Lit(b"com/kml")]),
    sig(60, "application/vnd.google-earth.kml+xml", &[Lit(b"<?xml"), Any(15), Gap(0, MANY), Lit(b" xmlns="), Run(is_quote, 1, 1),
        Lit(b"http://www"), Any(1), Lit(b"opengis"), Any(1), Lit(b"net/kml")]),
    sig(260, "application/x-scribus", &[Lit(b"<SCRIBUSUTF8NEW Version")]),
    sig(260, "application/x-freeplane", &[Lit(b"<map"), Opt(b" "), Lit(b"version=\"freeplane")]),
    sig(150, "application/x-freemind", &[Lit(b"<map"), Opt(b" "), Lit(b"version")]),
    sig(190, "model/vrml", &[Lit(b"#VRML"), Opt(b" "), Lit(b"V1.0"), Opt(b" "), Lit(b"ascii")]),
    sig(180, "model/vrml", &[Lit(b"#VRML"), Opt(b" "), Lit(b"V2.0"), Opt(b" "), Lit(b"utf8")]),

    // Mail, news and their parts.
    sig(160, "message/rfc822", &[NoCase(b"delivered-to:")]),
    sig(150, "message/rfc822", &[NoCase(b"return-path:")]),
    sig(170, "message/rfc822", &[Lit(b"Relay-Version:")]),
    sig(130, "message/rfc822", &[Lit(b"Forward to")]),
    sig(120, "message/rfc822", &[Lit(b"N#! rnews")]),
    sig(110, "message/rfc822", &[Lit(b"#! rnews")]),
    sig(100, "message/rfc822", &[Lit(b"Pipe to")]),
    sig(80, "message/rfc822", &[Lit(b"From:")]),
    sig(100, "message/news", &[Lit(b"Article")]),
    sig(80, "message/news", &[OneOf(&[b"Path:", b"Xref:"])]),
    sig(100, "application/pkcs7-signature", &[Lit(b"MIME-Version:"), Gap(0, MANY), Lit(b"protocol=\"application/pkcs7-signature\"")]),
    sig(320, "application/mac-binhex40", &[Any(11), Lit(b"must be converted with BinHex")]),
    sig(180, "text/calendar", &[Lit(b"BEGIN:VCALENDAR")]),
    sig(140, "text/x-vcard", &[Lit(b"BEGIN:VCARD")]),

    // Scripts.
    script!(250, "text/x-shellscript", b"sh", b"bash", b"tcsh", b"csh", b"zsh", b"fash", b"aesh", b"ksh"),
    script!(60, "text/x-perl", b"perl"),
    script!(60, "text/x-ruby", b"ruby"),
    script!(60, "text/x-python", b"python"),
    script!(60, "text/x-awk", b"awk", b"gawk", b"nawk"),
    script!(60, "text/x-tcl", b"wish", b"tcl"),
    script!(49, "text/x-lua", b"lua"),
    script!(60, "application/javascript", b"node"),
    script!(60, "text/x-php", b"php"),
    sig(37, "text/x-php", &[Lit(b"<?php /* Smarty version"), Any(1), Run(|b| b.is_ascii_digit() || b == b'.', 1, MANY)]),
    sig(40, "text/x-php", &[Gap(0, MANY), Lit(PHP)]),
    sig(60, "application/javascript", &[Run(is_space, 0, MANY), NoCase(b"<script"), Run(is_blank, 1, MANY), NoCase(b"type="),
        Run(is_quote, 0, 1), NoCase(b"text/"), NoCase(b"javascript")]),
    sig(60, "application/javascript", &[Run(is_space, 0, MANY), NoCase(b"<script"), Run(is_blank, 1, MANY), NoCase(b"type="),
        Run(is_quote, 0, 1), NoCase(b"javascript")]),
    sig(60, "application/javascript", &[Run(is_space, 0, MANY), NoCase(b"<script"), Run(is_blank, 1, MANY), NoCase(b"language="),
        Run(is_quote, 0, 1), NoCase(b"text/"), NoCase(b"javascript")]),
    sig(60, "application/javascript", &[Run(is_space, 0, MANY), NoCase(b"<script"), Run(is_blank, 1, MANY), NoCase(b"language="),
        Run(is_quote, 0, 1), NoCase(b"javascript")]),
    sig(60, "application/javascript", &[Run(is_space, 0, MANY), Lit(b"<script>"), Run(is_space, 0, MANY), OneOf(&[b"var ", b"function "])]),
    sig(60, "application/javascript", &[Run(is_space, 0, MANY), Lit(b"for (;;);")]),
    // One of the letters of "blank", or a colon, may precede the parenthesis.
    sig(60, "application/javascript", &[Run(is_space, 0, MANY), Lit(b"document.write"), Opt(b"ln"),
        Run(|b| matches!(b, b':' | b'b' | b'l' | b'a' | b'n' | b'k'), 0, 1), Lit(b"(")]),
    sig(60, "application/javascript", &[Lit(b"(function()"), Run(|b| is_blank(b) || b == b'\n', 0, MANY), Lit(b"{")]),
    sig(110, "text/x-msdos-batch", &[Lit(b"@"), Run(|b| b == b' ', 0, MANY), NoCase(b"echo"), Run(|b| b == b' ', 1, MANY), NoCase(b"off")]),
    sig(60, "text/x-msdos-batch", &[NoCase(b"@rem")]),
    sig(70, "text/x-msdos-batch", &[NoCase(b"@set "), Run(|b| b == b' ', 0, MANY)]),
    sig(40, "text/x-m4", &[Lit(b"dnl ")]),
    sig(280, "application/x-shar", &[Any(10), Lit(b"# This is a shell archive")]),

    // Data and configuration.
    Signature::test(1, "text/json", starts_data, |data| json_object(data) || json_array(data)),
    Signature::test(20, "text/ini", |b| b == 0 || starts_data(b), ini),
    sig(55, "text/x-diff", &[Gap(0, MANY), Lit(b"--- "), Gap(0, MANY), Lit(b"\n"), Gap(0, MANY), Lit(b"+++ "), Gap(0, MANY), Lit(b"\n"),
        Gap(0, MANY), Lit(b"@@")]),
    sig(230, "application/x-svr4-package", &[Lit(b"# PaCkAgE DaTaStReAm")]),
    sig(220, "application/x-kdelnk", &[Lit(b"[KDE Desktop Entry]")]),
    sig(200, "application/x-kdelnk", &[Lit(b"# KDE Config File")]),
    sig(90, "text/x-xmcd", &[Lit(b"# xmcd")]),
    sig(37, "text/x-po", &[Lit(b"msgid ")]),
];

const fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether a byte is printable ASCII or white space.
const fn is_text(byte: u8) -> bool {
    matches!(byte, 0x09..=0x0d | 0x20..=0x7e)
}

/// Whether a markup document may start with a byte: white space, a tag, a byte order mark.
const fn starts_markup(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'<' | 0xef | 0xfe | 0xff)
}

/// Whether a data format may start with a byte: white space, a bracket, a byte order mark.
const fn starts_data(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'{' | b'[' | 0xef | 0xfe | 0xff)
}

/// The data after a byte order mark of UTF-8 or UTF-16; all data if it has none.
fn skip_mark(data: &[u8]) -> &[u8] {
    let marks: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
    marks.iter().find_map(|mark| data.strip_prefix(*mark)).unwrap_or(data)
}

/// The data after a run of bytes of a class.
fn skip(data: &[u8], class: fn(u8) -> bool) -> &[u8] {
    let count = data.iter().take_while(|&&byte| class(byte)).count();
    &data[count..]
}

/// Whether the data starts with ten characters of text, after an optional byte order mark.
fn plain(data: &[u8]) -> bool {
    let marks: [&[u8]; 6] =
        [b"", b"\xef\xbb\xbf", b"\0\0\xfe\xff", b"\xfe\xff", b"\xff\xfe\0\0", b"\xff\xfe"];
    marks.iter().any(|mark| {
        let text = data.strip_prefix(*mark).and_then(|rest| rest.get(..10));
        text.is_some_and(|text| text.iter().all(|&byte| is_text(byte)))
    })
}

/// Whether a tag at one of the possible starts of a document passes a test.
///
/// Possible starts are the start of the data (after a byte order mark, if `mark`), the end of each
/// comment that opens at a possible start, and, if `declaration`, the end of an XML declaration
/// there; each may be preceded by white space. A comment may end at any later end of a comment, so
/// every later `-->` counts, as does every later `?>` of a declaration.
fn first_tag(data: &[u8], mark: bool, declaration: bool, test: fn(&[u8]) -> bool) -> bool {
    let data = if mark { skip_mark(data) } else { data };
    let (mut comment, mut xml) = (usize::MAX, usize::MAX);
    let mut position = 0;
    loop {
        let rest = skip(&data[position..], is_space);
        let at = data.len() - rest.len();
        if test(rest) {
            return true;
        }
        if rest.starts_with(b"<!--") {
            comment = comment.min(at + 4);
        } else if declaration && rest.starts_with(b"<?xml ") {
            xml = xml.min(at + 6);
        }
        if comment == usize::MAX && xml == usize::MAX {
            return false;
        }
        // Continue at the next end of either.
        loop {
            let Some(found) = memchr(b'>', &data[position..]) else {
                return false;
            };
            let end = position + found;
            position = end + 1;
            let closes = |ending: &[u8], open: usize| {
                end.checked_sub(ending.len())
                    .is_some_and(|start| start >= open && data[start..end] == *ending)
            };
            if closes(b"--", comment) || closes(b"?", xml) {
                break;
            }
        }
    }
}

/// `<?xml `, in which a zero byte may follow each character, as in UTF-16.
fn xml_declaration(tag: &[u8]) -> bool {
    let mut rest = tag;
    for &wanted in b"<?xml " {
        rest = rest.strip_prefix(b"\0").unwrap_or(rest);
        match rest.strip_prefix(&[wanted]) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

/// A document type declaration for the given root element, ignoring case.
fn doctype(tag: &[u8], root: &[u8]) -> bool {
    starts_with_no_case(tag, b"<!doctype ")
        && starts_with_no_case(skip(&tag[10..], |byte| byte == b' '), root)
}

/// A `meta` element with `http-equiv`.
fn meta(tag: &[u8]) -> bool {
    starts_with_no_case(tag, b"<meta ")
        && starts_with_no_case(skip(&tag[6..], |byte| byte == b' '), b"http-equiv")
}

/// An Atom feed: its own root element, or that of RSS with the Atom namespace.
fn atom(tag: &[u8]) -> bool {
    let inside = |start: usize| {
        let rest = &tag[start..];
        &rest[..memchr(b'>', rest).unwrap_or(rest.len())]
    };
    if starts_with_no_case(tag, b"<rss") {
        return memmem::find(inside(4), b"xmlns:atom").is_some();
    }
    if !starts_with_no_case(tag, b"<feed") {
        return false;
    }
    const STEPS: &[Step] = &[Lit(b"http://www"), Any(1), Lit(b"w3"), Any(1), Lit(b"org/2005/Atom")];
    let attributes = inside(5);
    memmem::find_iter(attributes, b"xmlns=").any(|at| {
        // Only the name of the attribute must be inside of the tag.
        let value = &tag[5 + at + 6..];
        super::fits(STEPS, value)
            || (value.first().is_some_and(|&byte| is_quote(byte))
                && super::fits(STEPS, &value[1..]))
    })
}

/// A Flash media manifest.
fn media_manifest(tag: &[u8]) -> bool {
    starts_with_no_case(tag, b"<manifest")
        && tag.get(9).is_some_and(|&byte| is_space(byte))
        && skip(&tag[9..], is_space).starts_with(b"xmlns=\"http://ns.adobe.com/f4m/")
}

/// Whether the first line calls one of the interpreters: `#!`, a path that ends in `bin/` with one
/// to fifteen characters before it, optionally `env`, and the name.
fn interpreter(data: &[u8], names: &[&[u8]]) -> bool {
    let Some(line) = data.strip_prefix(b"#!") else {
        return false;
    };
    let named = |rest: &[u8]| names.iter().any(|name| rest.starts_with(name));
    let path = line.iter().take(15).take_while(|&&byte| byte != b'\n').count();
    (1..=path).any(|at| {
        let Some(rest) = line[at..].strip_prefix(b"bin/") else {
            return false;
        };
        let argument = rest
            .strip_prefix(b"env")
            .map(|rest| (rest, skip(rest, |byte| matches!(byte, 9..=13 | 32))));
        named(rest)
            || argument
                .is_some_and(|(env, argument)| env.len() != argument.len() && named(argument))
    })
}

/// The data after a non-empty quoted string.
fn json_string(data: &[u8]) -> Option<&[u8]> {
    let rest = data.strip_prefix(b"\"")?;
    let end = memchr(b'"', rest).filter(|&end| end > 0)?;
    Some(&rest[end + 1..])
}

/// Whether the data is the start of an object: a key, quoted or not, a colon, and the start of a
/// value.
fn json_object(data: &[u8]) -> bool {
    let member = |data| -> Option<bool> {
        let rest = skip(skip(skip_mark(data), is_space).strip_prefix(b"{")?, is_space);
        let rest = match json_string(rest) {
            Some(rest) => rest,
            None if rest.first()?.is_ascii_alphabetic() => {
                skip(rest, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'\\' | b'_'))
            }
            None => return None,
        };
        let value = skip(skip(rest, is_space).strip_prefix(b":")?, is_space);
        let first = value.first()?;
        Some(
            matches!(first, b'"' | b'[' | b'{' | b'0'..=b'9')
                || value.starts_with(b"true")
                || value.starts_with(b"false"),
        )
    };
    member(data).unwrap_or(false)
}

/// Whether the data is the start of an array: another array, an object, or a scalar and a comma.
fn json_array(data: &[u8]) -> bool {
    let element = |data| -> Option<bool> {
        let rest = skip(skip(skip_mark(data), is_space).strip_prefix(b"[")?, is_space);
        let rest = match rest.first()? {
            b'{' | b'[' => return Some(true),
            b'"' => json_string(rest)?,
            b'0'..=b'9' => {
                let rest = skip(rest, |byte| byte.is_ascii_digit());
                match rest {
                    [b'.', b'0'..=b'9', ..] => skip(&rest[1..], |byte| byte.is_ascii_digit()),
                    _ => rest,
                }
            }
            _ => rest.strip_prefix(b"true").or_else(|| rest.strip_prefix(b"false"))?,
        };
        Some(skip(rest, is_space).starts_with(b","))
    };
    element(data).unwrap_or(false)
}

/// Whether the data starts with a section of an INI file: a line in brackets.
fn ini(data: &[u8]) -> bool {
    let rest = skip(skip_mark(data), |byte| byte == 0 || is_space(byte));
    let Some(rest) = rest.strip_prefix(b"[") else {
        return false;
    };
    let Some(end) = memchr2(b'\r', b'\n', rest) else {
        return false;
    };
    let line = &rest[..end];
    let padding = line.iter().rev().take_while(|&&byte| byte == 0 || is_blank(byte)).count();
    matches!(&line[..end - padding], [_, .., b']'])
}

#[cfg(test)]
mod tests {
    use crate::sniff::mime_type;
    use proptest::prelude::*;

    #[test]
    fn plain_text_and_its_marks() {
        assert_eq!(mime_type(b"0123456789"), Some("text/plain"));
        assert_eq!(mime_type(b"012345678"), None);
        assert_eq!(mime_type(b"\xef\xbb\xbf0123456789"), Some("text/plain"));
        assert_eq!(mime_type(b"\0\0\xfe\xff0123456789"), Some("text/plain"));
        assert_eq!(mime_type(b"\xff\xfe\0\x000123456789"), Some("text/plain"));
        assert_eq!(mime_type(b"01234\x80789ab"), None);
        assert_eq!(mime_type(b""), None);
    }

    #[test]
    fn markup_after_comments() {
        assert_eq!(mime_type(b"<!DOCTYPE  html>"), Some("text/html"));
        assert_eq!(mime_type(b"\r\n <!-- a --> b --> <HTML>"), Some("text/html"));
        assert_eq!(mime_type(b"<!--> <html --"), Some("text/plain"));
        assert_eq!(mime_type(b"<?xml version=\"1.0\"?><!-- x --><html>"), Some("text/html"));
        assert_eq!(mime_type(b"<?xml version=\"1.0\"?>\n<x/>"), Some("application/xml"));
        assert_eq!(mime_type(b"\xff\xfe<\0?\0x\0m\0l\0 \0v\0"), Some("application/xml"));
        assert_eq!(mime_type(b"<?xml version=\"1.0\"?><svg>"), Some("image/svg+xml"));
        assert_eq!(mime_type(b"<soap-ENV:Envelope>"), Some("application/soap+xml"));
        assert_eq!(mime_type(b"<feed a=b xmlns='http://www.w3.org/2005/Atom'>"), Some("text/atom"));
        assert_eq!(mime_type(b"<rss version=\"2.0\">"), Some("text/rss"));
        assert_eq!(mime_type(b"<title>x</title>"), Some("text/html"));
    }

    #[test]
    fn json() {
        assert_eq!(mime_type(b"{\"a\": 1}"), Some("text/json"));
        assert_eq!(mime_type(b" { a_b : true }"), Some("text/json"));
        assert_eq!(mime_type(b"[1.5 , 2]"), Some("text/json"));
        assert_eq!(mime_type(b"[{}"), Some("text/json"));
        assert_eq!(mime_type(b"{\"\": 12345}"), Some("text/plain"));
        assert_eq!(mime_type(b"{}"), None);
        assert_eq!(mime_type(b"{ \"a\": null }"), Some("text/plain"));
    }

    #[test]
    fn settings() {
        assert_eq!(mime_type(b"[section] \r\nkey=value"), Some("text/ini"));
        assert_eq!(mime_type(b"[a]b]\n"), Some("text/ini"));
        assert_eq!(mime_type(b"[section] x\n"), Some("text/plain"));
    }

    #[test]
    fn scripts() {
        assert_eq!(mime_type(b"#!/bin/sh\n"), Some("text/x-shellscript"));
        assert_eq!(mime_type(b"#!/usr/bin/env  python3\n"), Some("text/x-python"));
        assert_eq!(mime_type(b"#!/usr/bin/envpython\n"), Some("text/plain"));
        assert_eq!(mime_type(b"#!bin/sh and more"), Some("text/plain"));
        assert_eq!(mime_type(b"hello <?php echo 1;"), Some("text/x-php"));
        assert_eq!(mime_type(b"@ECHO  off\r\n"), Some("text/x-msdos-batch"));
        assert_eq!(mime_type(b"<script type='text/javascript'>"), Some("application/javascript"));
    }

    #[test]
    fn differences() {
        assert_eq!(mime_type(b"diff\n--- a\n+++ b\n@@ -1 +1 @@"), Some("text/x-diff"));
        assert_eq!(mime_type(b"diff\n+++ b\n--- a\n@@ -1 +1 @@"), Some("text/plain"));
    }

    proptest! {
        #[test]
        fn never_panics(data in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = mime_type(&data);
        }

        #[test]
        fn never_panics_on_what_looks_like_markup(data in "(\u{feff})?([<>!?\\[\\]{}\" \n-]|<!--|-->|xml|html|[a-z]){0,60}") {
            let _ = mime_type(data.as_bytes());
        }
    }
}
