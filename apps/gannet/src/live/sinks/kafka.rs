//! Sends rows as records to Kafka: by default one topic for each log.
//!
//! All replicas confirm a record before it counts as sent. The key of a record is the uid of its connection: rows of a
//! connection are in one partition, the one that Kafka's own clients choose for this key.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use rskafka::BackoffConfig;
use rskafka::client::Client;
use rskafka::client::ClientBuilder;
use rskafka::client::error::Error;
use rskafka::client::error::ProtocolError;
use rskafka::client::partition::Compression;
use rskafka::client::partition::PartitionClient;
use rskafka::client::partition::UnknownTopicHandling;
use rskafka::record::Record;
use tokio::runtime::Runtime;

use super::KafkaOptions;
use super::WRITE_TIMEOUT;
use super::queue::Row;

/// Maximum size of a reply in bytes: larger ones are refused. The largest is a list of topics.
const MAX_REPLY: usize = 16 << 20;
/// Number of partitions of a new topic if the broker has no default.
const PARTITIONS: i32 = 1;

/// A connection to the brokers of a cluster.
pub(super) struct Kafka {
    runtime: Runtime,
    client: Client,
    /// Name of the topic of a log: `{log}` stands for the log.
    template: String,
    /// The partitions of each topic that had rows.
    topics: BTreeMap<String, Vec<Arc<PartitionClient>>>,
    /// Counter that distributes rows without a key over all partitions.
    next_partition: usize,
}

impl Kafka {
    /// Connects to the first broker that answers.
    pub(super) fn connect(options: &KafkaOptions) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let brokers = options.brokers.split(',').map(str::to_owned).collect();
        let builder = ClientBuilder::new(brokers)
            .client_id("gannet")
            .max_message_size(MAX_REPLY)
            .backoff_config(BackoffConfig {
                deadline: Some(WRITE_TIMEOUT),
                ..BackoffConfig::default()
            });
        let builder = match options.tls {
            true => builder.tls_config(Arc::new(tls()?)),
            false => builder,
        };
        let client = runtime.block_on(within(WRITE_TIMEOUT, builder.build()))?;
        let template = options.topic.clone();
        Ok(Self { runtime, client, template, topics: BTreeMap::new(), next_partition: 0 })
    }

    /// Sends rows and waits until all are confirmed. Returns the number of rows that exceed the brokers' maximum length.
    pub(super) fn send(&mut self, rows: &[Row]) -> io::Result<u64> {
        let mut batches: BTreeMap<(Arc<str>, usize), Vec<Record>> = BTreeMap::new();
        self.next_partition = self.next_partition.wrapping_add(1);
        for row in rows {
            let partitions = self.partitions(&row.log)?.len();
            let partition = match &row.key {
                Some(key) => murmur2(key) as usize & 0x7fff_ffff,
                None => self.next_partition,
            };
            let at = (row.log.clone(), partition.checked_rem(partitions).unwrap_or(0));
            batches.entry(at).or_default().push(record(row));
        }
        let mut refused = 0;
        for ((log, partition), records) in batches {
            let client = self.partitions(&log)?.get(partition).cloned();
            let client = client.ok_or(io::ErrorKind::NotFound)?;
            refused += self.runtime.block_on(produce(&client, records))?;
        }
        Ok(refused)
    }

    /// The partitions of the topic of a log. A missing topic is created.
    fn partitions(&mut self, log: &str) -> io::Result<&[Arc<PartitionClient>]> {
        let topic = self.template.replace("{log}", log);
        if !self.topics.contains_key(&topic) {
            let found = self.runtime.block_on(open(&self.client, &topic))?;
            self.topics.insert(topic.clone(), found);
        }
        Ok(self.topics.get(&topic).map(Vec::as_slice).unwrap_or_default())
    }
}

