use gannet_base::Dir;

use crate::Analyze;
use crate::Context;
use crate::Tag;

/// The error for bytes that are not an item.
const REASON: &str = "Binpac exception: binpac exception: string mismatch at -";

/// Effect of an item on the following ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemEffect {
    /// Parsing continues.
    More,
    /// TLS begins.
    Tls,
    /// TLS can no longer begin.
    TooLate,
}

/// A protocol of which only the exchange before TLS is parsed.
pub trait PreTls: Default {
    /// Tag of its analyzer.
    const TAG: Tag;

    /// An item of a chunk.
    type Item<'a>;

    /// Splits a chunk into items; `Err` for bytes that are not an item.
    fn items(from: Dir, chunk: &[u8]) -> impl Iterator<Item = Result<Self::Item<'_>, ()>>;

    /// Handles the next item.
    fn item(&mut self, cx: &mut Context<'_>, from: Dir, item: Self::Item<'_>) -> ItemEffect;
}

/// The analyzer of one connection whose protocol is parsed until TLS begins.
///
/// As in Zeek, each chunk of the stream is parsed independently, and a chunk with the last item is
/// still parsed to its end.
pub struct PreTlsAnalyzer<T> {
    protocol: T,
    done: bool,
}

impl<T: PreTls> PreTlsAnalyzer<T> {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { protocol: T::default(), done: false }
    }
}

impl<T: PreTls> Analyze for PreTlsAnalyzer<T> {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.done || cx.conn.is_partial() {
            return;
        }
        for item in T::items(from, data) {
            let Ok(item) = item else {
                cx.violation(T::TAG, REASON, &[]);
                continue;
            };
            let then = self.protocol.item(cx, from, item);
            self.done |= then != ItemEffect::More;
            if then == ItemEffect::Tls {
                cx.start_inner(Tag::Ssl, from, &[]);
            }
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.done = true;
    }
}
