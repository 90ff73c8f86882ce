//! MQTT, versions 3.1 to 5.0 as far as they are alike (OASIS MQTT 3.1.1).
//!
//! As in Zeek, each chunk of the stream is taken for one packet ([`message`]). A CONNECT or
//! PUBLISH confirms the protocol. Rows: mqtt_connect.log with the answer to a CONNECT,
//! mqtt_subscribe.log with the answer to a SUBSCRIBE or UNSUBSCRIBE, mqtt_publish.log when the
//! delivery of a message is complete, or was not in time.

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

/// What the rest of gannet knows of the protocol.
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
