//! Macros that declare events, records and enumerations.

/// Declares the events of one module: `MODULE; pub struct Name<'a> = "name" { field: Type = "parameter", … } …`.
///
/// `= "name", scripted` declares an event that Zeek's scripts raise: loaded scripts receive it from each other.
///
/// `= "name", opt_in` declares an event that is raised only for listeners that request it by name, such as events of
/// every packet and others that none of Zeek's default scripts handles.
///
/// `= "name", one_thread` declares an event that is raised only in an analysis with one thread. Marks can be combined:
/// `= "name", opt_in, one_thread`.
///
/// Events that begin with the same parameters are declared in groups, which begin with these parameters: `with { c:
/// Connection = "c", } { pub struct Name = "name" { further parameters } … }`. A module has only groups or no groups.
///
/// `MODULE` is the module's unique number, a `u16` constant. Doc comments become the
/// manual. Each type of a field implements [`Arg`](crate::Arg). The macro defines the structs, their
/// [`Event`](crate::Event) implementations and `EVENTS`, the list of their declarations.
#[macro_export]
macro_rules! events {
    // Joins the parameters of a group and those of an event.
    (@one $module:expr, { $($head:tt)* } { $($own:tt)* } $($declaration:tt)*) => {
        $crate::events!(@event $module, $($declaration)* { $($head)* $($own)* });
    };
    (
        @event $module:expr,
        $(#[doc = $edoc:literal])*
        $vis:vis struct $name:ident $(<$lt:lifetime>)? = $event:literal $(, $mark:ident)* {
            $( $(#[doc = $doc:literal])* $field:ident : $ty:ty = $param:literal ),* $(,)?
        }
    ) => {
        $(#[doc = $edoc])*
        $vis struct $name $(<$lt>)? {
            $( $(#[doc = $doc])* pub $field: $ty, )*
        }

        impl $(<$lt>)? $crate::Event for $name $(<$lt>)? {
            const DECL: &'static $crate::Decl = &$crate::Decl {
                name: $event,
                doc: concat!($($edoc, "\n"),*),
                params: &[ $( $crate::Param {
                    name: $param,
                    ty: <$ty as $crate::Arg>::TYPE,
                    optional: <$ty as $crate::Arg>::OPTIONAL,
                    doc: concat!($($doc, "\n"),*),
                } ),* ],
                id: $crate::Id::new($module, EventIndex::$name as u16),
                opt_in: false,
                scripted: false,
                one_thread: false,
            }$(.$mark())*;

            fn pack(&self, _to: &mut $crate::Packer<'_>) {
                $( $crate::Arg::pack(&self.$field, _to); )*
            }
        }
    };
    (@list $($name:ident)*) => {
        #[allow(clippy::enum_variant_names, reason = "events of a protocol share its name")]
        #[repr(u16)]
        enum EventIndex { $( $name, )* Last }
        const _: u16 = EventIndex::Last as u16;

        /// The declarations of this module's events.
        pub const EVENTS: &[&$crate::Decl] = &[ $( <$name as $crate::Event>::DECL ),* ];
    };
    (
        $module:expr;
        $(
            with $head:tt {
                $(
                    $(#[doc = $edoc:literal])*
                    $vis:vis struct $name:ident $(<$lt:lifetime>)? = $event:literal $(, $mark:ident)* {
                        $($own:tt)*
                    }
                )*
            }
        )+
    ) => {
        $crate::events!(@list $($($name)*)+);
        $($(
            $crate::events!(
                @one $module, $head { $($own)* }
                $(#[doc = $edoc])*
                $vis struct $name $(<$lt>)? = $event $(, $mark)*
            );
        )*)+
    };
    (
        $module:expr;
        $(
            $(#[doc = $edoc:literal])*
            $vis:vis struct $name:ident $(<$lt:lifetime>)? = $event:literal $(, $mark:ident)* {
                $($own:tt)*
            }
        )*
    ) => {
        $crate::events!(@list $($name)*);
        $(
            $crate::events!(
                @event $module,
                $(#[doc = $edoc])*
                $vis struct $name $(<$lt>)? = $event $(, $mark)* { $($own)* }
            );
        )*
    };
}

/// Declares a record that events carry: `pub struct Name<'a> = "Zeek::Name" { field: Type = "name", … }`.
#[macro_export]
macro_rules! record {
    (
        $(#[doc = $sdoc:literal])* $(#[derive($($derive:ident),* $(,)?)])?
        $vis:vis struct $name:ident $(<$lt:lifetime>)? = $record:literal {
            $( $(#[doc = $doc:literal])* $field:ident : $ty:ty = $param:literal ),* $(,)?
        }
    ) => {
        $(#[doc = $sdoc])* $(#[derive($($derive),*)])?
        $vis struct $name $(<$lt>)? {
            $( $(#[doc = $doc])* pub $field: $ty, )*
        }

        impl $(<$lt>)? $crate::Arg for $name $(<$lt>)? {
            const TYPE: $crate::Type = $crate::Type::Record(&$crate::Record {
                name: $record,
                fields: &[ $( $crate::Param {
                    name: $param,
                    ty: <$ty as $crate::Arg>::TYPE,
                    optional: <$ty as $crate::Arg>::OPTIONAL,
                    doc: concat!($($doc, "\n"),*),
                } ),* ],
            });

            fn pack(&self, _to: &mut $crate::Packer<'_>) {
                $( $crate::Arg::pack(&self.$field, _to); )*
            }
        }
    };
}

/// Declares that a type is an enumeration of Zeek's scripts: `enumeration!(Tag = "Analyzer::Tag", Tag::name)`.
/// The last argument is a function `fn(&Self) -> &str`, which implements [`EnumName::name`](crate::EnumName::name).
#[macro_export]
macro_rules! enumeration {
    ($ty:ty = $zeek:literal, $name:expr) => {
        impl $crate::EnumName for $ty {
            const ENUM: &'static str = $zeek;
            fn name(&self) -> &str {
                let name: fn(&$ty) -> &str = $name;
                name(self)
            }
        }

        impl $crate::Arg for $ty {
            const TYPE: $crate::Type = $crate::Type::Enum($zeek);
            fn pack(&self, to: &mut $crate::Packer<'_>) {
                to.name($crate::EnumName::name(self));
            }
        }
    };
}
