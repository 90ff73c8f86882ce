//! Control packets: a fixed header with type and flags, the remaining length, then the fields of
//! the type.

use std::fmt;

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use crate::support::OutOfBound;
use crate::support::Record;

/// A control packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// CONNECT.
    Connect(Connect<'a>),
    /// CONNACK: return code, and whether the server has a session of the client.
    ConnAck(u8, bool),
    /// PUBLISH.
    Publish(Publish<'a>),
    /// An acknowledgement of PUBLISH: its kind and packet identifier.
    Delivery(Step, u16),
    /// SUBSCRIBE: packet identifier, then topic filter and requested QoS of each subscription.
    Subscribe(u16, Vec<(&'a [u8], u8)>),
    /// SUBACK: packet identifier, and QoS granted to the first topic filter.
    SubAck(u16, u8),
    /// UNSUBSCRIBE: packet identifier and topic filters.
    Unsubscribe(u16, Vec<&'a [u8]>),
    /// UNSUBACK: packet identifier.
    UnsubAck(u16),
    /// PINGREQ.
    PingReq,
    /// PINGRESP.
    PingResp,
    /// DISCONNECT.
    Disconnect,
    /// A packet of another type, which is not parsed.
    Other,
}

/// The topic filters of subscriptions.
#[derive(Clone, Copy, Debug)]
pub struct Topics<'a>(pub &'a [(&'a [u8], u8)]);

impl Arg for Topics<'_> {
    const TYPE: Type = Type::Vector(&Type::String);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        self.0.iter().for_each(|(topic, _)| topic.pack(to));
    }
}

/// The QoS levels of subscriptions.
#[derive(Clone, Copy, Debug)]
pub struct QosLevels<'a>(pub &'a [(&'a [u8], u8)]);

impl Arg for QosLevels<'_> {
    const TYPE: Type = Type::Vector(&Type::Count);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        self.0.iter().for_each(|(_, qos)| u64::from(*qos).pack(to));
    }
}

/// Kinds of acknowledgement of PUBLISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// PUBACK: received (QoS 1).
    Ack,
    /// PUBREC: received (QoS 2, first step).
    Rec,
    /// PUBREL: the identifier may be released (QoS 2, second step).
    Rel,
    /// PUBCOMP: the identifier is released (QoS 2, third step).
    Comp,
}

/// CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    /// Protocol name: `MQTT`, in earlier versions `MQIsdp`.
    pub protocol: &'a [u8],
    /// Protocol level.
    pub version: u8,
    /// Client identifier.
    pub client_id: &'a [u8],
    /// Flags (MQTT 3.1.1 §3.1.2.3).
    pub flags: u8,
    /// Keep alive, in seconds.
    pub keep_alive: u16,
    /// Will: topic and payload of the message that the server publishes if the connection is lost.
    pub will: Option<(&'a [u8], &'a [u8])>,
    /// User name.
    pub user: Option<&'a [u8]>,
    /// The password.
    pub password: Option<&'a [u8]>,
}

/// PUBLISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Whether the server keeps it for later subscribers.
    pub retain: bool,
    /// Whether it is a retransmission (DUP flag).
    pub dup: bool,
    /// QoS: 0 at most once, 1 at least once, 2 exactly once.
    pub qos: u8,
    /// Topic.
    pub topic: &'a [u8],
    /// Packet identifier; 0 for QoS 0.
    pub number: u16,
    /// Payload.
    pub payload: &'a [u8],
}

/// Why a chunk is not an MQTT packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The length takes more than four bytes.
    LengthTooLong,
    /// The length takes four bytes, which Zeek does not accept.
    LengthTooLarge,
    /// The packet ends before its last field.
    Short(OutOfBound),
}

impl From<OutOfBound> for Malformed {
    fn from(e: OutOfBound) -> Self {
        Self::Short(e)
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LengthTooLong => f.write_str("malformed MQTT 'remaining length': too many bytes"),
            Self::LengthTooLarge => f.write_str("malformed MQTT 'remaining length': too large"),
            Self::Short(e) => e.fmt(f),
        }
    }
}

/// Maximum number of topic filters of one packet that are parsed.
const MAX_TOPICS: usize = 1000;

impl<'a> Packet<'a> {
    /// Parses the packet that begins the chunk.
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let mut pdu = Record::new("MQTT_PDU", data);
        let first = pdu.upto("fixed_header", 1)?[0];
        let mut length = 0usize;
        let mut digits = 0;
        // A length that is truncated by the end of the chunk is decoded from the available bytes.
        while let Some(digit) = pdu.rest().first() {
            if digits < 4 {
                length |= usize::from(digit & 0x7f) << (7 * digits);
            }
            digits += 1;
            pdu.at += 1;
            if digit & 0x80 == 0 {
                break;
            }
        }
        match digits {
            0..=3 => {}
            4 => return Err(Malformed::LengthTooLarge),
            _ => return Err(Malformed::LengthTooLong),
        }
        Ok(body_of(first, pdu.upto("command", length)?)?)
    }
}

