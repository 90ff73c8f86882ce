//! Events of RADIUS.

use gannet_event::Connection;

use super::message::Attributes;

gannet_event::record! {
    /// A message (RFC 2865 §3).
    pub struct Message<'a> = "RADIUS::Message" {
        /// Packet type code.
        code: u64 = "code",
        /// Identifier, which matches a reply to its request.
        trans_id: u64 = "trans_id",
        /// Request or response authenticator.
        authenticator: &'a [u8] = "authenticator",
        /// Values of attributes by type.
        attributes: Option<Attributes<'a>> = "attributes",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Radius);

    /// A RADIUS message.
    pub struct RadiusMessage<'a> = "radius_message" {
        /// The connection.
        c: Connection = "c",
        /// The message.
        result: Message<'a> = "result",
    }

    /// An attribute of a message.
    pub struct RadiusAttribute<'a> = "radius_attribute", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Attribute type.
        attr_type: u64 = "attr_type",
        /// Its value.
        value: &'a [u8] = "value",
    }
}
