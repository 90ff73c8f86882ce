use gannet_base::Dir;

use crate::Context;
use crate::InnerRequest;
use crate::Tag;

/// The state machine of one protocol on one connection.
///
/// No method may panic or loop beyond its input, whatever the bytes.
pub trait Analyze {
    /// In-order bytes of a TCP stream (any cut: one byte or many messages).
    fn stream(&mut self, _cx: &mut Context<'_>, _from: Dir, _data: &[u8]) {}

    /// `len` bytes of the stream were never seen and will not come.
    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {}

    /// This side sends no more (FIN or RST, everything before it delivered).
    fn end(&mut self, _cx: &mut Context<'_>, _from: Dir) {}

    /// The same for an analyzer that is about to be [suspended](Self::suspend): it reads nothing any more.
    fn end_removed(&mut self, _cx: &mut Context<'_>, _from: Dir) {}

    /// A side sent FIN or RST, possibly behind a hole that may still be filled; called again when
    /// it is filled.
    fn closed(&mut self, _cx: &mut Context<'_>) {}

    /// A datagram's payload. `data` is the captured part; `len` the length on the wire.
    fn datagram(&mut self, _cx: &mut Context<'_>, _from: Dir, _data: &[u8], _len: u32) {}

    /// Whether nothing is held that a fresh analyzer on the same connection would not know: an
    /// analyzer of datagrams that says so is dropped until the next one comes.
    fn is_idle(&self) -> bool {
        false
    }

    /// Originator and responder were exchanged.
    fn flip(&mut self, _cx: &mut Context<'_>) {}

    /// A side sent RST.
    fn reset(&mut self, _cx: &mut Context<'_>) {}

    /// The analyzer is disabled because of a violation, but may be enabled again: its state of the
    /// connection remains, and its rows are written at the end of the connection; partially parsed
    /// data is dropped. Returns whether the analyzer supports this; if not,
    /// [`finish`](Self::finish) is called instead. That happens before more data of the connection is read, or with its end.
    fn suspend(&mut self, _cx: &mut Context<'_>) -> bool {
        false
    }

    /// A script asks something of this analyzer or of one within it. Returns whether that was found.
    fn steer(&mut self, _cx: &mut Context<'_>, _request: InnerRequest<'_>) -> bool {
        false
    }

    /// The analyzer goes: its connection ended or timed out, or it was disabled by a violation.
    /// Rows still open are written here. Called exactly once.
    fn finish(&mut self, _cx: &mut Context<'_>) {}
}

/// An analyzer of any protocol: a type that can be each of them.
pub trait AnyAnalyzer: Analyze + Sized {
    /// A fresh analyzer for a connection; `None` for names that have none.
    fn new(tag: Tag, cx: &mut Context<'_>) -> Option<Self>;

    /// Its protocol.
    fn tag(&self) -> Tag;
}

/// What has such a type: [`Tag`], by the [registry](crate::registry). Analyzers that have others within name the type
/// through this trait, so that they need not import the registry, which imports them.
pub trait Dispatched {
    /// The type.
    type Analyzer: AnyAnalyzer;
}
