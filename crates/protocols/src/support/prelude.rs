use gannet_base::Dir;

use crate::Analyze;
use crate::Context;
use crate::Tag;

/// The error for bytes that are not an item.
const REASON: &str = "Binpac exception: binpac exception: string mismatch at -";

/// The effect of an item on those that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemEffect {
    /// More may be learned.
    More,
    /// TLS begins.
    Tls,
    /// The time when TLS could have begun is past.
    Past,
}

/// A protocol of which no more is read than the talk before TLS begins.
pub trait Preamble: Default {
    /// Its analyzer.
    const TAG: Tag;

    /// The items that a chunk of the stream consists of.
    type Item<'a>;

    /// The items of a chunk; `Err` where the bytes are none.
    fn items(from: Dir, chunk: &[u8]) -> impl Iterator<Item = Result<Self::Item<'_>, ()>>;

    /// Takes the next one.
    fn item(&mut self, cx: &mut Context<'_>, from: Dir, item: Self::Item<'_>) -> ItemEffect;
}

/// The analyzer of one connection whose protocol is followed until TLS begins.
///
/// As in Zeek, each chunk of the stream is read by itself, and one that holds the last word is still
/// read to its end.
pub struct Prelude<T> {
    talk: T,
    done: bool,
}

impl<T: Preamble> Prelude<T> {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { talk: T::default(), done: false }
    }
}

impl<T: Preamble> Analyze for Prelude<T> {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.done || cx.conn.is_partial() {
            return;
        }
        for item in T::items(from, data) {
            let Ok(item) = item else {
                cx.violation(T::TAG, REASON, &[]);
                continue;
            };
            let then = self.talk.item(cx, from, item);
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
