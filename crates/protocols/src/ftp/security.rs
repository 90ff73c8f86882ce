//! TLS inside of ADAT commands (RFC 2228), as GridFTP's GSI uses it: tokens of the handshake go
//! back and forth in base64.

use gannet_base::Dir;

use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::ssl;
use crate::support::mime::Base64;
use crate::support::text::reply_code;
use crate::support::text::skip_blanks;
use crate::support::text::split_word;

/// The exchange after a server's willingness to do GSSAPI.
pub(super) struct Exchange {
    tls: Box<ssl::Analyzer>,
    /// The client's first token is still to come.
    first: bool,
    /// Nothing more of the exchange will come.
    over: bool,
}

impl Exchange {
    /// The exchange begins.
    pub(super) fn new(cx: &mut Context<'_>) -> Self {
        Self { tls: Box::new(ssl::Analyzer::new(cx)), first: true, over: false }
    }

    /// A line of either side; whether more may come.
    pub(super) fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) -> bool {
        let token = match from {
            Dir::Orig => self.client_line(cx, line),
            Dir::Resp => self.server_line(cx, line),
        };
        if let Some(token) = token {
            self.tls.stream(cx, from, &token);
            if self.tls.is_established() {
                cx.conn.services.insert(Tag::Gridftp as u8);
            }
        }
        !self.over
    }

    /// The exchange ends.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.tls.finish(cx);
    }

    fn client_line(&mut self, cx: &mut Context<'_>, line: &[u8]) -> Option<Vec<u8>> {
        let (word, rest) = split_word(skip_blanks(line));
        if b"AUTH".starts_with(word) && !b"ADAT".starts_with(word) {
            // The security state begins again.
            self.over = true;
            return None;
        }
        if !b"ADAT".starts_with(word) {
            return None;
        }
        let token = decode(cx, skip_blanks(rest));
        if std::mem::replace(&mut self.first, false) {
            if token.is_none() {
                cx.weird("ftp_adat_bad_first_token_encoding", "", Some("FTP_ADAT"));
            }
            // GSI does not frame its first token as RFC 2743 wants but begins with a TLS record.
            let is_handshake = |t: &[u8]| match *t {
                [22, _, _, high, low, ref rest @ ..] => {
                    rest.len() == usize::from(u16::from_be_bytes([high, low]))
                }
                _ => false,
            };
            if !token.as_deref().is_some_and(is_handshake) {
                self.over = true;
                return None;
            }
        }
        token
    }

    fn server_line(&mut self, cx: &mut Context<'_>, line: &[u8]) -> Option<Vec<u8>> {
        match reply_code(line)? {
            // Over; what matters was said.
            232 | 234 => self.over = true,
            code @ (235 | 334 | 335) => {
                self.over = code == 235;
                let rest = &line[3..];
                let rest = skip_blanks(rest.strip_prefix(b"-").unwrap_or(rest));
                let token = rest.strip_prefix(b"ADAT=").filter(|t| !t.is_empty())?;
                return decode(cx, token);
            }
            // Refused, or already encrypted.
            421 | 431 | 500 | 501 | 503 | 535 | 631..=633 => self.over = true,
            _ => {}
        }
        None
    }
}

fn decode(cx: &mut Context<'_>, text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let mut decoder = Base64::default();
    if let Some(complaint) = decoder.decode(text, &mut out) {
        cx.weird("base64_illegal_encoding", &complaint, None);
    }
    if decoder.failed() {
        return None;
    }
    for complaint in decoder.finish(&mut out) {
        cx.weird("base64_illegal_encoding", &complaint, None);
    }
    Some(out)
}
