//! The protocols by name.

/// An expression for each name with an analyzer.
macro_rules! analyzed {
    ($ty:ident, $then:expr) => {
        $then
    };
}

pub(crate) use analyzed;

macro_rules! tags {
    ($( $module:ident { $( $tag:ident $( : $ty:ident $($how:ident)? )? ),* } )*) => {
        /// A protocol.
        ///
        /// The properties that its [descriptor](crate::descriptor) declares are methods that the
        /// [registry](crate::registry) implements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Tag { $($( #[doc = concat!("A name of `", stringify!($module), "`.")] $tag, )*)* }

        impl Tag {
            /// All protocols.
            pub const ALL: &[Self] = &[ $($( Self::$tag, )*)* ];

            /// Whether the name has an analyzer.
            pub fn has_analyzer(self) -> bool {
                match self { $($($( Self::$tag => analyzed!($ty, true), )?)*)* _ => false }
            }
        }
    };
}

with_protocols!(tags);

/// Number of tags.
pub(crate) const TAGS: usize = Tag::ALL.len();
