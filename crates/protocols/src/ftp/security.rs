//! TLS inside of ADAT commands (RFC 2228), as used by GSI in GridFTP: both sides send tokens of the handshake in
//! Base64.

use gannet_base::Dir;

use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::ssl;
use crate::support::mime::Base64;
use crate::support::text::reply_code;
use crate::support::text::skip_blanks;
use crate::support::text::split_word;

/// The exchange of tokens after a server accepts AUTH GSSAPI.
pub(super) struct Exchange {
    tls: Box<ssl::Analyzer>,
    /// The client has not sent its first token.
    awaits_first: bool,
    /// The exchange has ended.
    done: bool,
}

impl Exchange {
    /// Starts an exchange.
    pub(super) fn new(cx: &mut Context<'_>) -> Self {
        Self { tls: Box::new(ssl::Analyzer::new(cx)), awaits_first: true, done: false }
    }

    /// Processes a line of either side. Returns whether the exchange continues.
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
        !self.done
    }

    /// Ends the exchange.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        self.tls.finish(cx);
    }

    fn client_line(&mut self, cx: &mut Context<'_>, line: &[u8]) -> Option<Vec<u8>> {
        let (word, rest) = split_word(skip_blanks(line));
        if b"AUTH".starts_with(word) && !b"ADAT".starts_with(word) {
            // The security state is reset.
            self.done = true;
            return None;
        }
        if !b"ADAT".starts_with(word) {
            return None;
        }
        let token = decode(cx, skip_blanks(rest));
        if std::mem::replace(&mut self.awaits_first, false) {
            if token.is_none() {
                cx.weird("ftp_adat_bad_first_token_encoding", "", Some("FTP_ADAT"));
            }
            // GSI does not frame its first token as RFC 2743 requires, but starts with a TLS record.
            let is_handshake = |t: &[u8]| match *t {
                [22, _, _, high, low, ref rest @ ..] => {
                    rest.len() == usize::from(u16::from_be_bytes([high, low]))
                }
                _ => false,
            };
            if !token.as_deref().is_some_and(is_handshake) {
                self.done = true;
                return None;
            }
        }
        token
    }

    fn server_line(&mut self, cx: &mut Context<'_>, line: &[u8]) -> Option<Vec<u8>> {
        match reply_code(line)? {
            // The exchange is complete.
            232 | 234 => self.done = true,
            code @ (235 | 334 | 335) => {
                self.done = code == 235;
                let rest = &line[3..];
                let rest = skip_blanks(rest.strip_prefix(b"-").unwrap_or(rest));
                let token = rest.strip_prefix(b"ADAT=").filter(|t| !t.is_empty())?;
                return decode(cx, token);
            }
            // The server refuses the exchange, or the reply is encrypted.
            421 | 431 | 500 | 501 | 503 | 535 | 631..=633 => self.done = true,
            _ => {}
        }
        None
    }
}

fn decode(cx: &mut Context<'_>, text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let mut decoder = Base64::default();
    if let Some(error) = decoder.decode(text, &mut out) {
        cx.weird("base64_illegal_encoding", &error, None);
    }
    if decoder.failed() {
        return None;
    }
    for error in decoder.finish(&mut out) {
        cx.weird("base64_illegal_encoding", &error, None);
    }
    Some(out)
}
