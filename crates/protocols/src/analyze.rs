use gannet_base::Dir;

use crate::Context;
use crate::ScriptRequest;
use crate::Tag;

/// The state machine of one protocol on one connection.
///
/// No method may panic or loop beyond its input, whatever the bytes.
pub trait Analyze {
    /// Delivers in-order bytes of a TCP stream. They may be split anywhere: one byte or many
    /// messages per call.
    fn stream(&mut self, _cx: &mut Context<'_>, _from: Dir, _data: &[u8]) {}

    /// `len` bytes of the stream were not captured and will not be delivered.
    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {}

    /// The side `_from` sends no more: FIN or RST was seen, and everything before it was
    /// delivered.
    fn end(&mut self, _cx: &mut Context<'_>, _from: Dir) {}

    /// Like [`end`](Self::end), for an analyzer that is about to be [suspended](Self::suspend) and
    /// reads no more data.
    fn end_removed(&mut self, _cx: &mut Context<'_>, _from: Dir) {}

    /// A side sent FIN or RST, possibly after a gap that may still be filled; called again when
    /// the gap is filled.
    fn closed(&mut self, _cx: &mut Context<'_>) {}

    /// A datagram's payload. `data` is the captured part; `len` the length on the wire.
    fn datagram(&mut self, _cx: &mut Context<'_>, _from: Dir, _data: &[u8], _len: u32) {}

    /// Whether the analyzer holds no state that a fresh analyzer on the same connection would
    /// lack. An idle analyzer of datagrams is dropped and created again for the next datagram.
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

    /// Applies a script's request to this analyzer or to one nested in it. Returns whether the
    /// analyzer that the request is for was found.
    fn handle_request(&mut self, _cx: &mut Context<'_>, _request: ScriptRequest<'_>) -> bool {
        false
    }

    /// The analyzer is removed: its connection ended or timed out, or a violation disabled it.
    /// Rows still open are written here. Called exactly once.
    fn finish(&mut self, _cx: &mut Context<'_>) {}
}

/// An enum of all analyzers.
pub trait AnyAnalyzer: Analyze + Sized {
    /// A fresh analyzer for a connection; `None` for names that have none.
    fn new(tag: Tag, cx: &mut Context<'_>) -> Option<Self>;

    /// The analyzer's protocol.
    fn tag(&self) -> Tag;
}

/// Names the enum of all analyzers; [`Tag`] implements it in the [registry](crate::registry).
/// Analyzers that nest others use the enum through this trait, because the registry imports them
/// and they must not import it.
pub trait Dispatched {
    /// The enum of all analyzers.
    type Analyzer: AnyAnalyzer;
}
