//! RADIUS (RFC 2865): requests for access and their answers, over UDP.
//!
//! Each datagram is one [`Message`]. A row of radius.log joins a request, its challenges and the
//! accept or reject that ends them; what is left without an end is logged with the connection.

mod analyzer;
pub mod events;
mod message;
mod rows;

pub use analyzer::Analyzer;
pub use message::Attribute;
pub use message::Message;
pub use rows::RadiusRow;
