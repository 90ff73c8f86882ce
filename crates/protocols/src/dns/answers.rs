//! Storage of the answers of a reply until its row is written.

use gannet_base::Interval;
use gannet_log::Encoder;
use gannet_log::Type;
use gannet_log::Value;

/// Answers of one reply: their concatenated texts, the end offset of each text, and their times to live.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    text: Vec<u8>,
    ends: Vec<u32>,
    ttls: Vec<Interval>,
}

impl Answers {
    /// Removes all answers and keeps the capacity.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.ttls.clear();
    }

    /// Approximate memory use, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.text.len() + self.ends.len() * size_of::<(u32, Interval)>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds an answer with the text that `write` appends; none if the text is empty.
    pub(super) fn push(&mut self, ttl: Interval, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.text.len();
        write(&mut self.text);
        if self.text.len() > before {
            self.ends.push(self.text.len() as u32);
            self.ttls.push(ttl);
        }
    }
}

/// The texts of [`Answers`]; unset if there are no answers.
#[derive(Clone, Copy, Debug)]
pub struct AnswerTexts<'a>(pub(super) &'a Answers);

impl Value for AnswerTexts<'_> {
    const TYPE: Type = Type::Vector("string");

    fn is_unset(&self) -> bool {
        self.0.is_empty()
    }

    #[inline(always)]
    fn put<E: Encoder>(&self, e: &mut E) {
        let mut start = 0;
        e.list(self.0.ends.iter().map(|end| {
            let text = self.0.text.get(start..*end as usize).unwrap_or_default();
            start = *end as usize;
            text
        }));
    }
}

/// The times to live of [`Answers`]; unset if there are no answers.
#[derive(Clone, Copy, Debug)]
pub struct AnswerTtls<'a>(pub(super) &'a Answers);

impl Value for AnswerTtls<'_> {
    const TYPE: Type = Type::Vector("interval");

    fn is_unset(&self) -> bool {
        self.0.is_empty()
    }

    #[inline(always)]
    fn put<E: Encoder>(&self, e: &mut E) {
        e.list(self.0.ttls.iter());
    }
}
