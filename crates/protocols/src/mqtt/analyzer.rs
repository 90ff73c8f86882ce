use std::collections::BTreeMap;

use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_log::Enum;
use gannet_log::Vector;

use super::events::*;
use super::message::Packet;
use super::message::Publish;
use super::message::Step;
use super::rows::ConnectRow;
use super::rows::PublishRow;
use super::rows::Quality;
use super::rows::Status;
use super::rows::SubscribeRow;
use super::rows::Version;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::limit_reached;

/// The source of its weirds.
const SOURCE: Option<&str> = Some("MQTT");

/// Bytes of a message's text that are logged.
const MAX_PAYLOAD: u64 = 100;

/// The beginning of a message's text that rows and events show.
fn shown<'a>(cx: &Context<'_>, payload: &'a [u8]) -> &'a [u8] {
    let max = cx.env.setting("MQTT::max_payload_size", MAX_PAYLOAD);
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    payload.get(..max).unwrap_or(payload)
}

/// The analyzer of one connection.
pub struct Analyzer {
    /// When the first packet that counts was seen.
    since: Option<Time>,
    connect: Connect,
    publish: BTreeMap<u16, Delivery>,
    subscribe: BTreeMap<u16, Subscription>,
}

#[derive(Default)]
struct Connect {
    protocol: Option<Vec<u8>>,
    version: Option<u8>,
    client_id: Option<Vec<u8>>,
    will: Option<(Vec<u8>, Vec<u8>)>,
}

struct Delivery {
    ts: Time,
    from: Dir,
    retain: bool,
    quality: u8,
    topic: Vec<u8>,
    payload: Vec<u8>,
    len: usize,
    rec: bool,
    rel: bool,
}

struct Subscription {
    ts: Time,
    topics: Vec<Vec<u8>>,
    /// Unset for the end of subscriptions.
    qualities: Option<Vec<u8>>,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            since: None,
            connect: Connect::default(),
            publish: BTreeMap::new(),
            subscribe: BTreeMap::new(),
        }
    }

    fn packet(&mut self, cx: &mut Context<'_>, from: Dir, packet: Packet<'_>) {
        let has_row = !matches!(
            packet,
            Packet::PingReq | Packet::PingResp | Packet::Disconnect | Packet::Other
        );
        if has_row {
            self.since.get_or_insert(cx.now);
        }
        raise(cx, from, &packet);
        match packet {
            Packet::Connect(c) => {
                self.connect = Connect {
                    protocol: Some(c.protocol.to_vec()),
                    version: Some(c.version),
                    client_id: Some(c.client_id.to_vec()),
                    will: c
                        .will
                        .map(|(topic, text)| (topic.to_vec(), text.to_vec()))
                        .or(self.connect.will.take()),
                };
                cx.confirm(Tag::Mqtt);
            }
            Packet::ConnAck(code, _) => {
                let c = &self.connect;
                cx.log(&ConnectRow {
                    ts: self.since.unwrap_or(cx.now),
                    uid: cx.conn.uid,
                    id: cx.conn.id,
                    proto_name: c.protocol.as_deref(),
                    proto_version: c.version.map(Version),
                    client_id: c.client_id.as_deref(),
                    connect_status: Status(code),
                    will_topic: c.will.as_ref().map(|w| &w.0[..]),
                    will_payload: c.will.as_ref().map(|w| &w.1[..]),
                });
            }
            Packet::Publish(p) => {
                self.published(cx, from, &p);
                cx.confirm(Tag::Mqtt);
            }
            Packet::Delivery(step, number) => self.step(cx, step, number),
            Packet::Subscribe(number, topics) => {
                let qualities = Some(topics.iter().map(|t| t.1).collect());
                let topics = topics.iter().map(|t| t.0.to_vec()).collect();
                self.asked(cx, number, Subscription { ts: cx.now, topics, qualities });
            }
            Packet::Unsubscribe(number, topics) => {
                let topics = topics.iter().map(|t| t.to_vec()).collect();
                self.asked(cx, number, Subscription { ts: cx.now, topics, qualities: None });
            }
            Packet::SubAck(number, quality) => {
                if let Some(s) = self.subscribe.remove(&number) {
                    s.write(cx, Some(quality), true);
                }
            }
            Packet::UnsubAck(number) => {
                if let Some(s) = self.subscribe.remove(&number) {
                    s.write(cx, None, true);
                }
            }
            Packet::PingReq | Packet::PingResp | Packet::Disconnect | Packet::Other => {}
        }
    }

    fn published(&mut self, cx: &mut Context<'_>, from: Dir, p: &Publish<'_>) {
        let delivery = Delivery {
            ts: cx.now,
            from,
            retain: p.retain,
            quality: p.quality,
            topic: p.topic.to_vec(),
            payload: shown(cx, p.payload).to_vec(),
            len: p.payload.len(),
            rec: false,
            rel: false,
        };
        if p.quality == 0 {
            // It has no number, and so takes the place of one that has 0.
            self.publish.remove(&0);
            delivery.write(cx);
        } else if self.publish.len() < cx.env.pending.of(Tag::Mqtt)
            || self.publish.contains_key(&p.number)
        {
            self.publish.insert(p.number, delivery);
            cx.conn.note_table(self.publish.len());
        } else {
            let count = self.publish.len().to_string();
            limit_reached(cx, "mqtt_excessive_pending_publishes", &count, SOURCE);
        }
    }

    fn step(&mut self, cx: &mut Context<'_>, step: Step, number: u16) {
        let Some(d) = self.publish.get_mut(&number) else { return };
        let done = match step {
            Step::Ack => d.quality == 1,
            Step::Rec => {
                d.rec = true;
                false
            }
            Step::Rel => {
                d.rel = true;
                false
            }
            Step::Comp => d.quality == 2 && d.rec && d.rel,
        };
        if done {
            d.write(cx);
            self.publish.remove(&number);
        }
    }

    fn asked(&mut self, cx: &mut Context<'_>, number: u16, s: Subscription) {
        if self.subscribe.len() < cx.env.pending.of(Tag::Mqtt)
            || self.subscribe.contains_key(&number)
        {
            self.subscribe.insert(number, s);
            cx.conn.note_table(self.subscribe.len());
        } else {
            let count = self.subscribe.len().to_string();
            limit_reached(cx, "mqtt_excessive_pending_subscriptions", &count, SOURCE);
        }
    }
}

