//! Messages of the protocol: JSON after a header with its length.

use std::io;
use std::io::BufRead;
use std::io::Read;
use std::io::Write as _;
use std::sync::mpsc::Sender;

use serde_json::Value;

/// Maximum length of a message, in bytes.
const MAX_MESSAGE: usize = 64 << 20;

/// Reads messages from standard input until its end.
pub(super) fn read_all(to: &Sender<Value>) {
    let mut input = io::stdin().lock();
    while let Some(message) = read(&mut input) {
        if to.send(message).is_err() {
            return;
        }
    }
}

/// Reads the next message, and skips messages that are not JSON. `None` at the end of the input, or if a header has no
/// valid length.
fn read(input: &mut impl BufRead) -> Option<Value> {
    loop {
        let mut length = None;
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok();
            }
        }
        let length = length.filter(|length| *length <= MAX_MESSAGE)?;
        let mut body = Vec::new();
        if input.take(length as u64).read_to_end(&mut body).ok()? < length {
            return None;
        }
        if let Ok(message) = serde_json::from_slice(&body) {
            return Some(message);
        }
    }
}

/// Writes a message to standard output.
pub(super) fn write(message: &Value) {
    let body = message.to_string();
    let mut out = io::stdout().lock();
    // A write error is ignored: the client has closed the connection.
    let _ = write!(out, "Content-Length: {}\r\n\r\n{body}", body.len()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_one_after_another() {
        let mut input =
            &b"Content-Length: 7\r\n\r\n{\"a\":1}content-length: 3\r\nX: y\r\n\r\n[2]"[..];
        assert_eq!(read(&mut input), Some(serde_json::json!({ "a": 1 })));
        assert_eq!(read(&mut input), Some(serde_json::json!([2])));
        assert_eq!(read(&mut input), None);
        assert_eq!(read(&mut &b"Content-Length: 9999999999999\r\n\r\n"[..]), None);
        assert_eq!(read(&mut &b"Content-Length: 9\r\n\r\n{}"[..]), None);
    }
}
