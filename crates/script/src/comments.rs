//! Documentation in a script's text: `##` before a declaration, `##<` after it, `##!` of the whole script.
//!
//! The parser drops comments, so a request for documentation searches the source text.

/// The documentation lines of the declaration that begins at offset `start`.
pub(crate) fn of_declaration(text: &[u8], start: usize) -> Vec<u8> {
    let start = start.min(text.len());
    let mut lines = before(&text[..start]);
    lines.extend(after(&text[start..]));
    lines.join(&b'\n')
}

/// The documentation lines of a script.
pub(crate) fn of_script(text: &[u8]) -> Vec<u8> {
    let lines: Vec<_> = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.trim_ascii_start().strip_prefix(b"##!"))
        .map(without_blank)
        .collect();
    lines.join(&b'\n')
}

/// The documentation lines above the definition of a function whose name begins at offset `start`.
pub(crate) fn of_body(text: &[u8], start: usize) -> Vec<u8> {
    before(&text[..start.min(text.len())]).join(&b'\n')
}

/// The `##` lines at the end of `text`. Empty lines and other comments may stand between them.
fn before(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = text;
    let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { return lines };
    // A keyword such as `global` may precede the name. After other code, the comments above belong to that
    // code.
    let is_keyword = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_whitespace();
    if !rest[end..].iter().all(is_keyword) {
        return lines;
    }
    rest = &rest[..end];
    loop {
        let begin = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = rest[begin..].trim_ascii_start();
        let documents = line.strip_prefix(b"##").filter(|rest| !rest.starts_with(b"!"));
        let documents = documents.filter(|rest| !rest.starts_with(b"<") && !rest.starts_with(b"#"));
        if let Some(rest) = documents {
            lines.push(without_blank(rest));
        } else if !line.is_empty() && line[0] != b'#' {
            break;
        }
        let Some(end) = begin.checked_sub(1) else { break };
        rest = &rest[..end];
    }
    lines.reverse();
    lines
}

/// The `##<` comments between the end of the declaration that `text` begins with and the next token.
fn after(text: &[u8]) -> Vec<&[u8]> {
    let mut rest = declaration_end(text);
    // Between the last name of an enumeration and its closing bracket are only comments.
    let name = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(byte));
    let behind_name = &text[name.count()..];
    if rest.first().is_some_and(|byte| b")]}".contains(byte)) {
        rest = behind_name;
    }
    let mut lines = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        if rest.first() != Some(&b'#') {
            return lines;
        }
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        if let Some(line) = rest[..end].strip_prefix(b"##<") {
            lines.push(without_blank(line));
        }
        rest = &rest[end..];
    }
}

/// The text after the `;`, or the `,` of an enumeration, that ends a declaration.
fn declaration_end(text: &[u8]) -> &[u8] {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = string_end(text, at),
            b'#' => {
                let line = text[at..].iter().position(|byte| *byte == b'\n');
                at = line.map_or(text.len(), |end| at + end);
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return &text[at..],
            b')' | b']' | b'}' => {
                depth -= 1;
                let rest = &text[at + 1..];
                let goes_on = matches!(rest.trim_ascii_start().first(), Some(b';' | b'&'));
                // The body of a function has no `;` after it.
                if depth == 0 && *byte == b'}' && !goes_on {
                    return rest;
                }
            }
            b';' | b',' if depth == 0 => return &text[at + 1..],
            _ => {}
        }
        at += 1;
    }
    &[]
}

/// The offset of the quote that ends the string at `at`.
fn string_end(text: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' | b'\n' => break,
            _ => {}
        }
        at += 1;
    }
    at
}

/// A comment without the blank after its marker.
fn without_blank(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_prefix(b" ").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &[u8] = br#"##! A script.
##!
##!  It has a second line.

export {
	# The kinds.
	type Kind: enum {
		## The first kind.
		ONE,
		TWO,   ##< The second kind.
		THREE  ##< The third
		       ##< kind.
	};

	## What happened.
	type Info: record {
		## When.
		# A remark that is no documentation.
		### Nor is this.

		## To the second.
		ts: time &log;
		name: string &default="a;\"b"; ##< A name,
		                               ##< in quotes.
		plain: count;
	};
	## How often.
	const often = 3 &redef;
	## A pair.
	type Pair: record { first: count; second: count; };
}
## Does nothing.
function idle() { local n = 1; }
global other = 2; ##< Another.
"#;

    fn documented(declaration: &str) -> String {
        let text = String::from_utf8_lossy(SCRIPT);
        let at = text.find(declaration).unwrap();
        String::from_utf8(of_declaration(SCRIPT, at)).unwrap()
    }

    #[test]
    fn comments_belong_to_the_declaration_below_or_before_them() {
        assert_eq!(documented("ts:"), "When.\nTo the second.");
        assert_eq!(documented("name:"), "A name,\nin quotes.");
        assert_eq!(documented("plain:"), "");
        assert_eq!(documented("ONE"), "The first kind.");
        assert_eq!(documented("TWO"), "The second kind.");
        assert_eq!(documented("THREE"), "The third\nkind.");
        assert_eq!(documented("Info:"), "What happened.");
        assert_eq!(documented("often ="), "How often.");
        assert_eq!(documented("Pair:"), "A pair.");
        assert_eq!(documented("idle"), "Does nothing.");
        assert_eq!(documented("other"), "Another.");
        assert_eq!(documented("first:"), "");
        let idle = SCRIPT.windows(4).position(|text| text == b"idle").unwrap();
        assert_eq!(of_body(SCRIPT, idle), b"Does nothing.");
        assert_eq!(of_declaration(SCRIPT, usize::MAX), b"");
    }

    #[test]
    fn comments_of_a_script_keep_their_indentation() {
        let expected = "A script.\n\n It has a second line.";
        assert_eq!(String::from_utf8(of_script(SCRIPT)).unwrap(), expected);
    }

    proptest::proptest! {
        #[test]
        fn any_text_and_offset_are_accepted(
            text in proptest::collection::vec(proptest::sample::select(b"##<!;,\"\\{}()\n a".to_vec()), 0..60),
            start in 0_usize..70,
        ) {
            let _ = of_declaration(&text, start);
            let _ = of_body(&text, start);
            let _ = of_script(&text);
        }
    }
}
