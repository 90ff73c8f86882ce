//! Enums of named numbers.

/// A number that has a name in Zeek's scripts: `NAME = "ENUM" { NUMBER => "ENUMERATOR", … }`.
macro_rules! named {
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $name:ident = $zeek:literal { $( $number:literal => $text:literal, )* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $name(u32);

        impl $name {
            /// The value of a number; `None` if the number has no name.
            pub fn from_number(number: u32) -> Option<Self> {
                [$( $number ),*].contains(&number).then_some(Self(number))
            }
        }

        gannet_event::enumeration!($name = $zeek, |value| match value.0 {
            $( $number => $text, )*
            // No other number is a value of this type.
            _ => "",
        });
    };
}

pub(super) use named;
