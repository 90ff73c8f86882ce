//! Queries with the answers of several servers, as respdiff reads them: an LMDB environment in its format
//! of 2018-05-21.
//!
//! It has three databases. `queries` has messages under their number (32 bits, little endian),
//! `answers` under the same number the answer of each server in order: the time it took in
//! microseconds (32 bits, all set for none), the length (16 bits), the message. `meta` has the
//! version, the names of the servers, and start and end in seconds.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use heed::Database;
use heed::Env;
use heed::EnvOpenOptions;
use heed::MdbError;
use heed::types::Bytes;

/// The format's version.
const VERSION: &[u8] = b"2018-05-21";
/// Bytes of an environment at first; it grows as it fills.
const ROOM: usize = 64 << 20;
/// What room is a multiple of: more than any page.
const GRAIN: usize = 1 << 20;
/// Bytes that are written at once.
const BATCH: usize = 8 << 20;
/// The time of an answer that there was none of.
const NONE: u32 = u32::MAX;

/// Why an environment could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its folder could not be created.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// LMDB says so.
    #[error("{}: {error}", path.display())]
    Database {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: heed::Error,
    },
    /// There are queries in it.
    #[error("{} has queries already", .0.display())]
    Used(PathBuf),
    /// The number of answers differs from the number of servers.
    #[error("{answers} answers of {servers} servers")]
    Servers {
        /// Answers that were given.
        answers: usize,
        /// Servers that there are.
        servers: usize,
    },
    /// A message is longer than one of DNS may be.
    #[error("a message of {0} bytes")]
    Long(usize),
    /// There are as many queries as numbers for them.
    #[error("4,294,967,296 queries are the most")]
    Full,
}

/// An answer, and how long it took.
pub type Answer<'a> = Option<(&'a [u8], Duration)>;

/// Writes such an environment.
pub struct Writer {
    env: Env,
    path: PathBuf,
    databases: Databases,
    servers: Vec<String>,
    next: u32,
    /// Queries and answers that are not written yet, each with its number and length before it.
    batch: Vec<u8>,
    room: usize,
}

#[derive(Clone, Copy)]
struct Databases {
    queries: Database<Bytes, Bytes>,
    answers: Database<Bytes, Bytes>,
    meta: Database<Bytes, Bytes>,
}

