use std::collections::BTreeMap;

use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Enum;
use gannet_log::Type;
use gannet_log::Value;
use gannet_log::Vector;

use super::events::*;
use crate::Context;
use crate::OnEvent;
use crate::Tag;
use crate::support::limit_reached;

gannet_log::row! {
    /// One row for each MQTT session.
    pub struct ConnectRow<'a> = "mqtt_connect" {
        /// Time of the connect message.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// Name of the protocol.
        proto_name: Option<&'a [u8]> = "proto_name",
        /// Protocol version.
        proto_version: Option<Version> = "proto_version",
        /// Client identifier.
        client_id: Option<&'a [u8]> = "client_id",
        /// The server's return code.
        connect_status: Status = "connect_status",
        /// Topic of the client's will.
        will_topic: Option<&'a [u8]> = "will_topic",
        /// Payload of the will.
        will_payload: Option<&'a [u8]> = "will_payload",
    }
}

gannet_log::row! {
    /// One row for each subscription, or its end.
    pub struct SubscribeRow<'a> = "mqtt_subscribe" {
        /// Time of the request.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// Whether it starts or ends the subscription.
        action: Enum = "action",
        /// Topics.
        topics: Vector<&'a [u8]> = "topics",
        /// Requested quality of service, for each topic.
        qos_levels: Option<Vector<u8>> = "qos_levels",
        /// Granted quality of service for the first topic.
        granted_qos_level: Option<u64> = "granted_qos_level",
        /// Whether the server answered.
        ack: bool = "ack",
    }
}

gannet_log::row! {
    /// One row for each message.
    pub struct PublishRow<'a> = "mqtt_publish" {
        /// When it was sent.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// Whether the client sent it.
        from_client: bool = "from_client",
        /// Whether the server keeps it for later subscribers.
        retain: bool = "retain",
        /// Quality of service.
        qos: Qos = "qos",
        /// Status of its delivery.
        status: &'static str = "status",
        /// Topic.
        topic: &'a [u8] = "topic",
        /// The beginning of the payload.
        payload: &'a [u8] = "payload",
        /// Bytes of the payload.
        payload_len: u64 = "payload_len",
    }
}

macro_rules! named {
    ($(#[$doc:meta])* $ty:ident, $unknown:literal, $($code:literal => $name:literal),*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $ty(u64);

        impl Value for $ty {
            const TYPE: Type = Type::Scalar("string");

            fn put<E: Encoder>(&self, e: &mut E) {
                match self.0 {
                    $($code => e.plain($name.as_bytes()),)*
                    n => e.plain(format!(concat!($unknown, "-{}"), n).as_bytes()),
                }
            }
        }
    };
}

/// A protocol version, written by name.
#[derive(Clone, Copy, Debug)]
pub struct Version(u64);

impl Value for Version {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        match self.0 {
            3 => e.plain(b"3.1"),
            4 => e.plain(b"3.1.1"),
            5 => e.plain(b"5.0"),
            // The level is a signed byte that Zeek converts to an unsigned count, so a bridge's
            // high bit is sign-extended.
            n => e.plain(format!("unknown-version-{}", i64::from(n as i8) as u64).as_bytes()),
        }
    }
}

named! {
    /// A QoS, in words.
    Qos, "unknown-qos-level",
    0 => "at most once", 1 => "at least once", 2 => "exactly once"
}

named! {
    /// A return code of CONNACK, in words.
    Status, "unknown-return-code",
    0 => "Connection Accepted",
    1 => "Refused: unacceptable protocol version",
    2 => "Refused: identifier rejected",
    3 => "Refused: server unavailable",
    4 => "Refused: bad user name or password",
    5 => "Refused: not authorized"
}

/// Source of this analyzer's weirds.
const SOURCE: Option<&str> = Some("MQTT");

/// State of the rows of a connection.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Time of the first packet that counts.
    since: Option<Time>,
    connect: Connect,
    publish: BTreeMap<u16, Delivery>,
    subscribe: BTreeMap<u16, Subscription>,
}

#[derive(Debug, Default)]
struct Connect {
    protocol: Option<Vec<u8>>,
    version: Option<u64>,
    client_id: Option<Vec<u8>>,
    will: Option<(Vec<u8>, Vec<u8>)>,
}

#[derive(Debug)]
struct Delivery {
    ts: Time,
    is_orig: bool,
    retain: bool,
    qos: u64,
    topic: Vec<u8>,
    payload: Vec<u8>,
    len: u64,
    rec: bool,
    rel: bool,
}

#[derive(Debug)]
struct Subscription {
    ts: Time,
    topics: Vec<Vec<u8>>,
    /// `None` for UNSUBSCRIBE.
    qos_levels: Option<Vec<u8>>,
}

impl Rows {
    /// Notes a packet that counts.
    fn note_time(&mut self, cx: &Context<'_>) {
        self.since.get_or_insert(cx.now);
    }

    /// Updates the delivery with this packet identifier. If `is_done` returns true for it, it is
    /// complete and its row is written.
    fn step(
        &mut self,
        cx: &mut Context<'_>,
        number: u16,
        is_done: impl FnOnce(&mut Delivery) -> bool,
    ) {
        self.note_time(cx);
        let Some(delivery) = self.publish.get_mut(&number) else { return };
        if is_done(delivery) {
            delivery.write(cx);
            self.publish.remove(&number);
        }
    }

