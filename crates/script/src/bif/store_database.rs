//! The database of a Broker store: a table of keys, values and expiration times.

use std::collections::BTreeMap;

use super::data::Data;

/// A value and the network time at which it expires.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Entry {
    pub(super) data: Data,
    pub(super) expires: Option<f64>,
}

/// How a database is opened.
#[derive(Default)]
pub(super) struct Config {
    /// Path of the database file.
    pub(super) path: String,
    /// Values of SQLite pragmas.
    pub(super) synchronous: Option<String>,
    pub(super) journal_mode: Option<String>,
    /// Whether the integrity of the database is checked first.
    pub(super) is_checked: bool,
    /// Whether a file that is corrupt or not a database is deleted.
    pub(super) deletes_corrupt: bool,
}

#[cfg(not(feature = "sqlite"))]
pub(super) use absent::Database;
#[cfg(feature = "sqlite")]
pub(super) use sqlite::Database;

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use rusqlite::{Connection, params};

    use super::{BTreeMap, Config, Data, Entry};

    /// Maximum delay until changes are committed.
    const COMMIT_AFTER: Duration = Duration::from_secs(1);

    /// Format name in the table; tables of other programs have other names.
    const FORMAT: &str = "gannet 1";

    /// An open database.
    #[derive(Debug)]
    pub(crate) struct Database {
        connection: Connection,
        /// When the first uncommitted change was made.
        changed: Option<Instant>,
    }

    impl Database {
        /// Opens a database and reads all its entries; creates it if it does not exist.
        pub(crate) fn open(config: &Config) -> Result<(Self, BTreeMap<Data, Entry>), String> {
            let opened = Self::try_open(config);
            match opened {
                Err(Failed { is_corrupt: true, .. }) if config.deletes_corrupt => {
                    std::fs::remove_file(&config.path).map_err(|error| error.to_string())?;
                    // SQLite would apply these files to the new database.
                    for rest in ["-journal", "-wal", "-shm"] {
                        match std::fs::remove_file(format!("{}{rest}", config.path)) {
                            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                                return Err(error.to_string());
                            }
                            _ => {}
                        }
                    }
                    Self::try_open(config)
                }
                opened => opened,
            }
            .map_err(|failed| failed.text)
        }

        fn try_open(config: &Config) -> Result<(Self, BTreeMap<Data, Entry>), Failed> {
            if let Some(folder) = Path::new(&config.path).parent() {
                // If this fails, opening the database fails as well.
                let _ = std::fs::create_dir_all(folder);
            }
            let connection = Connection::open(&config.path)?;
            let pragmas =
                [("synchronous", &config.synchronous), ("journal_mode", &config.journal_mode)];
            for (name, value) in pragmas {
                if let Some(value) = value {
                    match connection.pragma_update_and_check(None, name, value, |_| Ok(())) {
                        // Some pragmas return their value, others no row.
                        Ok(()) | Err(rusqlite::Error::QueryReturnedNoRows) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            if config.is_checked {
                let result: String =
                    connection.query_row("pragma integrity_check", [], |row| row.get(0))?;
                if result != "ok" {
                    return Err(Failed { text: result, is_corrupt: true });
                }
            }
            connection.execute_batch(
                "create table if not exists store (key blob primary key, value blob not null, expires real);\
                 create table if not exists meta (key text primary key, value text);\
                 insert into meta select 'format', 'gannet 1' where not exists (select * from store) \
                 and not exists (select * from meta);",
            )?;
            let known =
                connection.query_row("select value from meta where key = 'format'", [], |row| {
                    row.get::<_, String>(0)
                });
            if let Err(error) = &known
                && is_busy(error)
            {
                return Err(Failed { text: error.to_string(), is_corrupt: false });
            }
            if known.as_deref() != Ok(FORMAT) {
                let text = format!("{}: the store of another program", config.path);
                return Err(Failed { text, is_corrupt: false });
            }
            let entries = entries(&connection)?;
            Ok((Self { connection, changed: None }, entries))
        }

        /// Writes the entry of a key, or removes it.
        pub(crate) fn save(&mut self, key: &Data, entry: Option<&Entry>) -> Result<(), String> {
            self.try_save(key, entry).map_err(|failed| failed.text)
        }

        fn try_save(&mut self, key: &Data, entry: Option<&Entry>) -> Result<(), Failed> {
            let key = bytes(key)?;
            self.begin()?;
            let Some(Entry { data, expires }) = entry else {
                let command = "delete from store where key = ?";
                self.connection.prepare_cached(command)?.execute(params![key])?;
                return Ok(());
            };
            let command = "insert or replace into store values (?, ?, ?)";
            let value = bytes(data)?;
            self.connection.prepare_cached(command)?.execute(params![key, value, expires])?;
            Ok(())
        }

        /// Removes all entries.
        pub(crate) fn clear(&mut self) -> Result<(), String> {
            let cleared = self.begin().and_then(|()| {
                self.connection.execute("delete from store", [])?;
                Ok(())
            });
            cleared.map_err(|failed| failed.text)
        }

        fn begin(&mut self) -> Result<(), Failed> {
            if self.changed.is_none() {
                self.connection.execute_batch("begin")?;
                self.changed = Some(Instant::now());
            }
            Ok(())
        }

        /// Commits all changes, or only those that are due. Changes that are due are retried later while another process reads
        /// the database.
        pub(crate) fn commit(&mut self, all: bool) -> Result<(), String> {
            if self.changed.is_some_and(|since| all || since.elapsed() >= COMMIT_AFTER) {
                match self.connection.execute_batch("commit") {
                    Ok(()) => self.changed = None,
                    Err(error) if is_busy(&error) && !all => self.changed = Some(Instant::now()),
                    Err(error) => return Err(Failed::from(error).text),
                }
            }
            Ok(())
        }
    }

    impl Drop for Database {
        fn drop(&mut self) {
            // Otherwise the changes would be rolled back. At the end of a run, they are committed earlier, with errors reported.
            let _ = self.commit(true);
        }
    }

    /// Whether another process has locked the database.
    fn is_busy(error: &rusqlite::Error) -> bool {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
        matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
    }

    fn bytes(data: &Data) -> Result<Vec<u8>, Failed> {
        let mut bytes = Vec::new();
        let text = "data is nested too deep";
        let written = data.write(&mut bytes);
        written.then_some(bytes).ok_or(Failed { text: text.to_owned(), is_corrupt: false })
    }

    fn entries(connection: &Connection) -> Result<BTreeMap<Data, Entry>, Failed> {
        let mut query = connection.prepare("select key, value, expires from store")?;
        let mut rows = query.query([])?;
        let mut entries = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let read = |column| {
                let blob = row.get_ref(column)?.as_blob().unwrap_or_default();
                let text = "an entry cannot be read".to_owned();
                Data::read(blob).ok_or(Failed { text, is_corrupt: true })
            };
            let (key, data) = (read(0)?, read(1)?);
            entries.insert(key, Entry { data, expires: row.get(2)? });
        }
        Ok(entries)
    }

    struct Failed {
        text: String,
        is_corrupt: bool,
    }

    impl From<rusqlite::Error> for Failed {
        fn from(error: rusqlite::Error) -> Self {
            use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
            let is_corrupt =
                matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase));
            Self { text: error.to_string(), is_corrupt }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn config(name: &str) -> Config {
            let path = std::env::temp_dir().join(format!("gannet-{}-{name}", std::process::id()));
            let _ = std::fs::remove_file(&path);
            Config { path: path.display().to_string(), ..Config::default() }
        }

        fn entry(n: u64) -> Entry {
            Entry { data: Data::Count(n), expires: (n > 1).then_some(5.5) }
        }

        #[test]
        fn changes_wait_while_another_process_reads() {
            let config = config("busy.sqlite");
            let (mut database, _) = Database::open(&config).unwrap();
            database.connection.busy_timeout(Duration::ZERO).unwrap();
            let reader = Connection::open(&config.path).unwrap();
            reader.execute_batch("begin; select * from store").unwrap();
            database.save(&Data::Count(1), Some(&entry(1))).unwrap();
            database.changed = Instant::now().checked_sub(COMMIT_AFTER);
            assert_eq!(database.commit(false), Ok(()));
            assert!(database.changed.is_some());
            assert!(database.commit(true).unwrap_err().contains("locked"));
            drop(reader);
            database.commit(true).unwrap();
            assert_eq!(Database::open(&config).unwrap().1, [(Data::Count(1), entry(1))].into());
        }

        #[test]
        fn entries_persist_across_opens() {
            let config = config("again.sqlite");
            let (mut database, entries) = Database::open(&config).unwrap();
            assert!(entries.is_empty());
            for n in 0..4 {
                database.save(&Data::Count(n), Some(&entry(n))).unwrap();
            }
            database.save(&Data::Count(0), None).unwrap();
            database.save(&Data::Count(3), Some(&entry(7))).unwrap();
            database.commit(true).unwrap();
            // Changes that are not committed by then are committed on close.
            database.save(&Data::Nil, Some(&entry(1))).unwrap();
            drop(database);
            let (mut database, entries) = Database::open(&config).unwrap();
            let expected = [
                (Data::Nil, entry(1)),
                (Data::Count(1), entry(1)),
                (Data::Count(2), entry(2)),
                (Data::Count(3), entry(7)),
            ];
            assert_eq!(entries, BTreeMap::from(expected));
            database.clear().unwrap();
            drop(database);
            assert!(Database::open(&config).unwrap().1.is_empty());
            std::fs::remove_file(&config.path).unwrap();
        }

        #[test]
        fn missing_directories_are_created() {
            let mut config = config("folder");
            config.path.push_str("/of/stores.sqlite");
            assert!(Database::open(&config).unwrap().1.is_empty());
            assert!(Path::new(&config.path).is_file());
        }

        #[test]
        fn foreign_databases_and_files_are_refused() {
            let mut config = config("other.sqlite");
            let other = Connection::open(&config.path).unwrap();
            let made = "create table store (key blob primary key, value blob, expiry integer);\
                        insert into store values (1, 2, 3);";
            other.execute_batch(made).unwrap();
            drop(other);
            assert!(Database::open(&config).unwrap_err().contains("another program"));
            std::fs::write(&config.path, "not a database, but a text that is long enough").unwrap();
            assert!(Database::open(&config).unwrap_err().contains("not a database"));
            config.deletes_corrupt = true;
            config.is_checked = true;
            assert!(Database::open(&config).unwrap().1.is_empty());
            std::fs::remove_file(&config.path).unwrap();
        }
    }
}

#[cfg(not(feature = "sqlite"))]
mod absent {
    //! Stub for builds without SQLite: opening always fails.

    use super::{BTreeMap, Config, Data, Entry};

    /// Has no values.
    #[derive(Debug)]
    pub(crate) enum Database {}

    impl Database {
        pub(crate) fn open(config: &Config) -> Result<(Self, BTreeMap<Data, Entry>), String> {
            let Config { path, synchronous, journal_mode, is_checked, deletes_corrupt } = config;
            let _ = (synchronous, journal_mode, is_checked, deletes_corrupt);
            Err(format!("{path}: this build has no SQLite"))
        }

        pub(crate) fn save(&mut self, _: &Data, _: Option<&Entry>) -> Result<(), String> {
            match *self {}
        }

        pub(crate) fn clear(&mut self) -> Result<(), String> {
            match *self {}
        }

        pub(crate) fn commit(&mut self, _: bool) -> Result<(), String> {
            match *self {}
        }
    }
}
