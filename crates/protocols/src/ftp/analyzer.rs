use gannet_base::Dir;

use super::events::*;
use super::message::Reply;
use super::message::Request;
use super::nvt::Note;
use super::nvt::Terminal;
use super::rows::Rows;
use super::security::Exchange;
use super::session::SOURCE;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::login::Options;
use crate::login::events::BadOptionTermination;
use crate::support::limit_reached;

/// Default maximum length of a command in bytes; the script option `FTP::max_command_length` sets it.
const MAX_COMMAND: usize = 100;

/// The analyzer of a control connection.
pub struct Analyzer {
    terminals: [Terminal; 2],
    dialogue: Dialogue,
    negotiation: Negotiation,
}

/// Telnet options, which are rare on control connections.
#[derive(Default)]
struct Negotiation {
    options: Option<Box<Options>>,
    seen: SeenWeirds,
}

/// Weirds of lines that are reported once a connection.
#[derive(Default)]
struct SeenWeirds {
    lone_cr: bool,
    nul: bool,
}

/// The command and reply protocol, line by line.
#[derive(Default)]
struct Dialogue {
    confirmed: bool,
    /// Code of a multi-line reply that has not ended yet.
    continued: Option<u16>,
    /// Mechanism of the last AUTH command.
    mechanism: Vec<u8>,
    exchange: Option<Exchange>,
    /// The connection has switched to TLS.
    tls: bool,
    rows: Rows,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            terminals: [Terminal::default(), Terminal::default()],
            dialogue: Dialogue::default(),
            negotiation: Negotiation::default(),
        }
    }
}

impl Negotiation {
    /// Processes what is between lines: most weirds are reported once a connection.
    #[cold]
    fn notes(&mut self, cx: &mut Context<'_>, from: Dir, notes: &mut Vec<Note>) {
        const NVT: Option<&str> = Some("NVT");
        let limit = |cx: &mut Context<'_>, name| {
            limit_reached(cx, name, &super::nvt::MAX_LINE.to_string(), NVT);
        };
        for note in notes.drain(..) {
            match note {
                Note::LoneCr if !std::mem::replace(&mut self.seen.lone_cr, true) => {
                    cx.weird("line_terminated_with_single_CR", "", NVT);
                }
                Note::Nul if !std::mem::replace(&mut self.seen.nul, true) => {
                    cx.weird("NUL_in_line", "", NVT);
                }
                Note::LoneCr | Note::Nul => {}
                Note::TooLong => limit(cx, "nvt_line_size_exceeded"),
                Note::LongOption => limit(cx, "nvt_option_size_exceeded"),
                Note::BadEnd => cx.raise(|c| BadOptionTermination { c }),
                Note::Option(command, option) => {
                    self.options.get_or_insert_default().option(cx, from, (command, option));
                }
                Note::Suboption(option, data) => {
                    let options = self.options.get_or_insert_default();
                    options.suboption(cx, None, from, (option, &data));
                }
            }
        }
    }
}

impl Dialogue {
    fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) {
        let is_valid = !line.is_empty()
            && match from {
                Dir::Orig => self.request(cx, line),
                Dir::Resp => self.reply(cx, line),
            };
        if is_valid
            && let Some(exchange) = &mut self.exchange
            && !exchange.line(cx, from, line)
        {
            exchange.finish(cx);
            self.exchange = None;
        }
    }

    fn request(&mut self, cx: &mut Context<'_>, line: &[u8]) -> bool {
        let Some(request) = Request::parse(line) else {
            if self.confirmed {
                cx.weird("FTP_invalid_command", "", SOURCE);
            }
            return false;
        };
        let max = cx.env.limit_setting("FTP::max_command_length", MAX_COMMAND);
        if request.word.len() > max {
            if self.confirmed {
                let addl = format!("{} > {max}", request.word.len());
                limit_reached(cx, "FTP_max_command_length_exceeded", &addl, SOURCE);
            }
            return false;
        }
        self.confirmed = true;
        cx.confirm(Tag::Ftp);
        let (mut upper, long);
        let word = if !request.word.iter().any(u8::is_ascii_lowercase) {
            request.word
        } else if request.word.len() > MAX_COMMAND {
            long = request.word.to_ascii_uppercase();
            &long[..]
        } else {
            upper = [0; MAX_COMMAND];
            let upper = &mut upper[..request.word.len()];
            upper.copy_from_slice(request.word);
            upper.make_ascii_uppercase();
            upper
        };
        // As in Zeek, a prefix of three letters is enough.
        if b"AUTH".starts_with(word) {
            self.mechanism = request.argument.to_vec();
        }
        cx.report(&mut self.rows, |c| FtpRequest { c, command: word, arg: request.argument });
        true
    }

    fn reply(&mut self, cx: &mut Context<'_>, line: &[u8]) -> bool {
        let (code, text, continues) = if let Some(code) = self.continued {
            match Reply::last_line(line, code) {
                Some(text) => {
                    self.continued = None;
                    (code, text, false)
                }
                None => (0, line, true),
            }
        } else {
            match Reply::parse(line) {
                Ok(reply) => {
                    self.continued = reply.more.then_some(reply.code);
                    (reply.code, reply.text, reply.more)
                }
                Err(reason) => {
                    cx.violation(Tag::Ftp, reason, line);
                    return false;
                }
            }
        };
        match code {
            234 if self.mechanism == b"TLS" => {
                cx.raise(|c| FtpStarttls { c });
                self.tls = true;
            }
            334 if self.mechanism == b"GSSAPI" && self.exchange.is_none() => {
                self.exchange = Some(Exchange::new(cx));
                // Analyzer IDs of TLS, and of Zeek's two decoders of the tokens of each side.
                cx.aid(Tag::Ssl);
                cx.skip_aids(2);
            }
            _ => {}
        }
        cx.report(&mut self.rows, |c| FtpReply { c, code, msg: text, cont_resp: continues });
        !self.tls
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.dialogue.tls {
            return;
        }
        let (dialogue, negotiation) = (&mut self.dialogue, &mut self.negotiation);
        let terminal = &mut self.terminals[from.index()];
        let rest = terminal.push(data, |notes, line| {
            if !notes.is_empty() {
                negotiation.notes(cx, from, notes);
            }
            dialogue.line(cx, from, line);
            !dialogue.tls
        });
        if terminal.has_notes() {
            negotiation.notes(cx, from, &mut terminal.take_notes());
        }
        if let Some(options) = &negotiation.options {
            for side in [Dir::Orig, Dir::Resp] {
                self.terminals[side.index()].is_binary = options.is_binary(side);
            }
        }
        if self.dialogue.tls {
            cx.start_inner(Tag::Ssl, from, rest);
        }
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        if self.terminals[from.index()].has_partial() {
            self.stream(cx, from, b"\n");
        }
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.terminals.swap(0, 1);
    }

    fn suspend(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(mut exchange) = self.dialogue.exchange.take() {
            exchange.finish(cx);
        }
        let rows = std::mem::take(&mut self.dialogue.rows);
        self.dialogue = Dialogue { rows, ..Dialogue::default() };
        self.terminals = Default::default();
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(mut exchange) = self.dialogue.exchange.take() {
            exchange.finish(cx);
        }
        // A line before a gap never ended.
        let is_partial = self.terminals[0].has_partial() && !self.dialogue.tls;
        if is_partial && cx.conn.has_noted(Dir::Orig, gannet_flow::tcp::FIN_NOTED) {
            cx.weird("partial_ftp_request", "", SOURCE);
        }
        self.dialogue.rows.finish(cx);
    }
}

#[cfg(test)]
mod tests;
