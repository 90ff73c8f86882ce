//! Header views from the link layer to transport and tunnels.
