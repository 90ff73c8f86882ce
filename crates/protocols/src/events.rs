//! The catalogue of events: every module that declares some.
//!
//! A protocol declares its events in its own `events.rs`, and its
//! [descriptor](crate::descriptor::Descriptor) lists them. Modules of other events, and further
//! modules of a protocol, have one line each in `events/numbers.rs`. The list of all declarations
//! ([`all`]) is built from both; `gannet events --only`, the manual and the event handlers of
//! scripts use it.

mod numbers;

pub use numbers::module;
pub use numbers::module_of;

use gannet_event::Decl;

use self::numbers::with_event_modules;
use crate::Tag;
use crate::descriptor::Registered;

macro_rules! catalogue {
    ($( $module:ident $($path:ident)::+; )*) => {
        const MODULES: &[&[&Decl]] = &[ gannet_files::events::EVENTS, $( crate::$($path)::+::EVENTS ),* ];
    };
}

with_event_modules!(catalogue);

/// The declarations of all events, by module.
pub fn all() -> impl Iterator<Item = &'static Decl> {
    let of_protocols = Tag::DESCRIPTORS.iter().flat_map(|descriptor| descriptor.events);
    MODULES.iter().chain(of_protocols).copied().flatten().copied()
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
