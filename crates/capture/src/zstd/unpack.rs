//! The entropy stage: what needs nothing of the blocks before but the descriptions of tables.

use super::Damage;
use super::job::Content;
use super::job::Failure;
use super::job::Job;
use super::literals::Codes;
use super::sequences;
use super::sequences::Lane;
use super::tables::Tables;

/// Tables for two blocks, kept as long as blocks use them again.
#[derive(Debug, Default)]
pub(super) struct Entropy {
    codes: Codes,
    tables: Box<[Tables; 2]>,
}

impl Entropy {
    /// Unpacks literals and sequences of one block.
    pub(super) fn one(&mut self, job: &mut Job) {
        self.literals(job);
        let [tables, _] = &mut *self.tables;
        let Some(lane) = lane(job, tables) else { return };
        let [done] = sequences::read([lane]);
        fail(job, done);
    }

    /// Likewise of two at once, which takes less time than one after the other.
    pub(super) fn two(&mut self, first: &mut Job, second: &mut Job) {
        self.literals(first);
        self.literals(second);
        let [one, two] = &mut *self.tables;
        let done = match (lane(first, one), lane(second, two)) {
            (Some(a), Some(b)) => sequences::read([a, b]).map(Some),
            (Some(a), None) => [Some(sequences::read([a])[0]), None],
            (None, Some(b)) => [None, Some(sequences::read([b])[0])],
            (None, None) => [None, None],
        };
        for (job, done) in [first, second].into_iter().zip(done) {
            done.into_iter().for_each(|done| fail(job, done));
        }
    }

    fn literals(&mut self, job: &mut Job) {
        let Content::Packed(packed) = &job.content else { return };
        let done = self.codes.unpack(packed, &job.input, &mut job.made);
        fail(job, done);
    }
}

/// The sequences of a block, if it has any and nothing was wrong so far.
fn lane<'a>(job: &'a mut Job, tables: &'a mut Tables) -> Option<Lane<'a>> {
    let Content::Packed(packed) = &job.content else { return None };
    match Lane::new(packed, &job.input, tables, &mut job.made, job.most) {
        Ok(lane) => Some(lane),
        Err(damage) => {
            job.content = Content::Nothing;
            job.failure = Some(Failure::Damage(damage));
            None
        }
    }
}

/// Puts an error in the place of the block.
fn fail(job: &mut Job, done: Result<(), Damage>) {
    if let Err(damage) = done {
        job.content = Content::Nothing;
        job.failure = Some(Failure::Damage(damage));
    }
}
