//! Events of MQTT.

use gannet_base::Interval;
use gannet_event::Connection;

use super::message::QosLevels;
use super::message::Topics;

gannet_event::record! {
    /// Contents of CONNECT.
    pub struct ConnectMsg<'a> = "MQTT::ConnectMsg" {
        /// Name of the protocol.
        protocol_name: &'a [u8] = "protocol_name",
        /// Protocol level.
        protocol_version: u64 = "protocol_version",
        /// Client identifier.
        client_id: &'a [u8] = "client_id",
        /// Maximum time between two packets of the client.
        keep_alive: Interval = "keep_alive",
        /// Whether earlier session state is discarded.
        clean_session: bool = "clean_session",
        /// Whether the server retains the will for later subscribers.
        will_retain: bool = "will_retain",
        /// QoS of the will.
        will_qos: u64 = "will_qos",
        /// Topic of the will.
        will_topic: Option<&'a [u8]> = "will_topic",
        /// Payload of the will.
        will_msg: Option<&'a [u8]> = "will_msg",
        /// User name.
        username: Option<&'a [u8]> = "username",
        /// The password.
        password: Option<&'a [u8]> = "password",
    }
}

gannet_event::record! {
    /// Contents of CONNACK.
    #[derive(Clone, Copy, Debug)]
    pub struct ConnectAckMsg = "MQTT::ConnectAckMsg" {
        /// Return code; 0 is success.
        return_code: u64 = "return_code",
        /// Whether the server has a session of the client.
        session_present: bool = "session_present",
    }
}

gannet_event::record! {
    /// Contents of PUBLISH.
    pub struct PublishMsg<'a> = "MQTT::PublishMsg" {
        /// Whether it is a retransmission.
        dup: bool = "dup",
        /// QoS: 0 at most once, 1 at least once, 2 exactly once.
        qos: u64 = "qos",
        /// Whether the server keeps it for later subscribers.
        retain: bool = "retain",
        /// Topic.
        topic: &'a [u8] = "topic",
        /// The first 100 bytes of the payload.
        payload: &'a [u8] = "payload",
        /// Length of the whole payload, in bytes.
        payload_len: u64 = "payload_len",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Mqtt);

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// A client requests a session (CONNECT).
        pub struct MqttConnect<'a> = "mqtt_connect" {
            /// The contents of the message.
            msg: ConnectMsg<'a> = "msg",
        }

        /// A client checks whether the server is alive (PINGREQ).
        pub struct MqttPingreq = "mqtt_pingreq", opt_in {}

        /// A server confirms that it is alive (PINGRESP).
        pub struct MqttPingresp = "mqtt_pingresp", opt_in {}

        /// A client disconnects (DISCONNECT).
        pub struct MqttDisconnect = "mqtt_disconnect", opt_in {}

        /// A server accepts or refuses a session (CONNACK).
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
        /// A message is published (PUBLISH).
        pub struct MqttPublish<'a> = "mqtt_publish" {
            /// Packet identifier; 0 for QoS 0.
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
        /// Packet identifier.
        msg_id: u16 = "msg_id",
    } {
        /// A message of QoS 1 was received (PUBACK).
        pub struct MqttPuback = "mqtt_puback" {}

        /// A message of QoS 2 was received (PUBREC).
        pub struct MqttPubrec = "mqtt_pubrec" {}

        /// The identifier of a message of QoS 2 may be released (PUBREL).
        pub struct MqttPubrel = "mqtt_pubrel" {}

        /// The identifier of a message of QoS 2 is released (PUBCOMP).
        pub struct MqttPubcomp = "mqtt_pubcomp" {}
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Packet identifier of the request.
        msg_id: u16 = "msg_id",
    } {
        /// A client subscribes to topics (SUBSCRIBE).
        pub struct MqttSubscribe<'a> = "mqtt_subscribe" {
            /// The topic filters.
            topics: Topics<'a> = "topics",
            /// Requested quality of service, for each topic.
            requested_qos: QosLevels<'a> = "requested_qos",
        }

        /// A server grants subscriptions (SUBACK).
        pub struct MqttSuback = "mqtt_suback" {
            /// QoS granted to the first topic filter.
            granted_qos: u64 = "granted_qos",
        }

        /// A client unsubscribes from topics (UNSUBSCRIBE).
        pub struct MqttUnsubscribe<'a> = "mqtt_unsubscribe" {
            /// The topic filters.
            topics: &'a Vec<&'a [u8]> = "topics",
        }

        /// A server confirms the end of subscriptions (UNSUBACK).
        pub struct MqttUnsuback = "mqtt_unsuback" {}
    }
}