/// Finds the partitions of a topic.
async fn open(client: &Client, topic: &str) -> io::Result<Vec<Arc<PartitionClient>>> {
    let find = async || -> io::Result<Option<_>> {
        let topics = within(WRITE_TIMEOUT, client.list_topics()).await?;
        Ok(topics.into_iter().find(|known| known.name == topic))
    };
    let known = match find().await? {
        Some(known) => Some(known),
        None => {
            create(client, topic).await?;
            find().await?
        }
    };
    let numbers = known.map(|known| known.partitions).unwrap_or_default();
    if numbers.is_empty() {
        return Err(io::Error::other(format!("topic {topic} has no partitions yet")));
    }
    let mut partitions = Vec::new();
    for number in numbers {
        let handling = UnknownTopicHandling::Retry;
        let partition = client.partition_client(topic, number, handling);
        partitions.push(Arc::new(within(WRITE_TIMEOUT, partition).await?));
    }
    Ok(partitions)
}

/// Creates a topic with the brokers' default number of partitions and replicas (KIP-464).
async fn create(client: &Client, topic: &str) -> io::Result<()> {
    let controller = client.controller_client().map_err(io::Error::other)?;
    let wait = WRITE_TIMEOUT.as_millis() as i32;
    let exists = |error: &Error| is(error, ProtocolError::TopicAlreadyExists);
    for (partitions, replicas) in [(-1, -1), (PARTITIONS, 1)] {
        let created = controller.create_topic(topic, partitions, replicas, wait);
        match tokio::time::timeout(WRITE_TIMEOUT, created).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) if exists(&error) => return Ok(()),
            // Brokers before 2.4 do not support defaults.
            Ok(Err(_)) if partitions < 0 => {}
            Ok(Err(error)) => return Err(io::Error::other(format!("topic {topic}: {error}"))),
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
    Ok(())
}

/// Sends records to one partition. A batch that is refused for its length is divided; a single record that is refused is
/// dropped and counted.
async fn produce(client: &PartitionClient, records: Vec<Record>) -> io::Result<u64> {
    let mut refused = 0;
    let mut batches = vec![records];
    while let Some(mut batch) = batches.pop() {
        let sent = client.produce(batch.clone(), Compression::Zstd);
        match tokio::time::timeout(WRITE_TIMEOUT, sent).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) if is_too_long(&error) && batch.len() > 1 => {
                let half = batch.split_off(batch.len() / 2);
                batches.extend([half, batch]);
            }
            Ok(Err(error)) if is_too_long(&error) => refused += 1,
            Ok(Err(error)) => return Err(io::Error::other(error)),
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
    Ok(refused)
}

fn is(error: &Error, expected: ProtocolError) -> bool {
    matches!(error, Error::ServerError { protocol_error, .. } if *protocol_error == expected)
}

fn is_too_long(error: &Error) -> bool {
    is(error, ProtocolError::MessageTooLarge) || is(error, ProtocolError::RecordListTooLarge)
}

