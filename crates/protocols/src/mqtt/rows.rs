use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Enum;
use gannet_log::Type;
use gannet_log::Value;
use gannet_log::Vector;

gannet_log::row! {
    /// One row for each MQTT session.
    pub struct ConnectRow<'a> = "mqtt_connect" {
        /// Time of the connect message.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// Name of the protocol.
        proto_name: Option<&'a [u8]> = "proto_name",
        /// Its version.
        proto_version: Option<Version> = "proto_version",
        /// The client's name.
        client_id: Option<&'a [u8]> = "client_id",
        /// The server's answer.
        connect_status: Status = "connect_status",
        /// Topic of the client's last will message.
        will_topic: Option<&'a [u8]> = "will_topic",
        /// Its text.
        will_payload: Option<&'a [u8]> = "will_payload",
    }
}

gannet_log::row! {
    /// One row for each subscription, or its end.
    pub struct SubscribeRow<'a> = "mqtt_subscribe" {
        /// When it was asked for.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// Whether it starts or ends the subscription.
        action: Enum = "action",
        /// Topics.
        topics: Vector<&'a [u8]> = "topics",
        /// Requested quality of service, for each topic.
        qos_levels: Option<Vector<u8>> = "qos_levels",
        /// Granted quality of service for the first topic.
        granted_qos_level: Option<u8> = "granted_qos_level",
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
        /// The connection's ends.
        id: ConnId = "id",
        /// Whether the client sent it.
        from_client: bool = "from_client",
        /// Whether the server keeps it for later subscribers.
        retain: bool = "retain",
        /// Quality of service.
        qos: Quality = "qos",
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
        pub struct $ty(pub u8);

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

/// A version, written as its name.
#[derive(Clone, Copy, Debug)]
pub struct Version(pub u8);

impl Value for Version {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        match self.0 {
            3 => e.plain(b"3.1"),
            4 => e.plain(b"3.1.1"),
            5 => e.plain(b"5.0"),
            // Signed at first and then a count: that is how Zeek has the high bit of a bridge.
            n => e.plain(format!("unknown-version-{}", i64::from(n as i8) as u64).as_bytes()),
        }
    }
}

named! {
    /// A quality of delivery, in words.
    Quality, "unknown-qos-level",
    0 => "at most once", 1 => "at least once", 2 => "exactly once"
}

named! {
    /// The answer to a CONNECT, in words.
    Status, "unknown-return-code",
    0 => "Connection Accepted",
    1 => "Refused: unacceptable protocol version",
    2 => "Refused: identifier rejected",
    3 => "Refused: server unavailable",
    4 => "Refused: bad user name or password",
    5 => "Refused: not authorized"
}
