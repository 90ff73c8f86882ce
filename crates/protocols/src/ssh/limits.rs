//! Limits of the parsed part of a handshake.

use super::message::MAX_PACKET;
use super::message::MAX_STRING;
use crate::Context;

/// Maximum number of algorithms of a list that are used.
pub(super) const MAX_ALGORITHMS: usize = 100;

/// Limits of one connection: the defaults, or those that scripts set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum length of a packet, in bytes.
    pub(super) packet: u32,
    /// Maximum length of a string, in bytes.
    pub(super) string: u32,
    /// Maximum number of key exchange algorithms; the following limits are those of the other
    /// lists.
    pub(super) kex: usize,
    pub(super) host_key: usize,
    pub(super) cipher: usize,
    pub(super) mac: usize,
    pub(super) compression: usize,
    pub(super) languages: usize,
}

impl Limits {
    /// The limits of a new connection. A limit of 0 means unlimited.
    pub(super) fn from_settings(cx: &Context<'_>) -> Self {
        let value = |name, default: u64| match cx.env.setting(name, default) {
            0 => u64::from(u32::MAX),
            value => value,
        };
        let bytes = |name, default: u32| value(name, default.into()).try_into().unwrap_or(u32::MAX);
        let names = |name| value(name, MAX_ALGORITHMS as u64).try_into().unwrap_or(usize::MAX);
        Self {
            packet: bytes("SSH::max_packet_length", MAX_PACKET),
            string: bytes("SSH::max_string_length", MAX_STRING),
            kex: names("SSH::max_kexinit_kex_algorithms"),
            host_key: names("SSH::max_kexinit_hostkey_algorithms"),
            cipher: names("SSH::max_kexinit_encryption_algorithms"),
            mac: names("SSH::max_kexinit_mac_algorithms"),
            compression: names("SSH::max_kexinit_compression_algorithms"),
            languages: names("SSH::max_kexinit_languages"),
        }
    }
}
