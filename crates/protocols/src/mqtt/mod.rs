//! MQTT, the common subset of versions 3.1 to 5.0 (OASIS MQTT 3.1.1).
//!
//! As in Zeek, each chunk of the stream is parsed as one packet ([`message`]). A CONNECT or PUBLISH
//! confirms the protocol. Rows: mqtt_connect.log with the CONNACK, mqtt_subscribe.log with the
//! SUBACK or UNSUBACK, mqtt_publish.log when the delivery of a message is complete or failed to
//! complete in time.

mod analyzer;
mod detect;
pub mod events;
pub mod message;
mod rows;

pub use analyzer::Analyzer;
pub use rows::ConnectRow;
pub use rows::PublishRow;
pub use rows::SubscribeRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Limit;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry {
        ports: Ports::tcp(&[1883]),
        pending: Some(Limit {
            name: "pending-mqtt",
            default: 1_000,
            what: "Incomplete MQTT deliveries, and subscriptions; further ones are ignored.",
            reported_by: "mqtt_excessive_pending_publishes",
        }),
        tcp_rules: detect::TCP,
        ..Entry::new(Tag::Mqtt, "MQTT", "mqtt")
    }],
    events: &[events::EVENTS],
    logs: &[
        Log::of::<ConnectRow<'_>>().stream("MQTT::CONNECT_LOG"),
        Log::of::<PublishRow<'_>>().stream("MQTT::PUBLISH_LOG"),
        Log::of::<SubscribeRow<'_>>().stream("MQTT::SUBSCRIBE_LOG"),
    ],
};