    fn subscribe_requested(&mut self, cx: &mut Context<'_>, number: u16, s: Subscription) {
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

    fn subscribe_acknowledged(&mut self, cx: &mut Context<'_>, number: u16, granted: Option<u64>) {
        self.note_time(cx);
        if let Some(s) = self.subscribe.remove(&number) {
            s.write(cx, granted, true);
        }
    }
}

impl OnEvent<MqttConnect<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MqttConnect<'_>) {
        self.note_time(cx);
        let msg = &event.msg;
        let will = msg.will_topic.zip(msg.will_msg);
        self.connect = Connect {
            protocol: Some(msg.protocol_name.to_vec()),
            version: Some(msg.protocol_version),
            client_id: Some(msg.client_id.to_vec()),
            will: will
                .map(|(topic, text)| (topic.to_vec(), text.to_vec()))
                .or(self.connect.will.take()),
        };
    }
}

impl OnEvent<MqttConnack> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MqttConnack) {
        self.note_time(cx);
        let c = &self.connect;
        cx.log(&ConnectRow {
            ts: self.since.unwrap_or(cx.now),
            uid: cx.conn.uid,
            id: cx.conn.id,
            proto_name: c.protocol.as_deref(),
            proto_version: c.version.map(Version),
            client_id: c.client_id.as_deref(),
            connect_status: Status(event.msg.return_code),
            will_topic: c.will.as_ref().map(|w| &w.0[..]),
            will_payload: c.will.as_ref().map(|w| &w.1[..]),
        });
    }
}

impl OnEvent<MqttPublish<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MqttPublish<'_>) {
        self.note_time(cx);
        let (number, msg) = (event.msg_id, &event.msg);
        let delivery = Delivery {
            ts: cx.now,
            is_orig: event.is_orig,
            retain: msg.retain,
            qos: msg.qos,
            topic: msg.topic.to_vec(),
            payload: msg.payload.to_vec(),
            len: msg.payload_len,
            rec: false,
            rel: false,
        };
        if msg.qos == 0 {
            // A message of QoS 0 has no identifier, so it replaces a message with identifier 0.
            self.publish.remove(&0);
            delivery.write(cx);
        } else if self.publish.len() < cx.env.pending.of(Tag::Mqtt)
            || self.publish.contains_key(&number)
        {
            self.publish.insert(number, delivery);
            cx.conn.note_table(self.publish.len());
        } else {
            let count = self.publish.len().to_string();
            limit_reached(cx, "mqtt_excessive_pending_publishes", &count, SOURCE);
        }
    }
}

impl OnEvent<MqttPuback> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MqttPuback) {
        self.step(cx, event.msg_id, |delivery| delivery.qos == 1);
    }
}

impl OnEvent<MqttPubrec> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MqttPubrec) {
        self.step(cx, event.msg_id, |delivery| {
            delivery.rec = true;
            false
        });
    }
}

impl OnEvent<MqttPubrel> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MqttPubrel) {
        self.step(cx, event.msg_id, |delivery| {
            delivery.rel = true;
            false
        });
    }
}

impl OnEvent<MqttPubcomp> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MqttPubcomp) {
        self.step(cx, event.msg_id, |delivery| delivery.qos == 2 && delivery.rec && delivery.rel);
    }
}

impl OnEvent<MqttSubscribe<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MqttSubscribe<'_>) {
        self.note_time(cx);
        let qos_levels = Some(event.requested_qos.0.iter().map(|(_, qos)| *qos).collect());
        let topics = event.topics.0.iter().map(|(topic, _)| topic.to_vec()).collect();
        self.subscribe_requested(cx, event.msg_id, Subscription { ts: cx.now, topics, qos_levels });
    }
}

impl OnEvent<MqttUnsubscribe<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MqttUnsubscribe<'_>) {
        self.note_time(cx);
        let topics = event.topics.iter().map(|topic| topic.to_vec()).collect();
        self.subscribe_requested(
            cx,
            event.msg_id,
            Subscription { ts: cx.now, topics, qos_levels: None },
        );
    }
}

impl OnEvent<MqttSuback> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MqttSuback) {
        self.subscribe_acknowledged(cx, event.msg_id, Some(event.granted_qos));
    }
}

impl OnEvent<MqttUnsuback> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MqttUnsuback) {
        self.subscribe_acknowledged(cx, event.msg_id, None);
    }
}

impl Delivery {
    fn write(&self, cx: &mut Context<'_>) {
        cx.log(&PublishRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            from_client: self.is_orig,
            retain: self.retain,
            qos: Qos(self.qos),
            status: "ok",
            topic: &self.topic,
            payload: &self.payload,
            payload_len: self.len,
        });
    }
}

impl Subscription {
    fn write(&self, cx: &mut Context<'_>, granted: Option<u64>, ack: bool) {
        let action =
            if self.qos_levels.is_some() { "MQTT::SUBSCRIBE" } else { "MQTT::UNSUBSCRIBE" };
        cx.log(&SubscribeRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            action: Enum(action),
            topics: Vector(self.topics.iter().map(|t| &t[..]).collect()),
            qos_levels: self.qos_levels.clone().map(Vector),
            granted_qos_level: granted,
            ack,
        });
    }
}
