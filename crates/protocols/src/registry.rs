//! All protocols: their [descriptors](Descriptor), and one enum that holds any analyzer.
//!
//! This file imports every protocol, and no protocol imports it. Protocols access the descriptors
//! through [`Registered`], and analyzers nested in analyzers through [`Dispatched`]: traits of
//! modules that protocols may import, implemented here.

use gannet_base::Dir;

use crate::Analyze;
use crate::Context;
use crate::ScriptRequest;
use crate::analyze::AnyAnalyzer;
use crate::analyze::Dispatched;
use crate::descriptor::Descriptor;
use crate::descriptor::Registered;
use crate::tag::Tag;
use crate::tag::analyzed;

/// How the enum of all analyzers stores one: boxed, so that the enum stays small, unless the
/// analyzer is small itself and so common that another allocation would cost measurable time.
macro_rules! held {
    ($ty:ty) => { Box<$ty> };
    ($ty:ty, inline) => { $ty };
}

macro_rules! hold {
    ($analyzer:expr) => {
        Box::new($analyzer)
    };
    ($analyzer:expr, inline) => {
        $analyzer
    };
}

macro_rules! protocols {
    ($( $module:ident { $( $tag:ident $( : $ty:ident $($how:ident)? )? ),* } )*) => {
        impl Registered for Tag {
            const DESCRIPTORS: &[&Descriptor] = &[ $( &crate::$module::DESCRIPTOR, )* ];
        }

        impl Dispatched for Tag {
            type Analyzer = Analyzer;
        }

        /// The analyzer of any protocol.
        pub enum Analyzer {
            $($($( #[doc = concat!("Of `", stringify!($module), "`.")] $tag(held!(crate::$module::$ty $(, $how)?)), )?)*)*
        }

        impl AnyAnalyzer for Analyzer {
            fn new(tag: Tag, cx: &mut Context<'_>) -> Option<Self> {
                match tag {
                    $($($( Tag::$tag => Some(Self::$tag(hold!(crate::$module::$ty::new(cx) $(, $how)?))), )?)*)*
                    _ => None,
                }
            }

            fn tag(&self) -> Tag {
                match self { $($($( Self::$tag(_) => analyzed!($ty, Tag::$tag), )?)*)* }
            }
        }

        impl Analyze for Analyzer {
            #[inline]
            fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
                match self {
                    $($($( Self::$tag(a) => stream::<crate::$module::$ty>(a, cx, from, data), )?)*)*
                }
            }
            fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::gap(a, cx, from, len), )?)*)* }
            }
            fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::end(a, cx, from), )?)*)* }
            }
            fn end_removed(&mut self, cx: &mut Context<'_>, from: Dir) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::end_removed(a, cx, from), )?)*)* }
            }
            fn closed(&mut self, cx: &mut Context<'_>) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::closed(a, cx), )?)*)* }
            }
            #[inline]
            fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], len: u32) {
                match self {
                    $($($( Self::$tag(a) => datagram::<crate::$module::$ty>(a, cx, from, data, len), )?)*)*
                }
            }
            #[inline]
            fn is_idle(&self) -> bool {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::is_idle(a), )?)*)* }
            }
            fn flip(&mut self, cx: &mut Context<'_>) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::flip(a, cx), )?)*)* }
            }
            fn reset(&mut self, cx: &mut Context<'_>) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::reset(a, cx), )?)*)* }
            }
            fn suspend(&mut self, cx: &mut Context<'_>) -> bool {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::suspend(a, cx), )?)*)* }
            }
            fn handle_request(&mut self, cx: &mut Context<'_>, request: ScriptRequest<'_>) -> bool {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::handle_request(a, cx, request), )?)*)* }
            }
            fn finish(&mut self, cx: &mut Context<'_>) {
                match self { $($($( Self::$tag(a) => <crate::$module::$ty as Analyze>::finish(a, cx), )?)*)* }
            }
        }
    };
}

/// One function per analyzer that is not inlined: inlined into the dispatch, every call would save
/// the registers and reserve the stack that the largest analyzer needs.
#[inline(never)]
fn stream<A: Analyze>(a: &mut A, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
    a.stream(cx, from, data);
}

/// Like [`stream`], for datagrams.
#[inline(never)]
fn datagram<A: Analyze>(a: &mut A, cx: &mut Context<'_>, from: Dir, data: &[u8], len: u32) {
    a.datagram(cx, from, data, len);
}

with_protocols!(protocols);
