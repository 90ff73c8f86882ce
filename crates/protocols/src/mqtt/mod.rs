//! MQTT, versions 3.1 to 5.0 as far as they are alike (OASIS MQTT 3.1.1).
//!
//! As in Zeek, each chunk of the stream is taken for one packet ([`message`]). A CONNECT or
//! PUBLISH confirms the protocol. Rows: mqtt_connect.log with the answer to a CONNECT,
//! mqtt_subscribe.log with the answer to a SUBSCRIBE or UNSUBSCRIBE, mqtt_publish.log when the
//! delivery of a message is complete, or was not in time.

mod analyzer;
pub mod events;
pub mod message;
mod rows;

pub use analyzer::Analyzer;
pub use rows::ConnectRow;
pub use rows::PublishRow;
pub use rows::SubscribeRow;
