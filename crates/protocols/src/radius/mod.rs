//! RADIUS (RFC 2865): requests for access and their answers, over UDP.
//!
//! Each datagram is one [`Message`]. A row of radius.log joins a request, its challenges and the
//! final accept or reject; an incomplete one is logged with the end of the connection.

mod analyzer;
pub mod events;
mod message;
mod rows;

pub use analyzer::Analyzer;
pub use message::Attribute;
pub use message::Message;
pub use rows::RadiusRow;