fn raise(cx: &mut Context<'_>, from: Dir, packet: &Packet<'_>) {
    let is_orig = from.is_orig();
    match packet {
        Packet::Connect(m) => cx.raise(|c| MqttConnect {
            c,
            msg: ConnectMsg {
                protocol_name: m.protocol,
                protocol_version: m.version.into(),
                client_id: m.client_id,
                keep_alive: Interval::from_secs(m.keep_alive.into()),
                clean_session: m.flags & 2 != 0,
                will_retain: m.flags & 0x20 != 0,
                will_qos: u64::from(m.flags >> 3 & 3),
                will_topic: m.will.map(|(topic, _)| topic),
                will_msg: m.will.map(|(_, text)| text),
                username: m.user,
                password: m.password,
            },
        }),
        Packet::ConnAck(code, session_present) => {
            let msg =
                ConnectAckMsg { return_code: (*code).into(), session_present: *session_present };
            cx.raise(|c| MqttConnack { c, msg });
        }
        Packet::Publish(p) => {
            let payload = shown(cx, p.payload);
            cx.raise(|c| MqttPublish {
                c,
                is_orig,
                msg_id: p.number,
                msg: PublishMsg {
                    dup: p.again,
                    qos: p.quality.into(),
                    retain: p.retain,
                    topic: p.topic,
                    payload,
                    payload_len: p.payload.len() as u64,
                },
            });
        }
        Packet::Delivery(step, number) => {
            let msg_id = *number;
            match step {
                Step::Ack => cx.raise(|c| MqttPuback { c, is_orig, msg_id }),
                Step::Rec => cx.raise(|c| MqttPubrec { c, is_orig, msg_id }),
                Step::Rel => cx.raise(|c| MqttPubrel { c, is_orig, msg_id }),
                Step::Comp => cx.raise(|c| MqttPubcomp { c, is_orig, msg_id }),
            }
        }
        Packet::Subscribe(number, wishes) => cx.raise(|c| MqttSubscribe {
            c,
            msg_id: *number,
            topics: wishes.iter().map(|w| w.0).collect(),
            requested_qos: wishes.iter().map(|w| w.1.into()).collect(),
        }),
        Packet::SubAck(msg_id, quality) => {
            let (msg_id, granted_qos) = (*msg_id, (*quality).into());
            cx.raise(|c| MqttSuback { c, msg_id, granted_qos });
        }
        Packet::Unsubscribe(msg_id, topics) => {
            cx.raise(|c| MqttUnsubscribe { c, msg_id: *msg_id, topics: topics.clone() });
        }
        Packet::UnsubAck(msg_id) => cx.raise(|c| MqttUnsuback { c, msg_id: *msg_id }),
        Packet::PingReq => cx.raise(|c| MqttPingreq { c }),
        Packet::PingResp => cx.raise(|c| MqttPingresp { c }),
        Packet::Disconnect => cx.raise(|c| MqttDisconnect { c }),
        Packet::Other => {}
    }
}

