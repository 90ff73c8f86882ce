use gannet_base::Dir;
use gannet_base::Interval;

use super::events::*;
use super::message::Packet;
use super::message::QosLevels;
use super::message::Step;
use super::message::Topics;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// Maximum number of bytes of a payload that are logged.
const MAX_PAYLOAD: u64 = 100;

/// The first bytes of a payload, which rows and events contain.
fn payload_prefix<'a>(cx: &Context<'_>, payload: &'a [u8]) -> &'a [u8] {
    let max = cx.env.setting("MQTT::max_payload_size", MAX_PAYLOAD);
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    payload.get(..max).unwrap_or(payload)
}

/// The analyzer of one connection.
pub struct Analyzer {
    rows: Rows,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { rows: Rows::default() }
    }

    fn packet(&mut self, cx: &mut Context<'_>, from: Dir, packet: &Packet<'_>) {
        let (rows, is_orig) = (&mut self.rows, from.is_orig());
        match packet {
            Packet::Connect(m) => {
                cx.report(rows, |c| MqttConnect {
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
                });
                cx.confirm(Tag::Mqtt);
            }
            Packet::ConnAck(code, session_present) => {
                let (return_code, session_present) = ((*code).into(), *session_present);
                let msg = ConnectAckMsg { return_code, session_present };
                cx.report(rows, |c| MqttConnack { c, msg });
            }
            Packet::Publish(p) => {
                let payload = payload_prefix(cx, p.payload);
                cx.report(rows, |c| MqttPublish {
                    c,
                    is_orig,
                    msg_id: p.number,
                    msg: PublishMsg {
                        dup: p.dup,
                        qos: p.qos.into(),
                        retain: p.retain,
                        topic: p.topic,
                        payload,
                        payload_len: p.payload.len() as u64,
                    },
                });
                cx.confirm(Tag::Mqtt);
            }
            Packet::Delivery(step, number) => {
                let msg_id = *number;
                match step {
                    Step::Ack => cx.report(rows, |c| MqttPuback { c, is_orig, msg_id }),
                    Step::Rec => cx.report(rows, |c| MqttPubrec { c, is_orig, msg_id }),
                    Step::Rel => cx.report(rows, |c| MqttPubrel { c, is_orig, msg_id }),
                    Step::Comp => cx.report(rows, |c| MqttPubcomp { c, is_orig, msg_id }),
                }
            }
            Packet::Subscribe(number, subscriptions) => cx.report(rows, |c| MqttSubscribe {
                c,
                msg_id: *number,
                topics: Topics(subscriptions),
                requested_qos: QosLevels(subscriptions),
            }),
            Packet::SubAck(msg_id, qos) => {
                let (msg_id, granted_qos) = (*msg_id, (*qos).into());
                cx.report(rows, |c| MqttSuback { c, msg_id, granted_qos });
            }
            Packet::Unsubscribe(msg_id, topics) => {
                cx.report(rows, |c| MqttUnsubscribe { c, msg_id: *msg_id, topics });
            }
            Packet::UnsubAck(msg_id) => {
                cx.report(rows, |c| MqttUnsuback { c, msg_id: *msg_id });
            }
            Packet::PingReq => cx.raise(|c| MqttPingreq { c }),
            Packet::PingResp => cx.raise(|c| MqttPingresp { c }),
            Packet::Disconnect => cx.raise(|c| MqttDisconnect { c }),
            Packet::Other => {}
        }
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        match Packet::parse(data) {
            Ok(packet) => self.packet(cx, from, &packet),
            Err(e) => cx.violation(Tag::Mqtt, &e.to_string(), &[]),
        }
    }

    // Entries without an acknowledgement are lost with the connection: Zeek's tables of a
    // connection lack the expiry attributes that would write them.
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
        // The entry does not expire, however long the other side is silent.
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
