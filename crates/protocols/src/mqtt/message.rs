//! Packets: a fixed header with type and flags, the length of the rest, then what the type says.

use crate::support::Bytes;

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A client introduces itself.
    Connect(Connect<'a>),
    /// The server's answer: its code.
    ConnAck(u8),
    /// A message.
    Publish(Publish<'a>),
    /// A step of delivering a message: its kind and number.
    Delivery(Step, u16),
    /// Wishes for topics: number, then (topic, quality) each.
    Subscribe(u16, Vec<(&'a [u8], u8)>),
    /// The server's answer: number and quality of the first topic.
    SubAck(u16, u8),
    /// Topics no longer wished for.
    Unsubscribe(u16, Vec<&'a [u8]>),
    /// The server's answer.
    UnsubAck(u16),
    /// Something that is not looked at.
    Other,
}

/// Steps of delivering a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// PUBACK: arrived (quality 1).
    Ack,
    /// PUBREC: arrived (quality 2).
    Rec,
    /// PUBREL: may be forgotten.
    Rel,
    /// PUBCOMP: is forgotten.
    Comp,
}

/// CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    /// Name of the protocol: `MQTT`, earlier `MQIsdp`.
    pub protocol: &'a [u8],
    /// Its version.
    pub version: u8,
    /// The client's name.
    pub client_id: &'a [u8],
    /// Topic and text of the message to send should the client vanish.
    pub will: Option<(&'a [u8], &'a [u8])>,
}

/// PUBLISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Whether the server keeps it for later subscribers.
    pub retain: bool,
    /// Quality: 0 at most once, 1 at least once, 2 exactly once.
    pub quality: u8,
    /// Topic.
    pub topic: &'a [u8],
    /// Number; 0 for quality 0.
    pub number: u16,
    /// Text.
    pub payload: &'a [u8],
}

/// Why a chunk is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The length takes more than four bytes.
    LengthTooLong,
    /// The length takes four bytes, which Zeek does not accept.
    LengthTooLarge,
    /// It ends too early.
    Short,
}

/// Most topics of one packet that are looked at.
const MAX_TOPICS: usize = 1000;

impl<'a> Packet<'a> {
    /// Parses the packet at the front of a chunk.
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let mut b = Bytes(data);
        let first = b.u8().ok_or(Malformed::Short)?;
        let mut length = 0usize;
        let mut digits = 0;
        loop {
            let digit = b.u8().ok_or(Malformed::Short)?;
            if digits < 4 {
                length |= usize::from(digit & 0x7f) << (7 * digits);
            }
            digits += 1;
            if digit & 0x80 == 0 {
                break;
            }
        }
        match digits {
            0..=3 => {}
            4 => return Err(Malformed::LengthTooLarge),
            _ => return Err(Malformed::LengthTooLong),
        }
        let body = b.take(length).ok_or(Malformed::Short)?;
        body_of(first, Bytes(body)).ok_or(Malformed::Short)
    }
}

fn body_of(first: u8, mut b: Bytes<'_>) -> Option<Packet<'_>> {
    Some(match first >> 4 {
        1 => Packet::Connect(connect(&mut b)?),
        2 => {
            b.u8()?;
            Packet::ConnAck(b.u8()?)
        }
        3 => {
            let quality = first >> 1 & 3;
            let topic = string(&mut b)?;
            let number = if quality == 0 { 0 } else { b.u16()? };
            let payload = b.rest();
            Packet::Publish(Publish { retain: first & 1 != 0, quality, topic, number, payload })
        }
        4 => Packet::Delivery(Step::Ack, b.u16()?),
        5 => Packet::Delivery(Step::Rec, b.u16()?),
        6 => Packet::Delivery(Step::Rel, b.u16()?),
        7 => Packet::Delivery(Step::Comp, b.u16()?),
        8 => {
            let number = b.u16()?;
            let mut topics = Vec::new();
            while !b.is_empty() {
                let topic = (string(&mut b)?, b.u8()?);
                if topics.len() < MAX_TOPICS {
                    topics.push(topic);
                }
            }
            Packet::Subscribe(number, topics)
        }
        9 => Packet::SubAck(b.u16()?, b.u8()?),
        10 => {
            let number = b.u16()?;
            let mut topics = Vec::new();
            while !b.is_empty() {
                let topic = string(&mut b)?;
                if topics.len() < MAX_TOPICS {
                    topics.push(topic);
                }
            }
            Packet::Unsubscribe(number, topics)
        }
        11 => Packet::UnsubAck(b.u16()?),
        _ => Packet::Other,
    })
}

fn connect<'a>(b: &mut Bytes<'a>) -> Option<Connect<'a>> {
    let protocol = string(b)?;
    let version = b.u8()?;
    let flags = b.u8()?;
    b.u16()?; // keep alive
    let client_id = string(b)?;
    let will = if flags & 4 != 0 { Some((string(b)?, string(b)?)) } else { None };
    for flag in [0x80, 0x40] {
        // User, password.
        if flags & flag != 0 {
            string(b)?;
        }
    }
    Some(Connect { protocol, version, client_id, will })
}

fn string<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let n = usize::from(b.u16()?);
    b.take(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets() {
        let connect = b"\x10\x15\0\x04MQTT\x04\x06\0\x3c\0\x02me\0\x01t\0\x02hi";
        assert_eq!(
            Packet::parse(connect),
            Ok(Packet::Connect(Connect {
                protocol: b"MQTT",
                version: 4,
                client_id: b"me",
                will: Some((b"t", b"hi")),
            }))
        );
        assert_eq!(
            Packet::parse(b"\x33\x08\0\x01t\0\x07abc and more"),
            Ok(Packet::Publish(Publish {
                retain: true,
                quality: 1,
                topic: b"t",
                number: 7,
                payload: b"abc",
            }))
        );
        assert_eq!(
            Packet::parse(b"\x82\x06\0\x01\0\x01a\x02"),
            Ok(Packet::Subscribe(1, vec![(b"a", 2)]))
        );
        assert_eq!(Packet::parse(b"\x40\x02\0\x07"), Ok(Packet::Delivery(Step::Ack, 7)));
        assert_eq!(Packet::parse(b"\xc0\0"), Ok(Packet::Other));
    }

    #[test]
    fn lengths() {
        assert_eq!(Packet::parse(b"\x30\x05\0"), Err(Malformed::Short));
        assert_eq!(Packet::parse(b"\x30\x80\x80\x80\x01"), Err(Malformed::LengthTooLarge));
        assert_eq!(Packet::parse(b"\x30\x80\x80\x80\x80\x01"), Err(Malformed::LengthTooLong));
        assert_eq!(Packet::parse(b"\x40\x01\x00"), Err(Malformed::Short));
    }
}
