//! Converts settings to the records of events.

use super::blocks::ClientCore;
use super::events::ClusterData;
use super::events::CoreData;
use super::events::EarlyFlags;
use crate::support::utf16::Utf16Text;

/// The record of the client's core settings.
pub(super) fn core<'a>(core: &ClientCore<'a>) -> CoreData<'a> {
    let [version_major, version_minor] = core.version;
    let [keyboard_type, keyboard_sub, keyboard_function_key] = core.keyboard_kind;
    let [colours, product, supported, early] = core.late_fields;
    let has = |bit: u16| early & bit != 0;
    CoreData {
        version_major,
        version_minor,
        desktop_width: core.width,
        desktop_height: core.height,
        color_depth: core.old_depth,
        sas_sequence: core.sas_sequence,
        keyboard_layout: core.keyboard,
        client_build: core.build,
        client_name: Utf16Text(core.name),
        keyboard_type,
        keyboard_sub,
        keyboard_function_key,
        ime_file_name: Utf16Text(core.input_method),
        post_beta2_color_depth: Some(colours),
        client_product_id: Some(product),
        serial_number: Some(core.serial),
        high_color_depth: Some(core.depth),
        supported_color_depths: Some(supported),
        ec_flags: Some(EarlyFlags {
            support_err_info_pdu: has(0x1),
            want_32bpp_session: has(0x2),
            support_statusinfo_pdu: has(0x4),
            strong_asymmetric_keys: has(0x8),
            support_monitor_layout_pdu: has(0x40),
            support_netchar_autodetect: has(0x80),
            support_dynvc_gfx_protocol: has(0x100),
            support_dynamic_time_zone: has(0x200),
            support_heartbeat_pdu: has(0x400),
        }),
        dig_product_id: Some(Utf16Text(core.product)),
    }
}

/// The record of the client's cluster settings. The flag bits are read from the session id, as in
/// Zeek.
pub(super) fn cluster([flags, session]: [u32; 2]) -> ClusterData {
    ClusterData {
        flags,
        redir_session_id: session,
        redir_supported: session & 0x01 != 0,
        svr_session_redir_version_mask: u64::from(session & 0x3c),
        redir_sessionid_field_valid: session & 0x02 != 0,
        redir_smartcard: session & 0x40 != 0,
    }
}
