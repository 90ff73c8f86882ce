//! Parsing of the parts of a DNS message that replay needs (RFC 1035 §4.1).

/// Length of the header in bytes.
pub(crate) const HEADER: usize = 12;

/// Whether the bytes may be a query: a header with QR clear.
pub(crate) fn is_query(message: &[u8]) -> bool {
    message.len() >= HEADER && message[2] & 0x80 == 0
}

/// Whether the bytes may be a response: a header with QR set.
pub(crate) fn is_response(message: &[u8]) -> bool {
    message.len() >= HEADER && message[2] & 0x80 != 0
}

/// The id; 0 if the message is too short.
pub(crate) fn id(message: &[u8]) -> u16 {
    match message {
        [a, b, ..] => u16::from_be_bytes([*a, *b]),
        _ => 0,
    }
}

/// Response code of the header.
pub(crate) fn rcode(message: &[u8]) -> u8 {
    message.get(3).map_or(0, |b| b & 15)
}

/// Names of response codes (RFC 1035 §4.1.1, RFC 2136 §2.2); the rest are reserved.
pub(crate) fn rcode_name(code: usize) -> &'static str {
    const NAMES: [&str; 16] = [
        "NOERROR",
        "FORMERR",
        "SERVFAIL",
        "NXDOMAIN",
        "NOTIMP",
        "REFUSED",
        "YXDOMAIN",
        "YXRRSET",
        "NXRRSET",
        "NOTAUTH",
        "NOTZONE",
        "DSOTYPENI",
        "RCODE12",
        "RCODE13",
        "RCODE14",
        "RCODE15",
    ];
    NAMES.get(code).copied().unwrap_or("RCODE15")
}

/// The fields that an answer must repeat from its query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuestionKey {
    /// Hash of the first question: name in lower case, type and class; 0 without a question.
    question: u32,
    /// Opcode, from the header.
    opcode: u8,
}

impl QuestionKey {
    /// The fields of a message with a complete header.
    pub(crate) fn of(message: &[u8]) -> Self {
        let opcode = message.get(2).map_or(0, |b| b >> 3 & 15);
        let count = message.get(4..6).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
        let question = if count == 0 { 0 } else { question(&message[HEADER.min(message.len())..]) };
        Self { question, opcode }
    }

    /// Whether `answer` matches a query with these fields. Some servers omit the question in an
    /// error response: then it is not compared.
    pub(crate) fn is_answered_by(self, answer: &[u8]) -> bool {
        let other = Self::of(answer);
        let without = other.question == 0 && rcode(answer) != 0;
        other.opcode == self.opcode && (without || other.question == self.question)
    }
}

/// Hash of a question up to its end, or up to the end of a truncated message. Never 0.
fn question(data: &[u8]) -> u32 {
    let mut hash: u32 = 0x811c_9dc5;
    let mut eat = |byte: u8| hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let mut at = 0;
    while let Some(&len) = data.get(at) {
        let (step, end) = match len {
            0 => (1, true),
            1..=63 => (1 + usize::from(len), false),
            // A pointer ends a name (RFC 1035 §4.1.4).
            _ => (2, true),
        };
        let upto = (at + step).min(data.len());
        data[at..upto].iter().for_each(|b| eat(b.to_ascii_lowercase()));
        at = upto;
        if end {
            data[at..(at + 4).min(data.len())].iter().for_each(|b| eat(*b));
            break;
        }
    }
    hash.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &[u8]) -> Vec<u8> {
        let mut m = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        m.extend_from_slice(name);
        m.extend_from_slice(&[0, 1, 0, 1]);
        m
    }

    #[test]
    fn an_answer_repeats_the_question_in_any_case() {
        let question_key = QuestionKey::of(&query(b"\x03wWw\x04test\0"));
        let mut answer = query(b"\x03www\x04TEST\0");
        answer[2] |= 0x80;
        assert!(question_key.is_answered_by(&answer));
        assert!(!question_key.is_answered_by(&query(b"\x03wwx\x04test\0")));
        let mut other = answer.clone();
        *other.last_mut().unwrap() = 3;
        assert!(!question_key.is_answered_by(&other), "another class");
        let mut other = answer.clone();
        other[2] |= 5 << 3;
        assert!(!question_key.is_answered_by(&other), "another opcode");
    }

    #[test]
    fn an_error_may_omit_the_question() {
        let question_key = QuestionKey::of(&query(b"\x01a\0"));
        assert!(question_key.is_answered_by(&[0, 0, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert!(!question_key.is_answered_by(&[0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    }

    #[test]
    fn damaged_messages_are_compared_as_far_as_they_go() {
        for cut in 0..query(b"\x03www\0").len() {
            let m = &query(b"\x03www\0")[..cut];
            assert_eq!(QuestionKey::of(m), QuestionKey::of(m));
            assert_eq!(is_query(m), cut >= 12);
        }
        assert_ne!(QuestionKey::of(&query(b"\x3f")), QuestionKey::of(&query(b"\x3e")));
    }
}
