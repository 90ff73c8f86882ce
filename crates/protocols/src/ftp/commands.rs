//! Pending commands, and the matching of replies to them.

use gannet_base::Time;

/// A command that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) ts: Time,
    /// The command word, followed by the argument.
    text: Vec<u8>,
    /// Length of the word, in bytes.
    word_len: usize,
    /// Sequence number in the session, from 1.
    pub(super) seq: u64,
    /// The working directory was already updated from this command.
    pub(super) directory_updated: bool,
}

impl Command {
    /// A command that reuses the `buffer` of another one.
    pub(super) fn new(
        mut buffer: Vec<u8>,
        ts: Time,
        word: &[u8],
        argument: &[u8],
        seq: u64,
    ) -> Self {
        buffer.clear();
        buffer.reserve(word.len() + argument.len());
        buffer.extend_from_slice(word);
        buffer.extend_from_slice(argument);
        Self { ts, text: buffer, word_len: word.len(), seq, directory_updated: false }
    }

    pub(super) fn word(&self) -> &[u8] {
        &self.text[..self.word_len]
    }

    pub(super) fn argument(&self) -> &[u8] {
        &self.text[self.word_len..]
    }

    /// Returns the buffer for reuse.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.text
    }
}

/// Whether a reply code is expected for a command, as one `match` on the command.
macro_rules! expected_codes {
    ($word:expr, $code:expr, $($($name:literal)|+ => $codes:pat,)*) => {
        match $word { $( $($name)|+ => matches!($code, $codes), )* _ => false }
    };
}

/// Whether a reply code is expected for a command by RFC 959, RFC 2389, RFC 2428, RFC 3659 or common practice. Code 500 is
/// expected for all commands.
fn is_expected(word: &[u8], code: u16) -> bool {
    code == 500
        || expected_codes! { word, code,
            b"<init>" => 0 | 120 | 220 | 421,
            b"<missing>" => 0,
            b"USER" => 230 | 331 | 332 | 421 | 501 | 530,
            b"PASS" => 202 | 230 | 332 | 421 | 501 | 503 | 530,
            b"ACCT" => 202 | 230 | 421 | 501 | 503 | 530,
            b"CWD" => 250 | 421 | 501 | 502 | 530 | 550,
            b"CDUP" => 200 | 250 | 421 | 501 | 502 | 530 | 550,
            b"SMNT" => 202 | 250 | 421 | 501 | 502 | 530 | 550,
            b"REIN" => 120 | 220 | 421 | 502,
            b"QUIT" => 0 | 221,
            b"PORT" => 200 | 421 | 501 | 530,
            b"PASV" => 227 | 421 | 501 | 502 | 530,
            b"MODE" => 200 | 421 | 501 | 502 | 504 | 530,
            b"TYPE" | b"STRU" => 200 | 421 | 501 | 504 | 530,
            b"ALLO" => 200 | 202 | 421 | 501 | 504 | 530,
            b"REST" => 200 | 350 | 421 | 501 | 502 | 530,
            b"STOR" | b"STOU" => 110 | 125 | 150 | 226 | 250 | 421 | 425 | 426 | 450..=452 | 501 | 530
                | 532 | 550..=553,
            b"RETR" => 110 | 125 | 150 | 226 | 250 | 421 | 425 | 426 | 450 | 451 | 501 | 530 | 550,
            b"LIST" | b"NLST" => 125 | 150 | 226 | 250 | 421 | 425 | 426 | 450 | 451 | 501 | 502 | 530
                | 550,
            b"APPE" => 125 | 150 | 226 | 250 | 421 | 425 | 426 | 450..=452 | 501 | 502 | 530 | 532
                | 550..=553,
            b"RNFR" => 350 | 421 | 450 | 501 | 502 | 530 | 550,
            b"RNTO" => 250 | 421 | 501..=503 | 530 | 532 | 553,
            b"DELE" => 250 | 421 | 450 | 501 | 502 | 530 | 550,
            b"RMD" => 250 | 421 | 501 | 502 | 530 | 550,
            b"MKD" => 257 | 421 | 501 | 502 | 530 | 550,
            b"PWD" => 257 | 421 | 501 | 502 | 550,
            b"ABOR" => 225 | 226 | 421 | 501 | 502,
            b"SYST" => 215 | 421 | 501 | 502 | 530,
            b"STAT" => 211..=213 | 421 | 450 | 501 | 502 | 530,
            b"HELP" => 200 | 211 | 214 | 421 | 501 | 502,
            b"SITE" => 200 | 202 | 214 | 501 | 502 | 530,
            b"NOOP" => 200 | 421,
            b"LPRT" => 501 | 521,
            b"FEAT" => 211 | 502,
            b"OPTS" => 200 | 451 | 501,
            b"EPSV" => 229 | 501,
            b"EPRT" => 200 | 501 | 522,
            b"SIZE" | b"MDTM" => 213 | 501 | 550,
            b"MLST" | b"MLSD" => 150 | 226 | 250 | 501 | 550,
            b"CLNT" => 200,
            b"MACB" => 200 | 550,
        }
}

/// Returns the index of the command that a reply most likely answers: one for which its code is expected, and whose word
/// or argument it mentions. Among equal candidates, the oldest one.
pub(super) fn best_match(pending: &[Command], code: u16, text: &[u8]) -> Option<usize> {
    if pending.len() == 1 {
        return Some(0);
    }
    let mentions = |part: &[u8]| memchr::memmem::find(text, part).is_some();
    let score = |c: &Command| {
        100 * u32::from(is_expected(c.word(), code))
            + 20 * u32::from(mentions(c.word()))
            + 10 * u32::from(mentions(c.argument()))
    };
    // `max_by_key` returns the last of equal elements, so iterate backwards.
    pending.iter().enumerate().rev().max_by_key(|(_, c)| score(c)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(seq: u64, word: &str, argument: &str) -> Command {
        Command::new(Vec::new(), Time::ZERO, word.as_bytes(), argument.as_bytes(), seq)
    }

    #[test]
    fn replies_match_their_commands() {
        let pending = [
            command(1, "PASV", ""),
            command(2, "RETR", "a.txt"),
            command(3, "RETR", "b.txt"),
            command(4, "NOOP", ""),
        ];
        let best = |code, text: &str| {
            best_match(&pending, code, text.as_bytes()).map(|at| pending[at].seq)
        };
        assert_eq!(best(227, "ok"), Some(1));
        assert_eq!(best(150, "Opening data connection for b.txt"), Some(3));
        assert_eq!(best(226, "Transfer complete"), Some(2));
        assert_eq!(best(999, "x"), Some(1));
        assert_eq!(best_match(&[], 200, b""), None);
    }
}