impl Writer {
    /// Creates a database in a folder, which is created if missing, for the answers of these
    /// servers.
    ///
    /// # Errors
    /// Where the folder cannot be written or has queries.
    pub fn create(path: &Path, servers: &[&str]) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(|error| Error::Folder { path: path.into(), error })?;
        let failed = |error| Error::Database { path: path.into(), error };
        let mut options = EnvOpenOptions::new();
        options.map_size(ROOM).max_dbs(3);
        // SAFETY: LMDB maps the environment's file, which only LMDB may write. Another process has
        // no reason to while it is being made; truncation by one ends this program like any other
        // that maps files. LMDB's lock separates its own users.
        let env = unsafe { options.open(path) }.map_err(failed)?;
        let open = || -> heed::Result<(Databases, bool)> {
            let mut transaction = env.write_txn()?;
            let mut make = |name| env.create_database(&mut transaction, Some(name));
            let databases = Databases {
                queries: make("queries")?,
                answers: make("answers")?,
                meta: make("meta")?,
            };
            let is_used = !databases.queries.is_empty(&transaction)?;
            transaction.commit()?;
            Ok((databases, is_used))
        };
        let (databases, is_used) = open().map_err(failed)?;
        if is_used {
            return Err(Error::Used(path.into()));
        }
        Ok(Self {
            env,
            path: path.into(),
            databases,
            servers: servers.iter().map(|&name| name.to_owned()).collect(),
            next: 0,
            batch: Vec::new(),
            room: ROOM,
        })
    }

    /// Adds a query and the answers of the servers, in order. Times beyond the format's range are
    /// clamped.
    ///
    /// # Errors
    /// Where a message is too long, where there are more or fewer answers than servers, and where they
    /// cannot be written.
    pub fn put(&mut self, query: &[u8], answers: &[Answer<'_>]) -> Result<(), Error> {
        let servers = self.servers.len();
        if answers.len() != servers {
            return Err(Error::Servers { answers: answers.len(), servers });
        }
        let messages =
            answers.iter().flatten().map(|(message, _)| message.len()).chain([query.len()]);
        if let Some(long) = messages.into_iter().find(|len| *len > usize::from(u16::MAX)) {
            return Err(Error::Long(long));
        }
        let following = self.next.checked_add(1).ok_or(Error::Full)?;
        self.batch.extend_from_slice(&self.next.to_le_bytes());
        let batch = &mut self.batch;
        framed(batch, |batch| batch.extend_from_slice(query));
        framed(batch, |batch| {
            for answer in answers {
                let (message, time) = match answer {
                    Some((message, time)) => {
                        (*message, u32::try_from(time.as_micros()).unwrap_or(NONE).min(NONE - 1))
                    }
                    None => (&[][..], NONE),
                };
                batch.extend_from_slice(&time.to_le_bytes());
                batch.extend_from_slice(&(message.len() as u16).to_le_bytes());
                batch.extend_from_slice(message);
            }
        });
        self.next = following;
        if self.batch.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes buffered queries, and the times at which the answers were requested (seconds since
    /// the epoch); returns the number of queries.
    ///
    /// # Errors
    /// Where that cannot be written.
    pub fn finish(mut self, began: u32, ended: u32) -> Result<u32, Error> {
        self.flush()?;
        let servers = (self.servers.len() as u32).to_le_bytes();
        let mut all = vec![
            (b"version".to_vec(), VERSION.to_vec()),
            (b"servers".to_vec(), servers.to_vec()),
            (b"start_time".to_vec(), began.to_le_bytes().to_vec()),
            (b"end_time".to_vec(), ended.to_le_bytes().to_vec()),
        ];
        for (index, name) in self.servers.iter().enumerate() {
            all.push((format!("name{index}").into_bytes(), name.clone().into_bytes()));
        }
        let meta = self.databases.meta;
        self.write(|env| {
            let mut transaction = env.write_txn()?;
            for (key, value) in &all {
                meta.put(&mut transaction, key, value)?;
            }
            transaction.commit()
        })?;
        Ok(self.next)
    }

    /// Writes the batch.
    fn flush(&mut self) -> Result<(), Error> {
        let batch = std::mem::take(&mut self.batch);
        let Databases { queries, answers, .. } = self.databases;
        self.write(|env| {
            let mut transaction = env.write_txn()?;
            let mut rest = &batch[..];
            while let Some((number, after)) = rest.split_at_checked(4) {
                let (query, after) = unframed(after);
                let (said, after) = unframed(after);
                queries.put(&mut transaction, number, query)?;
                answers.put(&mut transaction, number, said)?;
                rest = after;
            }
            transaction.commit()
        })?;
        self.batch = batch;
        self.batch.clear();
        Ok(())
    }

    /// Writes in one transaction; where there is no room for it, once more with twice of it.
    fn write(&mut self, write: impl Fn(&Env) -> heed::Result<()>) -> Result<(), Error> {
        let failed = |error| Error::Database { path: self.path.clone(), error };
        loop {
            match write(&self.env) {
                Err(heed::Error::Mdb(MdbError::MapFull)) => {}
                done => return done.map_err(failed),
            }
            self.room = self.room.saturating_mul(2) / GRAIN * GRAIN;
            // SAFETY: no transaction of this process is open: those of `write` have ended, and
            // there is no other handle of this environment.
            unsafe { self.env.resize(self.room) }.map_err(failed)?;
        }
    }
}

/// Puts what `write` puts, with its length (32 bits) before it.
fn framed(batch: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = batch.len();
    batch.extend_from_slice(&[0; 4]);
    write(batch);
    // Messages of a query are some hundred kilobytes at the most, servers being few.
    let len = (batch.len() - start - 4) as u32;
    batch[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

/// The framed bytes, and what follows.
fn unframed(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some((len, rest)) = bytes.split_at_checked(4) else { return (&[], &[]) };
    let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]) as usize;
    rest.split_at_checked(len).unwrap_or((rest, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("gannet-{name}-{}", std::process::id())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap_or_default();
        }
    }

    fn read(path: &Path, name: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        // SAFETY: it is not written to.
        let env = unsafe { EnvOpenOptions::new().max_dbs(3).map_size(1 << 30).open(path) }.unwrap();
        let transaction = env.read_txn().unwrap();
        let database: Database<Bytes, Bytes> =
            env.open_database(&transaction, Some(name)).unwrap().unwrap();
        let rows = database.iter(&transaction).unwrap();
        let rows = rows.map(|row| row.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
        drop(transaction);
        env.prepare_for_closing().wait();
        rows
    }

    fn close(writer: Writer, began: u32, ended: u32) -> u32 {
        let env = writer.env.clone();
        let count = writer.finish(began, ended).unwrap();
        env.prepare_for_closing().wait();
        count
    }

    #[test]
    fn answers_stand_under_the_number_of_their_query() {
        let folder = Folder::new("respdiff-rows");
        let mut writer = Writer::create(&folder.0, &["one", "two"]).unwrap();
        let time = Duration::from_micros(0x0102_0304);
        writer.put(b"query", &[Some((b"answer", time)), None]).unwrap();
        writer.put(b"", &[None, Some((b"x", Duration::from_secs(90_000)))]).unwrap();
        let wrong = writer.put(b"query", &[None]).unwrap_err();
        assert_eq!(wrong.to_string(), "1 answers of 2 servers");
        assert!(matches!(writer.put(&[0; 65_536], &[None, None]), Err(Error::Long(65_536))));
        assert_eq!(close(writer, 5, 6), 2);
        let number = |n: u32| n.to_le_bytes().to_vec();
        let queries = [(number(0), b"query".to_vec()), (number(1), Vec::new())];
        assert_eq!(read(&folder.0, "queries"), queries);
        let none = b"\xff\xff\xff\xff\0\0";
        let first = [&b"\x04\x03\x02\x01\x06\0answer"[..], none].concat();
        let second = [&none[..], b"\xfe\xff\xff\xff\x01\0x"].concat();
        assert_eq!(read(&folder.0, "answers"), [(number(0), first), (number(1), second)]);
        let meta = read(&folder.0, "meta");
        let keys: Vec<_> = meta.iter().map(|(key, _)| key.as_slice()).collect();
        let expected: [&[u8]; 6] =
            [b"end_time", b"name0", b"name1", b"servers", b"start_time", b"version"];
        assert_eq!(keys, expected);
        assert_eq!(
            (&meta[1].1[..], &meta[3].1[..], &meta[5].1[..]),
            (&b"one"[..], &b"\x02\0\0\0"[..], VERSION)
        );
        let again = Writer::create(&folder.0, &["one"]).err().unwrap();
        assert!(again.to_string().ends_with("has queries already"));
    }

    #[test]
    fn it_grows_as_it_fills() {
        let folder = Folder::new("respdiff-grows");
        let mut writer = Writer::create(&folder.0, &["one"]).unwrap();
        writer.room = 1 << 20;
        // SAFETY: no transaction is open.
        unsafe { writer.env.resize(1 << 20) }.unwrap();
        let message = [7; 60_000];
        for _ in 0..200 {
            writer.put(b"query", &[Some((&message, Duration::ZERO))]).unwrap();
        }
        assert_eq!(close(writer, 0, 0), 200);
        assert_eq!(read(&folder.0, "answers").len(), 200);
    }
}
