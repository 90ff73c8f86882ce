//! The catalogue of events: every module that declares some.
//!
//! A protocol declares its events in its own `events.rs`, and its [descriptor](crate::descriptor::Descriptor) lists them.
//! Modules of other events have one line here, and so have further modules of a protocol. From both come the list of all
//! declarations ([`all`]) and whatever is derived from it: which names `gannet events --only` knows, the manual, and what
//! scripts can handle.

use gannet_event::Decl;

use crate::Tag;
use crate::registry::DESCRIPTORS;

macro_rules! catalogue {
    ($( $module:ident $($path:ident)::+; )*) => {
        /// Numbers of the modules that declare events.
        pub mod module {
            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "numbers, named as the constants are")]
            #[repr(u16)]
            enum Number { _Files = gannet_files::events::MODULE, $( $module ),* }
            $(
                #[doc = concat!("Events of `", stringify!($($path)::+), "`.")]
                pub const $module: u16 = Number::$module as u16;
            )*
        }

        const MODULES: &[&[&Decl]] = &[ gannet_files::events::EVENTS, $( crate::$($path)::+::EVENTS ),* ];
    };
}

catalogue! {
    LIFECYCLE lifecycle::events;
    CONN conn_state::events;
    WEIRD weird::events;
    PACKET packet::events;
    STACK stack::events;
    MIME support::mime::events;
    SMB1 smb::events::v1;
    SMB2 smb::events::v2;
}

/// The declarations of all events, by module.
pub fn all() -> impl Iterator<Item = &'static Decl> {
    let of_protocols = DESCRIPTORS.iter().flat_map(|descriptor| descriptor.events);
    MODULES.iter().chain(of_protocols).copied().flatten().copied()
}

/// The number of the module that declares the events of a protocol, by one of its tags.
pub const fn module_of(tag: Tag) -> u16 {
    /// The first number behind those of the list above.
    const FIRST: u16 = 16;
    FIRST + tag as u16
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_numbers_are_unique_and_all_is_documented() {
        let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for decl in all() {
            assert!(names.insert(decl.name), "two events named {}", decl.name);
            assert!(ids.insert(decl.id), "{} has the number of another event", decl.name);
            assert!(!decl.doc.trim().is_empty(), "{} is not documented", decl.name);
            for param in decl.params {
                assert!(!param.doc.trim().is_empty(), "{} of {}", param.name, decl.name);
            }
        }
    }
}
