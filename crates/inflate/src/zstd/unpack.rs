//! The entropy stage: it depends on earlier blocks only through repeated table descriptions.

use super::Damage;
use super::job::Content;
use super::job::Failure;
use super::job::Job;
use super::literals::Codes;
use super::sequences;
use super::sequences::Lane;
use super::sequences::SequenceScratch;

/// The current tables, kept while blocks repeat them.
#[derive(Debug, Default)]
pub(super) struct Entropy {
    codes: Codes,
    scratch: Box<SequenceScratch>,
}

impl Entropy {
    /// Decodes literals and sequences of one block.
    pub(super) fn one(&mut self, job: &mut Job) {
        self.literals(job);
        self.sequences_one(job);
    }

    /// Decodes literals and sequences of two blocks at once, which takes less time than one after
    /// the other.
    pub(super) fn two(&mut self, first: &mut Job, second: &mut Job) {
        self.literals(first);
        self.literals(second);
        self.sequences_two(first, second);
    }

    fn literals(&mut self, job: &mut Job) {
        let Content::Packed(packed) = &job.content else { return };
        let done = self.codes.unpack(packed, &job.input, &mut job.decoded);
        fail(job, done);
    }

    fn sequences_one(&mut self, job: &mut Job) {
        let Some(lane) = lane(job) else { return };
        let [done] = sequences::read(&mut self.scratch, [lane]);
        fail(job, done);
    }

    fn sequences_two(&mut self, first: &mut Job, second: &mut Job) {
        let (Some(a), Some(b)) = (lane(first), lane(second)) else {
            self.sequences_one(first);
            return self.sequences_one(second);
        };
        let [one, two] = sequences::read(&mut self.scratch, [a, b]);
        fail(first, one);
        fail(second, two);
    }
}

/// The decoder of the sequences of a block; `None` if the block cannot have any.
fn lane(job: &mut Job) -> Option<Lane<'_>> {
    let Content::Packed(packed) = &job.content else { return None };
    Some(Lane::new(packed, &job.input, &mut job.decoded, job.max_size))
}

/// Replaces the block by an error.
fn fail(job: &mut Job, done: Result<(), Damage>) {
    if let Err(damage) = done {
        job.content = Content::Nothing;
        job.failure = Some(Failure::Damage(damage));
    }
}