fn body_of(first: u8, body: &[u8]) -> Result<Packet<'_>, OutOfBound> {
    let number = |d: &[u8]| u16::from_be_bytes([d[0], d[1]]);
    let delivery =
        |step, record| Record::new(record, body).all(2).map(|d| Packet::Delivery(step, number(d)));
    Ok(match first >> 4 {
        1 => Packet::Connect(connect(body)?),
        2 => {
            let d = Record::new("MQTT_connack", body).all(2)?;
            Packet::ConnAck(d[1], d[0] & 1 != 0)
        }
        3 => {
            let mut r = Record::new("MQTT_publish", body);
            let qos = first >> 1 & 3;
            let topic = string(&mut r)?;
            let number = if qos == 0 { 0 } else { number(r.upto("msg_id", 2)?) };
            let payload = r.rest();
            let (retain, dup) = (first & 1 != 0, first & 8 != 0);
            Packet::Publish(Publish { retain, dup, qos, topic, number, payload })
        }
        4 => delivery(Step::Ack, "MQTT_puback")?,
        5 => delivery(Step::Rec, "MQTT_pubrec")?,
        6 => delivery(Step::Rel, "MQTT_pubrel")?,
        7 => delivery(Step::Comp, "MQTT_pubcomp")?,
        8 => {
            let mut r = Record::new("MQTT_subscribe", body);
            let number = number(r.upto("msg_id", 2)?);
            let mut topics = Vec::new();
            while !r.rest().is_empty() {
                let mut topic = Record::new("MQTT_subscribe_topic", r.rest());
                let wish = (string(&mut topic)?, topic.upto("requested_QoS", 1)?[0]);
                r.at += topic.at;
                if topics.len() < MAX_TOPICS {
                    topics.push(wish);
                }
            }
            Packet::Subscribe(number, topics)
        }
        9 => {
            let d = Record::new("MQTT_suback", body).all(3)?;
            Packet::SubAck(number(d), d[2])
        }
        10 => {
            let mut r = Record::new("MQTT_unsubscribe", body);
            let number = number(r.upto("msg_id", 2)?);
            let mut topics = Vec::new();
            while !r.rest().is_empty() {
                let topic = string(&mut r)?;
                if topics.len() < MAX_TOPICS {
                    topics.push(topic);
                }
            }
            Packet::Unsubscribe(number, topics)
        }
        11 => Packet::UnsubAck(number(Record::new("MQTT_unsuback", body).all(2)?)),
        12 => Packet::PingReq,
        13 => Packet::PingResp,
        14 => Packet::Disconnect,
        _ => Packet::Other,
    })
}

fn connect(body: &[u8]) -> Result<Connect<'_>, OutOfBound> {
    let mut r = Record::new("MQTT_connect", body);
    let protocol = string(&mut r)?;
    let fixed = r.upto("keep_alive", 4)?;
    let (version, flags) = (fixed[0], fixed[1]);
    let client_id = string(&mut r)?;
    let will = if flags & 4 != 0 { Some((string(&mut r)?, string(&mut r)?)) } else { None };
    let user = if flags & 0x80 != 0 { Some(string(&mut r)?) } else { None };
    let password = if flags & 0x40 != 0 { Some(string(&mut r)?) } else { None };
    let keep_alive = u16::from_be_bytes([fixed[2], fixed[3]]);
    Ok(Connect { protocol, version, client_id, flags, keep_alive, will, user, password })
}

/// The next string of a record.
fn string<'a>(r: &mut Record<'a>) -> Result<&'a [u8], OutOfBound> {
    let mut s = Record::new("MQTT_string", r.rest());
    let len = s.upto("len", 2)?;
    let text = s.upto("str", usize::from(u16::from_be_bytes([len[0], len[1]])))?;
    r.at += s.at;
    Ok(text)
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
                flags: 6,
                keep_alive: 60,
                user: None,
                password: None,
                protocol: b"MQTT",
                version: 4,
                client_id: b"me",
                will: Some((b"t", b"hi")),
            }))
        );
        assert_eq!(
            Packet::parse(b"\x33\x08\0\x01t\0\x07abc and more"),
            Ok(Packet::Publish(Publish {
                dup: false,
                retain: true,
                qos: 1,
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
        assert_eq!(Packet::parse(b"\xc0\0"), Ok(Packet::PingReq));
    }

    #[test]
    fn lengths() {
        let error = |d| {
            let e = Packet::parse(d).map_or_else(|e| e.to_string(), |p| format!("{p:?}"));
            e.replace(crate::support::BINPAC, "")
        };
        assert_eq!(error(b"\x30\x05\0"), "out_of_bound: MQTT_PDU:command: 7 > 3");
        assert_eq!(Packet::parse(b"\x30\x80\x80\x80\x01"), Err(Malformed::LengthTooLarge));
        assert_eq!(Packet::parse(b"\x30\x80\x80\x80\x80\x01"), Err(Malformed::LengthTooLong));
        assert_eq!(error(b"\x40\x01\0"), "out_of_bound: MQTT_puback: 2 > 1");
        assert_eq!(error(b"\x30\x03\0\x02a"), "out_of_bound: MQTT_string:str: 4 > 3");
        assert_eq!(error(b"\x32\x04\0\x01a\0"), "out_of_bound: MQTT_publish:msg_id: 5 > 4");
        let e = "out_of_bound: MQTT_subscribe_topic:requested_QoS: 4 > 3";
        assert_eq!(error(b"\x82\x05\0\x01\0\x01a"), e);
        let e = "out_of_bound: MQTT_connect:keep_alive: 6 > 4";
        assert_eq!(error(b"\x10\x04\0\0\x04\x06"), e);
        // Without a length, nothing further is parsed.
        assert_eq!(Packet::parse(b"\xf0"), Ok(Packet::Other));
        assert_eq!(error(b"\x30"), "out_of_bound: MQTT_string:len: 2 > 0");
    }
}
