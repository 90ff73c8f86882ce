//! Header fields that the analyzer interprets.

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use crate::support::mime::MediaType;

/// Kind of a header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Authorization,
    Connection,
    ContentDisposition,
    ContentEncoding,
    ContentLength,
    ContentRange,
    ContentTransferEncoding,
    ContentType,
    Expect,
    Host,
    Origin,
    /// Any field that a proxy adds.
    Proxy,
    Range,
    Referer,
    TransferEncoding,
    Upgrade,
    UserAgent,
    /// Of a WebSocket handshake: its name starts with [`WEBSOCKET`].
    WebSocket,
    Other,
}

/// Prefix of the names of WebSocket handshake fields.
pub(crate) const WEBSOCKET: &[u8] = b"sec-websocket-";

impl Field {
    /// Returns the kind of a field by its name, in any case.
    #[inline]
    pub(super) fn from_name(name: &[u8]) -> Self {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        match name.len() {
            3 if is(b"via") => Self::Proxy,
            4 if is(b"host") => Self::Host,
            5 if is(b"range") => Self::Range,
            6 if is(b"expect") => Self::Expect,
            6 if is(b"origin") => Self::Origin,
            7 if is(b"referer") => Self::Referer,
            7 if is(b"upgrade") => Self::Upgrade,
            9 if is(b"client-ip") || is(b"forwarded") => Self::Proxy,
            10 if is(b"connection") => Self::Connection,
            10 if is(b"user-agent") => Self::UserAgent,
            12 if is(b"content-type") => Self::ContentType,
            13 if is(b"authorization") => Self::Authorization,
            13 if is(b"content-range") => Self::ContentRange,
            14 if is(b"content-length") => Self::ContentLength,
            15 if is(b"x-forwarded-for") => Self::Proxy,
            16 if is(b"content-encoding") => Self::ContentEncoding,
            16 if is(b"proxy-connection") || is(b"xroxy-connection") || is(b"x-forwarded-from") => {
                Self::Proxy
            }
            17 if is(b"transfer-encoding") => Self::TransferEncoding,
            19 if is(b"content-disposition") => Self::ContentDisposition,
            19 if is(b"proxy-authorization") => Self::Authorization,
            25 if is(b"content-transfer-encoding") => Self::ContentTransferEncoding,
            n if n >= WEBSOCKET.len()
                && name[..WEBSOCKET.len()].eq_ignore_ascii_case(WEBSOCKET) =>
            {
                Self::WebSocket
            }
            _ => Self::Other,
        }
    }
}

/// The name and the kind of a header field.
#[derive(Clone, Copy, Debug)]
pub struct FieldName<'a> {
    /// The name in its original case.
    pub(crate) name: &'a [u8],
    pub(super) field: Field,
}

impl Arg for FieldName<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        self.name.pack(to);
    }
}

/// A whole header, collected for the listener of an event.
#[derive(Default)]
pub(super) struct Headers {
    /// Names and values of all fields, in order.
    pub(super) fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Type and subtype in upper case.
    pub(super) content_type: Option<(Vec<u8>, Vec<u8>)>,
}

impl Headers {
    pub(super) fn add(&mut self, field: Field, name: &[u8], value: &[u8]) {
        if field == Field::ContentType
            && let Some(MediaType { ty: kind, subtype, .. }) = MediaType::parse(value)
        {
            self.content_type = Some((kind.to_ascii_uppercase(), subtype.to_ascii_uppercase()));
        }
        self.fields.push((name.to_vec(), value.to_vec()));
    }
}
