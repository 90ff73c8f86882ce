//! Negotiation of the Telnet options that the analyzer uses: binary transmission (RFC 856), terminal type (RFC 1091), authentication
//! (RFC 2941), encryption (RFC 2946) and environment (RFC 1408).

use gannet_base::Dir;

use super::before_nul;
use super::dialog::Dialog;
use super::events::ActivatingEncryption;
use super::events::AuthenticationAccepted;
use super::events::AuthenticationRejected;
use super::events::BadOption;
use super::events::InconsistentOption;
use crate::Context;

const BINARY: u8 = 0;
const TERMINAL: u8 = 24;
const AUTHENTICATION: u8 = 37;
const ENCRYPTION: u8 = 38;
const ENVIRONMENT: u8 = 39;

/// The options, by index in [`Options::all`].
const ALL: [u8; 5] = [BINARY, TERMINAL, AUTHENTICATION, ENCRYPTION, ENVIRONMENT];

/// State of all options, by side. Telnet and the control connection of FTP negotiate them.
#[derive(Debug, Default)]
pub(crate) struct Options {
    all: [[Negotiation; ALL.len()]; 2],
    ends: [End; 2],
}

/// Commands that a side has received about an option, and whether the option is active.
#[derive(Clone, Copy, Debug, Default)]
struct Negotiation {
    will: bool,
    wont: bool,
    does: bool,
    dont: bool,
    is_active: bool,
}

/// State of authentication and encryption of one side.
#[derive(Debug, Default)]
struct End {
    /// It requested that the other side encrypts.
    requested_encryption: bool,
    pub(super) encrypts: bool,
    requested_authentication: bool,
    accepted: bool,
    name: Option<Vec<u8>>,
}

impl Options {
    /// Whether a side encrypts its data.
    pub(super) fn encrypts(&self, from: Dir) -> bool {
        self.ends[from.index()].encrypts
    }

    /// Whether binary transmission of a side is active.
    pub(crate) fn is_binary(&self, from: Dir) -> bool {
        self.all[from.index()][0].is_active
    }

    /// Processes WILL, WON'T, DO or DON'T.
    pub(crate) fn option(&mut self, cx: &mut Context<'_>, from: Dir, (command, option): (u8, u8)) {
        let Some(at) = ALL.iter().position(|known| *known == option) else { return };
        let (mine, other) = (from.index(), from.other().index());
        let (own, mut peer) = (self.all[mine][at], self.all[other][at]);
        let mut own_active = own.is_active;
        let is_consistent = match command {
            251 => {
                let is = !(own.dont || peer.wont || peer.is_active);
                peer.will = true;
                peer.is_active |= own.does;
                is
            }
            252 => {
                let is = !peer.will || own.dont;
                peer.wont = true;
                peer.is_active &= !own.dont;
                is
            }
            253 => {
                let is = !(own.wont || peer.dont || own.is_active);
                peer.does = true;
                own_active |= own.will;
                is
            }
            _ => {
                let is = !peer.does || own.wont;
                peer.dont = true;
                own_active &= !own.wont;
                is
            }
        };
        self.all[other][at] = peer;
        self.all[mine][at].is_active = own_active;
        // Repeated negotiation of binary transmission is common and not inconsistent.
        if !is_consistent && option != BINARY {
            cx.raise(|c| InconsistentOption { c });
        }
    }

    /// Processes a suboption of a side; `dialog` receives terminal types and environment variables.
    pub(crate) fn suboption(
        &mut self,
        cx: &mut Context<'_>,
        dialog: Option<&mut Dialog>,
        from: Dir,
        (option, data): (u8, &[u8]),
    ) {
        match option {
            TERMINAL => match data {
                [1, ..] => {}
                [0, name @ ..] => {
                    if let Some(dialog) = dialog {
                        dialog.terminal(cx, name);
                    }
                }
                _ => cx.raise(|c| BadOption { c }),
            },
            AUTHENTICATION => self.authentication(cx, from, data),
            ENCRYPTION => self.encryption(cx, from, data),
            ENVIRONMENT => environment(cx, dialog, from, data),
            _ => {}
        }
    }

    fn authentication(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        let (mine, other) = (from.index(), from.other().index());
        match data {
            [0, ..] if self.ends[other].requested_authentication => {}
            [0, ..] => cx.raise(|c| InconsistentOption { c }),
            [1, ..] => self.ends[mine].requested_authentication = true,
            [2, status, ..] => {
                let name = self.ends[other].name.as_deref().unwrap_or(b"<empty>");
                match status {
                    1 => {
                        self.ends[mine].accepted = false;
                        cx.raise(|c| AuthenticationRejected { name, c });
                    }
                    2 => {
                        self.ends[mine].accepted = true;
                        cx.raise(|c| AuthenticationAccepted { name, c });
                    }
                    _ => {}
                }
            }
            [3, name @ ..] => self.ends[mine].name = Some(before_nul(name).to_vec()),
            _ => cx.raise(|c| BadOption { c }),
        }
    }

    fn encryption(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        let (mine, other) = (from.index(), from.other().index());
        let at = ALL.iter().position(|known| *known == ENCRYPTION).unwrap_or_default();
        if !self.all[mine][at].is_active {
            return cx.raise(|c| InconsistentOption { c });
        }
        match data {
            [] => cx.raise(|c| BadOption { c }),
            [5, ..] => self.ends[mine].requested_encryption = true,
            [3, ..] => {
                let peer = &self.ends[other];
                if peer.requested_encryption || peer.encrypts || peer.accepted {
                    self.ends[mine].encrypts = true;
                    cx.raise(|c| ActivatingEncryption { c });
                } else {
                    cx.raise(|c| InconsistentOption { c });
                }
            }
            _ => {}
        }
    }
}

fn environment(cx: &mut Context<'_>, mut dialog: Option<&mut Dialog>, from: Dir, data: &[u8]) {
    let mut rest = match data {
        [1, ..] => return,
        [0 | 2, rest @ ..] => rest,
        _ => return cx.raise(|c| BadOption { c }),
    };
    while !rest.is_empty() {
        match (environment_text(&mut rest), environment_text(&mut rest)) {
            (Some((0 | 3, name)), Some((1, value))) => {
                if let Some(dialog) = &mut dialog {
                    dialog.variable(cx, from, &name, &value);
                }
            }
            _ => return cx.raise(|c| BadOption { c }),
        }
    }
}

/// Reads a name or a value of an environment variable after its code: VAR, VALUE or USERVAR.
fn environment_text(data: &mut &[u8]) -> Option<(u8, Vec<u8>)> {
    let (&code @ (0 | 1 | 3), text) = data.split_first()? else { return None };
    let mut end = text.iter().position(|b| *b <= 3).unwrap_or(text.len());
    let mut out = text[..end].to_vec();
    // As in Zeek, the text ends with the first escaped byte.
    if text.get(end) == Some(&2) {
        out.push(*text.get(end + 1)?);
        end += 1;
    }
    *data = &text[end..];
    Some((code, before_nul(&out).to_vec()))
}
