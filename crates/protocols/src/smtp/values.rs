//! Values of commands and of header fields.

use gannet_log::Limits;

use crate::Context;
use crate::support::text::unescape_uri;

/// Maximum stored length of a value, in bytes: one more than a row shows, so that truncation is
/// noticed.
pub(super) const MAX_VALUE: usize = Limits::DEFAULT.string + 1;

/// Maximum length in bytes of a text that is searched for addresses.
const MAX_SEARCHED: usize = 10_000;

/// Source of weirds.
pub(super) const SOURCE: Option<&str> = Some("SMTP");

/// The stored part of a value.
pub(super) fn truncate(value: &[u8]) -> Vec<u8> {
    value[..value.len().min(MAX_VALUE)].to_vec()
}

/// Whether a text is short enough to be searched for addresses; if not, reports the corresponding
/// line of Zeek's script.
pub(super) fn is_searched(cx: &mut Context<'_>, text: &[u8], line: u32) -> bool {
    let is_short = text.len() <= MAX_SEARCHED;
    if !is_short {
        let addl = format!(
            "base/utils/email.zeek, line {line}: length {} exceeded {MAX_SEARCHED}(from constant \
             max_find_all_string_length",
            text.len()
        );
        let name = "max_find_all_string_length_exceeded";
        cx.env.weirds.net(&mut cx.env.logs, cx.now, name, &addl);
    }
    is_short
}

/// Whether a text begins with a word, ignoring case.
pub(super) fn starts_with_ignore_case(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word))
}

/// Removes `part`, and a semicolon after it, from an address to which it was appended.
pub(super) fn without(address: &[u8], part: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(address.len());
    let mut rest = address;
    while let Some((&b, tail)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(part) {
            rest = after.strip_prefix(b";").unwrap_or(after);
        } else {
            out.push(b);
            rest = tail;
        }
    }
    out
}

/// The file name in a Content-Disposition or Content-Type, if it has the parameter `name`
/// (with a `*` after it only where `starred` allows).
pub(super) fn file_name(value: &[u8], name: &[u8], starred: bool) -> Option<Vec<u8>> {
    if !parameters(value, name).any(|(star, _)| starred || !star) {
        return None;
    }
    // Regardless of the parameter's name, the last one that ends in `name` has the file name. A
    // line end within the value stops the search.
    let line = value.split(|&b| b == b'\n').next().unwrap_or_default();
    let mut name = parameters(line, b"name").last().map_or(value, |(_, at)| &value[at..]);
    if let Some(quoted) = name.strip_prefix(b"\"") {
        name = quoted.split(|&b| b == b'"').next().unwrap_or_default();
    }
    Some(unescape_uri(without_charset(name)))
}

/// Positions of the values of parameters whose name ends in `name`, and whether `*` precedes the
/// equals sign.
fn parameters<'a>(value: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = (bool, usize)> + 'a {
    let blanks = |from: usize| {
        value
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count()
    };
    (0..value.len()).filter(|&i| starts_with_ignore_case(&value[i..], name)).filter_map(move |i| {
        let mut at = i + name.len();
        at += blanks(at);
        let star = value.get(at) == Some(&b'*');
        at += usize::from(star);
        (value.get(at) == Some(&b'=')).then(|| (star, at + 1 + blanks(at + 1)))
    })
}

/// The name without the `charset'language'` prefix (RFC 5987).
fn without_charset(name: &[u8]) -> &[u8] {
    let allowed =
        |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+'..=b'^') || b"!#$%&_`{}~".contains(b);
    let charset = name.iter().take_while(|b| allowed(b)).count();
    if charset == 0 || name.get(charset) != Some(&b'\'') {
        return name;
    }
    let language = name[charset + 1..].iter().take_while(|b| allowed(b)).count();
    if name.get(charset + 1 + language) != Some(&b'\'') {
        return name;
    }
    let line = name.split(|&b| b == b'\n').next().unwrap_or_default();
    memchr::memrchr(b'\'', line).map_or(name, |last| &name[last + 1..])
}

/// Whether a user agent is a webmail program on a web server.
pub(super) fn is_webmail(agent: &[u8]) -> bool {
    let starts = [
        &b"iPlanet Messenger"[..],
        b"Sun Java(tm) System Messenger Express",
        b"SquirrelMail",
        b"NeoMail",
    ];
    let within = [&b"(IMP)"[..], b"ZimbraWebClient"];
    starts.iter().any(|s| agent.starts_with(s))
        || within.iter().any(|w| memchr::memmem::find(agent, w).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names() {
        let disposition = |v: &str| {
            file_name(v.as_bytes(), b"filename", true)
                .map(|n| String::from_utf8_lossy(&n).into_owned())
        };
        assert_eq!(disposition("attachment; filename=\"NEWS.txt\"").as_deref(), Some("NEWS.txt"));
        assert_eq!(disposition("attachment; FileName = a b.c").as_deref(), Some("a b.c"));
        assert_eq!(disposition("attachment; filename*=UTF-8'en'a%20b").as_deref(), Some("a b"));
        assert_eq!(disposition("attachment; filename=\"open").as_deref(), Some("open"));
        assert_eq!(disposition("inline"), None);
        let ty = |v: &str| file_name(v.as_bytes(), b"name", false);
        assert_eq!(ty("text/plain; name=a.txt").as_deref(), Some(&b"a.txt"[..]));
        assert_eq!(ty("text/plain; name*=a.txt"), None);
    }

    #[test]
    fn glued_parameters() {
        assert_eq!(without(b"ORCPT=rfc822a@b", b"ORCPT=rfc822"), b"a@b");
        assert_eq!(without(b"a@b", b"ORCPT=rfc822"), b"a@b");
    }
}
