//! Events of tunnels.

gannet_event::events! {
    crate::events::module::TUNNEL;
}
