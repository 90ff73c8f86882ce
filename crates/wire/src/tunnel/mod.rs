//! Tunnels.
