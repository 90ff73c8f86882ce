//! Declarations of events (names, types and documentation), and sets of events.

/// The type of an argument in Zeek's scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `count`
    Count,
    /// `double`
    Double,
    /// `time`
    Time,
    /// `interval`
    Interval,
    /// `string`
    String,
    /// `port`
    Port,
    /// `addr`
    Addr,
    /// `subnet`
    Subnet,
    /// An enumeration, by its name; values are packed as the name of the enumerator.
    Enum(&'static str),
    /// An opaque type, by its name.
    Opaque(&'static str),
    /// `vector element T`
    Vector(&'static Type),
    /// `vector element T` whose first element is unset in Zeek and not packed.
    VectorFromOne(&'static Type),
    /// `set[T]`
    Set(&'static Type),
    /// `table[K] element V`
    Table(&'static Type, &'static Type),
    /// A record.
    Record(&'static Record),
    /// `connection`: an index into the connections of the event's [`Raised`](crate::Raised).
    Connection,
    /// `conn_id`: originator, responder and transport.
    ConnId,
    /// `fa_file`: an index into the files of the event's [`Raised`](crate::Raised).
    File,
}

/// A record type.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name in Zeek's scripts.
    pub name: &'static str,
    /// Its fields in order.
    pub fields: &'static [Param],
}

/// A parameter of an event or a field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name in Zeek's scripts.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// Whether it may be unset.
    pub optional: bool,
    /// Description, in one sentence.
    pub doc: &'static str,
}

/// The declaration of an event.
#[derive(Debug, PartialEq, Eq)]
pub struct Decl {
    /// Its name, which is Zeek's if Zeek has the event.
    pub name: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Its parameters in order.
    pub params: &'static [Param],
    /// Its number.
    pub id: Id,
    /// Whether only listeners that request it by name receive it, such as events of every packet and others that none
    /// of Zeek's default scripts handles.
    pub opt_in: bool,
    /// Whether Zeek's scripts raise it instead of its core, so that loaded scripts raise it themselves.
    pub scripted: bool,
    /// Whether it is raised only in an analysis with one thread: because the analysis needs an answer or the requests
    /// of its handlers immediately, or because its arguments depend on all traffic.
    pub one_thread: bool,
}

/// The marks of [`events!`](crate::events).
impl Decl {
    #[doc(hidden)]
    pub const fn opt_in(mut self) -> Self {
        self.opt_in = true;
        self
    }

    #[doc(hidden)]
    pub const fn scripted(mut self) -> Self {
        self.scripted = true;
        self
    }

    #[doc(hidden)]
    pub const fn one_thread(mut self) -> Self {
        self.one_thread = true;
        self
    }
}

/// The number of an event, from the module that declares it and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u16);

/// Maximum number of events in a module.
const MAX_EVENTS: u16 = 128;
/// Maximum number of modules.
const MAX_MODULES: u16 = 128;

impl Id {
    /// The event at `index` of a module. It is evaluated at compile time, where numbers out of range are errors.
    pub const fn new(module: u16, index: u16) -> Self {
        assert!(module < MAX_MODULES && index < MAX_EVENTS);
        Self(module * MAX_EVENTS + index)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A set of events that have a listener, as a bitmap.
#[derive(Clone, Debug)]
pub struct Interest {
    bits: Box<[u64; WORDS]>,
    any: bool,
}

const WORDS: usize = (MAX_MODULES * MAX_EVENTS / 64) as usize;

impl Default for Interest {
    fn default() -> Self {
        Self { bits: Box::new([0; WORDS]), any: false }
    }
}

impl Interest {
    /// The events of a catalogue for which `wants` returns `true`.
    pub fn of(
        catalogue: impl Iterator<Item = &'static Decl>,
        wants: impl Fn(&Decl) -> bool,
    ) -> Self {
        let mut all = Self::default();
        catalogue.filter(|d| wants(d)).for_each(|d| all.add(d.id));
        all
    }

    /// Adds an event.
    pub fn add(&mut self, id: Id) {
        self.bits[usize::from(id.0 >> 6)] |= 1 << (id.0 & 63);
        self.any = true;
    }

    /// Removes an event; [`any`](Self::any) is not changed.
    pub fn remove(&mut self, id: Id) {
        self.bits[usize::from(id.0 >> 6)] &= !(1 << (id.0 & 63));
    }

    /// Whether an event has a listener.
    #[inline]
    pub fn has(&self, id: Id) -> bool {
        self.bits[usize::from(id.0 >> 6)] >> (id.0 & 63) & 1 != 0
    }

    /// Whether any event has a listener.
    #[inline]
    pub fn any(&self) -> bool {
        self.any
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Count => f.write_str("count"),
            Self::Double => f.write_str("double"),
            Self::Time => f.write_str("time"),
            Self::Interval => f.write_str("interval"),
            Self::String => f.write_str("string"),
            Self::Port => f.write_str("port"),
            Self::Addr => f.write_str("addr"),
            Self::Subnet => f.write_str("subnet"),
            Self::Enum(name) => f.write_str(name),
            Self::Opaque(name) => write!(f, "opaque of {name}"),
            Self::Vector(element) | Self::VectorFromOne(element) => {
                write!(f, "vector of {element}")
            }
            Self::Set(element) => write!(f, "set[{element}]"),
            Self::Table(key, value) => write!(f, "table[{key}] of {value}"),
            Self::Record(record) => f.write_str(record.name),
            Self::Connection => f.write_str("connection"),
            Self::ConnId => f.write_str("conn_id"),
            Self::File => f.write_str("fa_file"),
        }
    }
}

impl std::fmt::Display for Decl {
    /// `name(c: connection, is_orig: bool)`, as Zeek's scripts declare it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}(", self.name)?;
        for (i, param) in self.params.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{}: {}", param.name, param.ty)?;
        }
        f.write_str(")")
    }
}
