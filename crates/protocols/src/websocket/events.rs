//! Events of this protocol.

gannet_event::events! {
    crate::events::module::WEBSOCKET;
}
