//! Events of MQTT.

use gannet_base::Interval;
use gannet_event::Connection;

use super::message::Qualities;
use super::message::Topics;

gannet_event::record! {
    /// How a client introduces itself.
    pub struct ConnectMsg<'a> = "MQTT::ConnectMsg" {
        /// Name of the protocol.
        protocol_name: &'a [u8] = "protocol_name",
        /// Its version.
        protocol_version: u64 = "protocol_version",
        /// The client's name.
        client_id: &'a [u8] = "client_id",
        /// Longest silence between two packets.
        keep_alive: Interval = "keep_alive",
        /// Whether earlier sessions are forgotten.
        clean_session: bool = "clean_session",
        /// Whether the last will is kept for later subscribers.
        will_retain: bool = "will_retain",
        /// Quality of the last will.
        will_qos: u64 = "will_qos",
        /// Topic of the last will.
        will_topic: Option<&'a [u8]> = "will_topic",
        /// Text of the last will.
        will_msg: Option<&'a [u8]> = "will_msg",
        /// User name.
        username: Option<&'a [u8]> = "username",
        /// The password.
        password: Option<&'a [u8]> = "password",
    }
}

gannet_event::record! {
    /// The server's answer.
    #[derive(Clone, Copy, Debug)]
    pub struct ConnectAckMsg = "MQTT::ConnectAckMsg" {
        /// Its code; 0 is success.
        return_code: u64 = "return_code",
        /// Whether the server has a session of the client.
        session_present: bool = "session_present",
    }
}

gannet_event::record! {
    /// A message.
    pub struct PublishMsg<'a> = "MQTT::PublishMsg" {
        /// Whether it was sent before.
        dup: bool = "dup",
        /// Quality: 0 at most once, 1 at least once, 2 exactly once.
        qos: u64 = "qos",
        /// Whether the server keeps it for later subscribers.
        retain: bool = "retain",
        /// Topic.
        topic: &'a [u8] = "topic",
        /// Text, its first 100 bytes.
        payload: &'a [u8] = "payload",
        /// Length of the whole text.
        payload_len: u64 = "payload_len",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Mqtt);

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// A client introduces itself.
        pub struct MqttConnect<'a> = "mqtt_connect" {
            /// The contents of the message.
            msg: ConnectMsg<'a> = "msg",
        }

        /// A client asks whether the server is still there.
        pub struct MqttPingreq = "mqtt_pingreq", opt_in {}

        /// The server is still there.
        pub struct MqttPingresp = "mqtt_pingresp", opt_in {}

        /// A client leaves.
        pub struct MqttDisconnect = "mqtt_disconnect", opt_in {}

        /// A server accepts or refuses a client.
        pub struct MqttConnack = "mqtt_connack" {
            /// The contents of the message.
            msg: ConnectAckMsg = "msg",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    } {
        /// A message is sent.
        pub struct MqttPublish<'a> = "mqtt_publish" {
            /// Its number; 0 for quality 0.
            msg_id: u16 = "msg_id",
            /// The message.
            msg: PublishMsg<'a> = "msg",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Its number.
        msg_id: u16 = "msg_id",
    } {
        /// A message of quality 1 arrived.
        pub struct MqttPuback = "mqtt_puback" {}

        /// A message of quality 2 arrived.
        pub struct MqttPubrec = "mqtt_pubrec" {}

        /// A message of quality 2 may be forgotten.
        pub struct MqttPubrel = "mqtt_pubrel" {}

        /// A message of quality 2 is forgotten.
        pub struct MqttPubcomp = "mqtt_pubcomp" {}
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Number of the request.
        msg_id: u16 = "msg_id",
    } {
        /// A client asks for topics.
        pub struct MqttSubscribe<'a> = "mqtt_subscribe" {
            /// The topics.
            topics: Topics<'a> = "topics",
            /// Requested quality of service, for each topic.
            requested_qos: Qualities<'a> = "requested_qos",
        }

        /// A server grants topics.
        pub struct MqttSuback = "mqtt_suback" {
            /// Quality of the first topic.
            granted_qos: u64 = "granted_qos",
        }

        /// A client asks for topics no longer.
        pub struct MqttUnsubscribe<'a> = "mqtt_unsubscribe" {
            /// The topics.
            topics: &'a Vec<&'a [u8]> = "topics",
        }

        /// A server confirms the end of subscriptions.
        pub struct MqttUnsuback = "mqtt_unsuback" {}
    }
}
