use gannet_base::Dir;
use gannet_base::Time;

use super::message::Packet;
use super::message::Publish;
use super::message::Step;
use super::rows::ConnectRow;
use super::rows::Status;
use super::rows::Version;
use super::waiting::Delivery;
use super::waiting::Subscription;
use super::waiting::Waiting;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// Bytes of a message's text that are logged.
const MAX_PAYLOAD: usize = 100;

/// The analyzer of one connection.
pub struct Analyzer {
    /// When the first packet that counts was seen.
    since: Option<Time>,
    connect: Connect,
}

#[derive(Default)]
struct Connect {
    protocol: Option<Vec<u8>>,
    version: Option<u8>,
    client_id: Option<Vec<u8>>,
    will: Option<(Vec<u8>, Vec<u8>)>,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { since: None, connect: Connect::default() }
    }

    fn packet(&mut self, cx: &mut Context<'_>, from: Dir, packet: Packet<'_>) {
        if packet != Packet::Other {
            self.since.get_or_insert(cx.now);
            waiting(cx);
        }
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
            Packet::ConnAck(code) => {
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
                published(cx, from, &p);
                cx.confirm(Tag::Mqtt);
            }
            Packet::Delivery(step, number) => advance(cx, step, number),
            Packet::Subscribe(number, topics) => {
                let qualities = Some(topics.iter().map(|t| t.1).collect());
                let topics = topics.iter().map(|t| t.0.to_vec()).collect();
                asked(cx, number, Subscription { ts: cx.now, topics, qualities });
            }
            Packet::Unsubscribe(number, topics) => {
                let topics = topics.iter().map(|t| t.to_vec()).collect();
                asked(cx, number, Subscription { ts: cx.now, topics, qualities: None });
            }
            Packet::SubAck(number, quality) => {
                answered(cx, number, Some(quality));
            }
            Packet::UnsubAck(number) => {
                answered(cx, number, None);
            }
            Packet::Other => {}
        }
    }
}

/// What waits on the connection.
fn waiting<'a>(cx: &'a mut Context<'_>) -> &'a mut Waiting {
    cx.env.mqtt.of(cx.conn.uid, cx.conn.id, cx.now)
}

fn published(cx: &mut Context<'_>, from: Dir, p: &Publish<'_>) {
    let delivery = Delivery {
        ts: cx.now,
        from,
        retain: p.retain,
        quality: p.quality,
        topic: p.topic.to_vec(),
        payload: p.payload[..p.payload.len().min(MAX_PAYLOAD)].to_vec(),
        len: p.payload.len(),
        rec: false,
        rel: false,
    };
    let limit = cx.env.pending.mqtt;
    let publish = &mut waiting(cx).publish;
    if p.quality == 0 {
        // It has no number, and so takes the place of one that has 0.
        publish.remove(&0);
        delivery.write(cx.env, cx.now, (cx.conn.uid, cx.conn.id), "ok");
    } else if publish.len() < limit || publish.contains_key(&p.number) {
        publish.insert(p.number, delivery);
        let many = publish.len();
        cx.conn.note_table(many);
    }
}

fn advance(cx: &mut Context<'_>, step: Step, number: u16) {
    let publish = &mut waiting(cx).publish;
    let Some(d) = publish.get_mut(&number) else { return };
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
    if done && let Some(d) = publish.remove(&number) {
        d.write(cx.env, cx.now, (cx.conn.uid, cx.conn.id), "ok");
    }
}

fn asked(cx: &mut Context<'_>, number: u16, s: Subscription) {
    let limit = cx.env.pending.mqtt;
    let subscribe = &mut waiting(cx).subscribe;
    if subscribe.len() < limit || subscribe.contains_key(&number) {
        subscribe.insert(number, s);
        let many = subscribe.len();
        cx.conn.note_table(many);
    }
}

fn answered(cx: &mut Context<'_>, number: u16, granted: Option<u8>) {
    if let Some(s) = waiting(cx).subscribe.remove(&number) {
        s.write(cx.env, cx.now, (cx.conn.uid, cx.conn.id), granted, true);
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        match Packet::parse(data) {
            Ok(packet) => self.packet(cx, from, packet),
            Err(e) => cx.violation(Tag::Mqtt, &e.to_string(), &[]),
        }
    }
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
        let (h, _) = run(&[
            (Dir::Orig, b"\x30\x06\0\x01tabc"),
            (Dir::Orig, b"\x32\x08\0\x01t\0\x07abc"),
            (Dir::Resp, b"\x40\x02\0\x07"),
            (Dir::Orig, b"\x34\x08\0\x01t\0\x08abc"),
        ]);
        let rows = h.rows("mqtt_publish");
        assert_eq!(rows.len(), 2);
        assert_eq!((&*rows[1]["qos"], &*rows[1]["status"]), ("at least once", "ok"));
    }

    #[test]
    fn what_waits_too_long_is_looked_for_every_ten_seconds() {
        let at = |tenths: i64| Time::from_nanos(tenths * 100_000_000);
        let (mut h, mut a) =
            (Harness::new(Proto::Tcp, 1883), Analyzer { since: None, connect: Connect::default() });
        let asked: &[&[u8]] = &[b"\x34\x08\0\x01t\0\x08abc", b"\x82\x06\0\x01\0\x01a\x02"];
        let mut step = |h: &mut Harness, tenths, packets: &[&[u8]]| {
            h.now = at(tenths);
            h.env.expire(at(tenths), at(tenths));
            for p in packets {
                a.stream(&mut h.cx(), Dir::Orig, p);
            }
            (h.rows("mqtt_publish").len(), h.rows("mqtt_subscribe").len())
        };
        assert_eq!(step(&mut h, 1_000, &[]), (0, 0));
        assert_eq!(step(&mut h, 1_005, asked), (0, 0));
        // Nothing is looked for yet, late as it is; then by whoever's packet comes.
        assert_eq!(step(&mut h, 1_104, &[]), (0, 0));
        assert_eq!(step(&mut h, 1_120, asked), (1, 1));
        assert_eq!(h.rows("mqtt_publish")[0]["status"], "incomplete_qos");
        assert_eq!(h.rows("mqtt_subscribe")[0]["ack"], "F");
        // The next look is ten seconds behind that packet. Ages are of whole seconds.
        assert_eq!(step(&mut h, 1_169, asked), (1, 1));
        assert_eq!(step(&mut h, 1_219, &[]), (1, 1));
        assert_eq!(step(&mut h, 1_220, &[]), (2, 2));
        // What waits is lost with its connection.
        assert_eq!(step(&mut h, 1_221, asked), (2, 2));
        h.env.mqtt.forget(h.conn.uid);
        assert_eq!(step(&mut h, 1_400, &[]), (2, 2));
    }
}
