//! Writes queries with the answers of several servers for respdiff: an LMDB environment in its format of 2018-05-21.
//!
//! It has three databases. `queries` maps a number (32 bits, little endian) to a query. `answers` maps the same number
//! to the answers of all servers in order, each with the response time in microseconds (32 bits, all set if there is no
//! answer), the length (16 bits) and the message. `meta` has the version, the names of the servers, and the start and
//! end time in seconds.
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

/// Version of the format.
const VERSION: &[u8] = b"2018-05-21";
/// Initial size of an environment in bytes; it grows when it is full.
const INITIAL_SIZE: usize = 64 << 20;
/// Sizes are multiples of this, which is more than any page size.
const SIZE_MULTIPLE: usize = 1 << 20;
/// Number of bytes that are written in one transaction.
const BATCH: usize = 8 << 20;
/// The response time that stands for no answer.
const NONE: u32 = u32::MAX;

/// Errors of writing an environment.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder cannot be created.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// LMDB returned an error.
    #[error("{}: {error}", path.display())]
    Database {
        /// The folder.
        path: PathBuf,
        /// The cause.
        error: heed::Error,
    },
    /// The environment has queries already.
    #[error("{} already contains queries", .0.display())]
    Used(PathBuf),
    /// The number of answers differs from the number of servers.
    #[error("{answers} answers for {servers} servers")]
    Servers {
        /// Number of answers.
        answers: usize,
        /// Number of servers.
        servers: usize,
    },
    /// A message is longer than DNS allows.
    #[error("a message of {0} bytes is too long")]
    Long(usize),
    /// The maximum number of queries is reached.
    #[error("more than 4,294,967,296 queries")]
    Full,
}

/// An answer and its response time; `None` if there is no answer.
pub type Answer<'a> = Option<(&'a [u8], Duration)>;

/// Writes an environment.
pub struct Writer {
    env: Env,
    path: PathBuf,
    databases: Databases,
    servers: Vec<String>,
    /// Number of the next query.
    next: u32,
    /// Queries and answers that are not written yet, prefixed with their number and lengths.
    batch: Vec<u8>,
    /// Size of the LMDB map, in bytes.
    map_size: usize,
}

#[derive(Clone, Copy)]
struct Databases {
    queries: Database<Bytes, Bytes>,
    answers: Database<Bytes, Bytes>,
    meta: Database<Bytes, Bytes>,
}

impl Writer {
    /// Creates an environment for the answers of these servers in a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// If the folder cannot be written or has queries already.
    pub fn create(path: &Path, servers: &[&str]) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(|error| Error::Folder { path: path.into(), error })?;
        let database_error = |error| Error::Database { path: path.into(), error };
        let mut options = EnvOpenOptions::new();
        options.map_size(INITIAL_SIZE).max_dbs(3);
        // SAFETY: LMDB maps the environment's file, which must be written only by LMDB while it is open. Its lock
        // coordinates processes that use LMDB. No other process has a reason to write the file; a truncation by one
        // would end this process, as with any mapped file.
        let env = unsafe { options.open(path) }.map_err(database_error)?;
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
        let (databases, is_used) = open().map_err(database_error)?;
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
            map_size: INITIAL_SIZE,
        })
    }

    /// Adds a query and the answers of the servers, in order. Response times above the format's range are clamped.
    ///
    /// # Errors
    /// If a message is too long, the number of answers is not that of the servers, or they cannot be written.
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
        write_framed(batch, |batch| batch.extend_from_slice(query));
        write_framed(batch, |batch| {
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

    /// Writes buffered queries, and the start and end time of the measurement in seconds since the epoch; returns the
    /// number of queries.
    ///
    /// # Errors
    /// If they cannot be written.
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

    /// Writes the batch in a transaction.
    fn flush(&mut self) -> Result<(), Error> {
        let batch = std::mem::take(&mut self.batch);
        let Databases { queries, answers, .. } = self.databases;
        self.write(|env| {
            let mut transaction = env.write_txn()?;
            let mut rest = &batch[..];
            while let Some((number, after)) = rest.split_at_checked(4) {
                let (query, after) = read_framed(after);
                let (answer, after) = read_framed(after);
                queries.put(&mut transaction, number, query)?;
                answers.put(&mut transaction, number, answer)?;
                rest = after;
            }
            transaction.commit()
        })?;
        self.batch = batch;
        self.batch.clear();
        Ok(())
    }

    /// Runs a transaction; if the environment is full, doubles its size and retries.
    fn write(&mut self, write: impl Fn(&Env) -> heed::Result<()>) -> Result<(), Error> {
        let database_error = |error| Error::Database { path: self.path.clone(), error };
        loop {
            match write(&self.env) {
                Err(heed::Error::Mdb(MdbError::MapFull)) => {}
                done => return done.map_err(database_error),
            }
            self.map_size = self.map_size.saturating_mul(2) / SIZE_MULTIPLE * SIZE_MULTIPLE;
            // SAFETY: no transaction of this process is open: those of `write` have ended, and
            // there is no other handle of this environment.
            unsafe { self.env.resize(self.map_size) }.map_err(database_error)?;
        }
    }
}

/// Appends what `write` appends, prefixed with its length (32 bits).
fn write_framed(batch: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = batch.len();
    batch.extend_from_slice(&[0; 4]);
    write(batch);
    // The answers to a query have at most some hundred kilobytes, because there are few servers.
    let len = (batch.len() - start - 4) as u32;
    batch[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

/// Splits off length-prefixed bytes; returns them and the rest.
fn read_framed(bytes: &[u8]) -> (&[u8], &[u8]) {
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
        // SAFETY: no other process writes to the environment.
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
    fn answers_have_the_number_of_their_query() {
        let folder = Folder::new("respdiff-rows");
        let mut writer = Writer::create(&folder.0, &["one", "two"]).unwrap();
        let time = Duration::from_micros(0x0102_0304);
        writer.put(b"query", &[Some((b"answer", time)), None]).unwrap();
        writer.put(b"", &[None, Some((b"x", Duration::from_secs(90_000)))]).unwrap();
        let wrong = writer.put(b"query", &[None]).unwrap_err();
        assert_eq!(wrong.to_string(), "1 answers for 2 servers");
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
        assert!(again.to_string().ends_with("already contains queries"));
    }

    #[test]
    fn a_full_environment_grows() {
        let folder = Folder::new("respdiff-grows");
        let mut writer = Writer::create(&folder.0, &["one"]).unwrap();
        writer.map_size = 1 << 20;
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
