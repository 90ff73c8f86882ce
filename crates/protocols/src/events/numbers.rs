//! Numbers of the modules that declare events.

use crate::Tag;

/// Calls a macro with the event modules that belong to no protocol: a name for each, and its path.
macro_rules! with_event_modules {
    ($then:ident) => {
        $then! {
            LIFECYCLE lifecycle::events;
            CONN conn_state::events;
            WEIRD weird::events;
            PACKET packet::events;
            STACK stack::events;
            MIME support::mime::events;
            SMB1 smb::events::v1;
            SMB2 smb::events::v2;
        }
    };
}

pub(crate) use with_event_modules;

macro_rules! numbers {
    ($( $module:ident $($path:ident)::+; )*) => {
        /// Numbers of the modules that belong to no protocol.
        pub mod module {
            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "numbers, named as the constants are")]
            #[repr(u16)]
            enum Number { _Files = gannet_files::events::MODULE, $( $module ),* }
            $(
                #[doc = concat!("Events of `", stringify!($($path)::+), "`.")]
                pub const $module: u16 = Number::$module as u16;
            )*
        }
    };
}

with_event_modules!(numbers);

/// The number of the module that declares the events of a protocol, given one of the protocol's
/// tags.
pub const fn module_of(tag: Tag) -> u16 {
    /// The first number after those of the list above.
    const FIRST: u16 = 16;
    FIRST + tag as u16
}
