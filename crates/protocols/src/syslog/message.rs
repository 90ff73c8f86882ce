use crate::support::OutOfBound;
use crate::support::RecordFault;

/// The priority of a message, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Facility: the part of the sender that reports (RFC 3164 section 4.1.1); at most 127.
    pub facility: u8,
    /// Severity, from 0 (most severe) to 7.
    pub severity: u8,
}

/// Value in events and rows for a missing priority.
pub(super) const NONE: u64 = 999;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its priority, if present.
    pub priority: Option<Priority>,
    /// The text after the priority.
    pub text: &'a [u8],
}

impl<'a> Message<'a> {
    /// Parses a datagram. It is invalid if it is empty, or has an opening bracket without digits
    /// and a closing bracket after it.
    pub fn parse(data: &'a [u8]) -> Result<Self, RecordFault> {
        let Some(first) = data.first() else {
            return Err(OutOfBound::new("Syslog_Message_Optional_PRI", "lt", 1, 0).into());
        };
        if *first != b'<' {
            return Ok(Self { priority: None, text: data });
        }
        let digits = data[1..].iter().take_while(|b| b.is_ascii_digit()).count();
        match data.get(1 + digits) {
            _ if digits == 0 => return Err(RecordFault::Syntax),
            Some(b'>') => {}
            Some(_) => return Err(RecordFault::Value("Syslog_Priority:gt")),
            None => {
                let need = digits as i64 + 2;
                return Err(OutOfBound::new("Syslog_Priority", "gt", need, data.len()).into());
            }
        }
        let value = data[1..=digits]
            .iter()
            .fold(0i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b - b'0')));
        // Only the low ten bits count; a number beyond 64 bits counts as all ones.
        let priority =
            Priority { facility: (value >> 3 & 0x7f) as u8, severity: (value & 7) as u8 };
        Ok(Self { priority: Some(priority), text: &data[digits + 2..] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::error_text;

    #[test]
    fn priorities() {
        let p =
            |d| Message::parse(d).ok().and_then(|m| m.priority).map(|p| (p.facility, p.severity));
        assert_eq!(p(b"<134>text"), Some((16, 6)));
        assert_eq!(p(b"<0>text"), Some((0, 0)));
        assert_eq!(p(b"<99999999999999999999>x"), Some((127, 7)));
        assert_eq!(p(b"text"), None);
    }

    #[test]
    fn texts() {
        assert_eq!(Message::parse(b"<13>a\0").map(|m| m.text), Ok(&b"a\0"[..]));
        assert_eq!(Message::parse(b"no priority").map(|m| m.text), Ok(&b"no priority"[..]));
        let fault = |data| error_text(Message::parse(data).unwrap_err());
        for bad in [&b"<"[..], b"<>x", b"<a>"] {
            assert_eq!(Message::parse(bad), Err(RecordFault::Syntax));
        }
        assert_eq!(fault(b""), "out_of_bound: Syslog_Message_Optional_PRI:lt: 1 > 0");
        assert_eq!(fault(b"<12"), "out_of_bound: Syslog_Priority:gt: 4 > 3");
        assert_eq!(fault(b"<1 >"), "&enforce violation : Syslog_Priority:gt");
    }
}