impl Delivery {
    fn write(&self, cx: &mut Context<'_>) {
        cx.log(&PublishRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            from_client: self.from.is_orig(),
            retain: self.retain,
            qos: Quality(self.quality),
            status: "ok",
            topic: &self.topic,
            payload: &self.payload,
            payload_len: self.len as u64,
        });
    }
}

impl Subscription {
    fn write(&self, cx: &mut Context<'_>, granted: Option<u8>, ack: bool) {
        let action = if self.qualities.is_some() { "MQTT::SUBSCRIBE" } else { "MQTT::UNSUBSCRIBE" };
        cx.log(&SubscribeRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            action: Enum(action),
            topics: Vector(self.topics.iter().map(|t| &t[..]).collect()),
            qos_levels: self.qualities.clone().map(Vector),
            granted_qos_level: granted,
            ack,
        });
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        match Packet::parse(data) {
            Ok(packet) => self.packet(cx, from, packet),
            Err(e) => cx.violation(Tag::Mqtt, &e.to_string(), &[]),
        }
    }

    // What still waits is lost with its connection: the attributes by which Zeek's tables would give it
    // away in time are not those of the tables that it makes for one.
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    fn run(packets: &[(Dir, &[u8])]) -> (Harness, Analyzer) {
        let mut h = Harness::new(Proto::Tcp, 1883);
        let mut a = Analyzer::new(&mut h.cx());
        for (dir, data) in packets {
            a.stream(&mut h.cx(), *dir, data);
        }
        (h, a)
    }

    #[test]
    fn sessions_and_subscriptions() {
        let (h, _) = run(&[
            (Dir::Orig, b"\x10\x0e\0\x04MQTT\x04\x02\0\x3c\0\x02me"),
            (Dir::Resp, b"\x20\x02\0\0"),
            (Dir::Orig, b"\x82\x06\0\x01\0\x01a\x02"),
            (Dir::Resp, b"\x90\x03\0\x01\x01"),
        ]);
        assert!(h.confirmed(Tag::Mqtt));
        let r = &h.rows("mqtt_connect")[0];
        assert_eq!((&*r["proto_version"], &*r["client_id"]), ("3.1.1", "me"));
        assert_eq!(r["connect_status"], "Connection Accepted");
        let r = &h.rows("mqtt_subscribe")[0];
        assert_eq!((&*r["action"], &*r["topics"], &*r["ack"]), ("MQTT::SUBSCRIBE", "a", "T"));
        assert_eq!((&*r["qos_levels"], &*r["granted_qos_level"]), ("2", "1"));
    }

    #[test]
    fn a_bridge_has_the_high_bit() {
        let (h, _) = run(&[
            (Dir::Orig, b"\x10\x0e\0\x04MQTT\x84\x02\0\x3c\0\x02me"),
            (Dir::Resp, b"\x20\x02\0\0"),
        ]);
        let version = &h.rows("mqtt_connect")[0]["proto_version"];
        assert_eq!(version, "unknown-version-18446744073709551492");
    }

    #[test]
    fn deliveries() {
        let (mut h, mut a) = run(&[
            (Dir::Orig, b"\x30\x06\0\x01tabc"),
            (Dir::Orig, b"\x32\x08\0\x01t\0\x07abc"),
            (Dir::Resp, b"\x40\x02\0\x07"),
            (Dir::Orig, b"\x34\x08\0\x01t\0\x08abc"),
        ]);
        let rows = h.rows("mqtt_publish");
        assert_eq!(rows.len(), 2);
        assert_eq!((&*rows[1]["qos"], &*rows[1]["status"]), ("at least once", "ok"));
        // However long the other side is silent.
        h.now += Interval::from_secs(20);
        a.stream(&mut h.cx(), Dir::Orig, b"\xc0\0");
        a.finish(&mut h.cx());
        assert_eq!(h.rows("mqtt_publish").len(), 2);
    }
    #[test]
    fn what_has_no_number_has_the_place_of_number_0() {
        let (h, _) = run(&[
            (Dir::Orig, b"\x32\x08\0\x01t\0\0abc"),
            (Dir::Orig, b"\x30\x06\0\x01tdef"),
            (Dir::Resp, b"\x40\x02\0\0"),
        ]);
        let rows = h.rows("mqtt_publish");
        assert_eq!((rows.len(), &*rows[0]["payload"]), (1, "def"));
    }
}
