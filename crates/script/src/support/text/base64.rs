//! Base64 with a configurable alphabet.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes `data`; with the standard alphabet unless another is given.
#[must_use]
pub fn encode(data: &[u8], alphabet: Option<&[u8; 64]>) -> Vec<u8> {
    let alphabet = alphabet.unwrap_or(STANDARD);
    let mut text = Vec::with_capacity(data.len().div_ceil(3) * 4);
    for group in data.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = alphabet[(bits >> (18 - 6 * at) & 0x3f) as usize];
            text.push(if at > group.len() { b'=' } else { digit });
        }
    }
    text
}

/// Decodes base64. Returns the bytes, or `None` if the text is not base64, and messages to report: the first
/// error, and that the last group was incomplete and was padded.
#[must_use]
pub fn decode(text: &[u8], alphabet: Option<&[u8; 64]>) -> (Option<Vec<u8>>, Vec<String>) {
    let mut decoder = Decoder::new(alphabet.unwrap_or(STANDARD));
    decoder.read(text);
    if decoder.errors > 0 {
        return (None, decoder.messages);
    }
    let missing = decoder.group.len();
    if missing != 0 {
        if missing < 4 {
            let bits = (4 - missing) * 6;
            decoder
                .messages
                .push(format!("incomplete base64 group, padding with {bits} bits of 0"));
        }
        decoder.read(&b"==="[..4 - missing]);
    }
    (Some(decoder.bytes), decoder.messages)
}

/// Whether a text is base64; the last group may be incomplete.
#[must_use]
pub fn is_valid(text: &[u8], alphabet: Option<&[u8; 64]>) -> bool {
    let mut decoder = Decoder::new(alphabet.unwrap_or(STANDARD));
    decoder.read(text);
    decoder.errors == 0
}

struct Decoder {
    values: [Option<u8>; 256],
    group: Vec<u8>,
    padding: usize,
    ended: bool,
    errors: u32,
    bytes: Vec<u8>,
    messages: Vec<String>,
}

impl Decoder {
    fn new(alphabet: &[u8; 64]) -> Self {
        let mut values = [None; 256];
        for (value, byte) in alphabet.iter().enumerate() {
            values[usize::from(*byte)] = Some(value as u8);
        }
        values[usize::from(b'=')] = Some(0);
        Decoder {
            values,
            group: Vec::with_capacity(4),
            padding: 0,
            ended: false,
            errors: 0,
            bytes: Vec::new(),
            messages: Vec::new(),
        }
    }

    fn error(&mut self, message: impl FnOnce() -> String) {
        self.errors += 1;
        if self.errors == 1 {
            self.messages.push(message());
        }
    }

    fn read(&mut self, text: &[u8]) {
        for byte in text {
            if *byte == b'=' {
                self.padding += 1;
            }
            match self.values[usize::from(*byte)] {
                Some(value) => self.group.push(value),
                None => self.error(|| format!("character {byte} ignored by Base64 decoding")),
            }
            if self.group.len() == 4 {
                self.finish_group();
            }
        }
    }

    fn finish_group(&mut self) {
        if self.ended {
            self.error(|| "extra base64 groups after '=' padding are ignored".to_owned());
            self.group.clear();
            return;
        }
        let bits = self.group.iter().fold(0_u32, |bits, value| bits << 6 | u32::from(*value));
        let count = 3_usize.saturating_sub(self.padding);
        self.bytes.extend_from_slice(&bits.to_be_bytes()[1..1 + count]);
        self.ended = self.padding > 0;
        self.padding = 0;
        self.group.clear();
    }
}
