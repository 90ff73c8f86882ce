//! Tokens.

use crate::literal::Literal;
use crate::types::AttrKind;

/// A token.
#[derive(Clone, PartialEq, Debug)]
pub enum Token {
    /// End of the file.
    End,
    /// An identifier; its text is the token's.
    Ident,
    /// A keyword.
    Word(Word),
    /// A constant: number, address, subnet, port, interval, string, `T`, `F`.
    Literal(Literal),
    /// An attribute with its `&`.
    Attr(AttrKind),
    /// An operator or a bracket.
    Op(Op),
    /// `@…`: the directive; the rest of its line is not consumed.
    Directive(Directive),
    /// An invalid character, already reported.
    Bad,
}

macro_rules! words {
    ($($variant:ident = $text:literal,)*) => {
        /// Keywords.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[expect(missing_docs, reason = "named as in scripts")]
        pub enum Word { $($variant,)* }

        impl Word {
            /// The keyword with this text.
            #[must_use]
            pub fn from_text(text: &[u8]) -> Option<Self> {
                match text {
                    $(text if text == $text.as_bytes() => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Its source text.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

words! {
    Add = "add", Addr = "addr", Any = "any", As = "as", Assert = "assert", Bool = "bool", Break = "break", Case = "case",
    Const = "const", Copy = "copy", Count = "count", Default = "default", Delete = "delete", Double = "double", Else = "else",
    Enum = "enum", Event = "event", Export = "export", Fallthrough = "fallthrough", File = "file", For = "for",
    Function = "function", Global = "global", Hook = "hook", If = "if", In = "in", Int = "int", Interval = "interval", Is = "is",
    Local = "local", Module = "module", Next = "next", Of = "of", Opaque = "opaque", Option = "option", Pattern = "pattern",
    Port = "port", Print = "print", Record = "record", Redef = "redef", Return = "return", Schedule = "schedule", Set = "set",
    String = "string", Subnet = "subnet", Switch = "switch", Table = "table", Time = "time", Timeout = "timeout", Type = "type",
    Vector = "vector", When = "when", While = "while",
}

macro_rules! ops {
    ($($variant:ident = $text:literal,)*) => {
        /// Operators and brackets.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[expect(missing_docs, reason = "named as in scripts")]
        pub enum Op { $($variant,)* }

        /// All operators, longer ones first.
        pub(super) const OPS: &[(&[u8], Op)] = &[$(($text, Op::$variant),)*];

        impl Op {
            /// Its source text.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => std::str::from_utf8($text).unwrap_or_default(),)* }
            }
        }
    };
}

ops! {
    ShiftLeft = b"<<", ShiftRight = b">>", LessEqual = b"<=", GreaterEqual = b">=", Equal = b"==", NotEqual = b"!=", And = b"&&", Or = b"||",
    Increment = b"++", Decrement = b"--", AddTo = b"+=", RemoveFrom = b"-=", HasField = b"?$",
    Assign = b"=", Less = b"<", Greater = b">", Not = b"!", Plus = b"+", Minus = b"-", Times = b"*", Divide = b"/", Modulo = b"%",
    BitAnd = b"&", BitOr = b"|", BitXor = b"^", Complement = b"~", Question = b"?", Colon = b":", Semicolon = b";", Comma = b",",
    Dollar = b"$", ParenLeft = b"(", ParenRight = b")", BracketLeft = b"[", BracketRight = b"]", BraceLeft = b"{", BraceRight = b"}",
    NotIn = b"!in", CanCast = b"?as",
}

macro_rules! directives {
    ($($variant:ident = $text:literal,)*) => {
        /// Directives.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[expect(missing_docs, reason = "named as in scripts")]
        pub enum Directive { $($variant,)* }

        /// All directives, longer ones before their prefixes.
        pub(super) const DIRECTIVES: &[(&[u8], Directive)] = &[$(($text, Directive::$variant),)*];
    };
}

directives! {
    LoadSigs = b"@load-sigs", LoadPlugin = b"@load-plugin", Load = b"@load", Unload = b"@unload", Prefixes = b"@prefixes",
    IfDef = b"@ifdef", IfNotDef = b"@ifndef", If = b"@if", Else = b"@else", EndIf = b"@endif", Dir = b"@DIR",
    FileName = b"@FILENAME", Deprecated = b"@deprecated", Pragma = b"@pragma", Debug = b"@DEBUG",
}