async fn within<T, E>(time: Duration, work: impl Future<Output = Result<T, E>>) -> io::Result<T>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match tokio::time::timeout(time, work).await {
        Ok(done) => done.map_err(|error| io::Error::other(plain(&error.into().to_string()))),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// The words of the client's errors without those of its retries.
fn plain(words: &str) -> String {
    const INNER: [&str; 4] = [
        "Connection error: ",
        "all retries failed: ",
        "Retry exceeded deadline. Source: ",
        "IO Error: ",
    ];
    INNER.iter().fold(words.to_owned(), |words, inner| words.replace(inner, ""))
}

fn record(row: &Row) -> Record {
    let line = row.line.strip_suffix(b"\n").unwrap_or(&row.line);
    Record {
        key: row.key.as_deref().map(<[u8]>::to_vec),
        value: Some(line.to_vec()),
        headers: BTreeMap::from([("log".to_owned(), row.log.as_bytes().to_vec())]),
        timestamp: Utc::now(),
    }
}

/// TLS with the roots that the system trusts.
fn tls() -> io::Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(io::Error::other("the system has no trusted certificates"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// MurmurHash2 with the seed of Kafka's clients, which choose a key's partition by it.
fn murmur2(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ key.len() as u32;
    let (words, rest) = key.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail, byte| tail << 8 | u32::from(*byte));
        hash = (hash ^ tail).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::process::Child;
    use std::process::Command;
    use std::process::Stdio;
    use std::thread;
    use std::time::Instant;

    use rskafka::client::partition::OffsetAt;

    use super::super::Sink;
    use super::super::SpoolOptions;
    use super::super::Target;
    use super::*;

    #[test]
    fn a_broker_that_refuses_is_named_in_plain_words() {
        let words = plain(
            "Connection error: all retries failed: Retry exceeded deadline. Source: error connecting to broker \
             \"127.0.0.1:9092\": IO Error: Connection refused (os error 111)",
        );
        let expected =
            "error connecting to broker \"127.0.0.1:9092\": Connection refused (os error 111)";
        assert_eq!(words, expected);
    }

    #[test]
    fn keys_have_the_hash_of_kafkas_clients() {
        // From the tests of Kafka's clients.
        let known: [(&[u8], i32); 6] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
        ];
        for (key, hash) in known {
            assert_eq!(murmur2(key) as i32, hash, "{}", String::from_utf8_lossy(key));
        }
    }

    /// A broker in a process of its own.
    struct Broker {
        folder: PathBuf,
        libraries: String,
        port: u16,
        process: Option<Child>,
    }

    impl Broker {
        /// Prepares one, with the jars of `$GANNET_KAFKA`, a folder; `None` without them or without Java.
        fn prepare() -> Option<Self> {
            let libraries = std::env::var("GANNET_KAFKA").ok()?;
            let folder = std::env::temp_dir().join(format!("gannet-kafka-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).ok()?;
            let free = || Some(TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port());
            let (port, control) = (free()?, free()?);
            let logs = folder.join("data");
            let text = format!(
                "process.roles=broker,controller\nnode.id=1\nnum.partitions=3\n\
                 controller.quorum.voters=1@127.0.0.1:{control}\ncontroller.listener.names=CONTROLLER\n\
                 listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}\n\
                 log.dirs={}\n",
                logs.display()
            );
            fs::write(folder.join("server.properties"), text).ok()?;
            let mut broker = Self { folder, libraries, port, process: None };
            let id = "AAAAAAAAAAAAAAAAAAAAAA";
            let format = ["kafka.tools.StorageTool", "format", "-t", id, "-c", "server.properties"];
            let status = broker.java(&format).ok()?.wait().ok()?;
            assert!(status.success(), "{status}");
            broker.start();
            Some(broker)
        }

        fn java(&self, args: &[&str]) -> io::Result<Child> {
            Command::new("java")
                .args(["-Xmx256m", "-XX:+UseSerialGC", "-cp", &format!("{}/*", self.libraries)])
                .args(args)
                .current_dir(&self.folder)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
        }

        fn start(&mut self) {
            self.process = Some(self.java(&["kafka.Kafka", "server.properties"]).unwrap());
        }

        fn kill(&mut self) {
            if let Some(mut process) = self.process.take() {
                process.kill().unwrap();
                process.wait().unwrap();
            }
        }
    }

    impl Drop for Broker {
        fn drop(&mut self) {
            self.kill();
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    /// All records of a topic, by partition.
    fn records(kafka: &mut Kafka, log: &str) -> Vec<Vec<Record>> {
        let partitions = kafka.partitions(log).unwrap().to_vec();
        let read = async |partition: &PartitionClient| {
            let end = partition.get_offset(OffsetAt::Latest).await.unwrap();
            let mut all = Vec::new();
            let mut at = 0;
            while at < end {
                let (records, _) = partition.fetch_records(at, 1..16 << 20, 1_000).await.unwrap();
                at = records.last().map_or(end, |last| last.offset + 1);
                all.extend(records.into_iter().map(|record| record.record));
            }
            all
        };
        partitions.iter().map(|partition| kafka.runtime.block_on(read(partition))).collect()
    }

    /// Sends rows while the broker is killed and started again, twice. `GANNET_KAFKA_ROWS` sets the number of rows,
    /// `GANNET_KAFKA_AWAY` the seconds until the broker starts again.
    #[test]
    fn no_row_is_missing_when_the_broker_starts_again() {
        let Some(mut broker) = Broker::prepare() else {
            eprintln!("skipped: $GANNET_KAFKA names no folder with the jars of Kafka");
            return;
        };
        let number_of = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
        let count = number_of("GANNET_KAFKA_ROWS").unwrap_or(100_000_usize);
        let away = Duration::from_secs(number_of("GANNET_KAFKA_AWAY").unwrap_or(2) as u64);
        let options = KafkaOptions {
            brokers: format!("127.0.0.1:{}", broker.port),
            topic: "zeek.{log}".into(),
            tls: false,
        };
        let spool = SpoolOptions { folder: broker.folder.join("spool"), limit: 1 << 40 };
        let target = Target::Kafka(options.clone());
        let (sink, thread) = Sink::start(target, Some(&spool)).unwrap();
        let logs: [Arc<str>; 2] = ["conn".into(), "weird".into()];
        for n in 0..count {
            let (log, key) = match n % 4 {
                // Rows without a uid.
                0 => (&logs[1], None),
                _ => (&logs[0], Some(format!("C{}", n % 1_000).into_bytes().into())),
            };
            let line = format!("{{\"n\":{n},\"x\":\"{}\"}}\n", "x".repeat(300));
            while sink.queue.lock().bytes > 48 << 20 {
                thread::sleep(Duration::from_millis(1));
            }
            sink.queue.push(Row { log: log.clone(), key, line: line.into_bytes().into() });
            if n == count / 3 || n == count * 2 / 3 {
                broker.kill();
                thread::sleep(away);
                broker.start();
            }
        }
        // A row that exceeds the maximum length of the broker.
        let long = "x".repeat(2 << 20).into_bytes();
        let noise: Vec<u8> =
            long.iter().zip(0_u32..).map(|(_, n)| murmur2(&n.to_le_bytes()) as u8).collect();
        sink.queue.push(Row { log: logs[1].clone(), key: None, line: noise.into() });
        let begun = Instant::now();
        while sink.counts().sent + sink.counts().dropped <= count as u64 {
            assert!(begun.elapsed() < Duration::from_secs(240), "{:?}", sink.counts());
            thread::sleep(Duration::from_millis(100));
        }
        sink.end();
        thread.join().unwrap();
        assert_eq!((sink.counts().sent, sink.counts().dropped), (count as u64, 1));

        let mut kafka = Kafka::connect(&options).unwrap();
        let mut seen = vec![0_u32; count];
        let mut partitions_of_keys: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for log in &logs {
            for (partition, records) in records(&mut kafka, log).into_iter().enumerate() {
                for record in records {
                    let value = String::from_utf8(record.value.unwrap()).unwrap();
                    let n = value.strip_prefix("{\"n\":").unwrap().split_once(',').unwrap().0;
                    seen[n.parse::<usize>().unwrap()] += 1;
                    assert_eq!(record.headers["log"], log.as_bytes());
                    assert_eq!(record.key.is_none(), **log == *"weird");
                    if let Some(key) = record.key {
                        assert_eq!(*partitions_of_keys.entry(key).or_insert(partition), partition);
                    }
                }
            }
        }
        let missing = seen.iter().filter(|times| **times == 0).count();
        let twice = seen.iter().filter(|times| **times > 1).count();
        eprintln!("{count} rows sent in spite of two restarts, {missing} missing, {twice} twice");
        assert_eq!(missing, 0);
        assert!(partitions_of_keys.values().collect::<std::collections::BTreeSet<_>>().len() > 1);
    }
}
