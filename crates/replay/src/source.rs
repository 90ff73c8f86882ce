//! The input of a run: captures, or a list of queries.

use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::ErrorKind;
use std::io::Read;
use std::path::PathBuf;

use gannet_base::Addr;
use gannet_capture::Options;
use gannet_capture::Stream;
use gannet_filter::Filter;
use gannet_pipeline::extract::Extractor;
use gannet_pipeline::extract::Skipped;

use crate::Error;
use crate::text;

/// Number of lines of a list that are read in one batch.
const LINES: usize = 1024;
/// Maximum length of a line in bytes.
const MAX_LINE: u64 = 4096;

/// The input of a run.
#[derive(Clone, Debug)]
pub enum Input {
    /// Captures and folders of captures, as one.
    Captures {
        /// Their paths.
        paths: Vec<PathBuf>,
        /// Ports of servers; queries are messages to them.
        ports: Vec<u16>,
        /// Filter of packets; `None` accepts all.
        filter: Option<Filter>,
    },
    /// A list of names and types, see [`text`].
    List(PathBuf),
}

impl Input {
    /// Whether the input has times and source addresses.
    pub fn is_capture(&self) -> bool {
        matches!(self, Self::Captures { .. })
    }

    /// Whether it includes standard input, which is read once.
    pub fn is_stdin(&self) -> bool {
        let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
        match self {
            Self::Captures { paths, .. } => paths.iter().any(is_stdin),
            Self::List(path) => is_stdin(path),
        }
    }

    /// The name for reports.
    pub fn name(&self) -> String {
        match self {
            Self::Captures { paths, .. } => match paths.as_slice() {
                [one] => one.display().to_string(),
                many => format!("{} captures", many.len()),
            },
            Self::List(path) => path.display().to_string(),
        }
    }
}

/// Endpoints of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exchange {
    /// The client.
    pub client: (Addr, u16),
    /// The server.
    pub server: (Addr, u16),
}

/// An item found in an input.
#[derive(Clone, Copy, Debug)]
pub enum InputItem<'a> {
    /// A query.
    Query(Query<'a>),
    /// A response, which is not sent.
    Response {
        /// Its endpoints.
        exchange: Exchange,
        /// The message.
        bytes: &'a [u8],
    },
}

/// A query for the feed.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Nanoseconds since the epoch; 0 from a list.
    pub time: i64,
    /// Number of the packet that completed it, over all captures, or of its line in the list; from
    /// 1.
    pub packet: u64,
    /// Endpoints; `None` for a list.
    pub exchange: Option<Exchange>,
    /// The message.
    pub bytes: &'a [u8],
}

/// Counts of a source so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Number of packets, or of lines of a list.
    pub packets: u64,
    /// Number of queries returned.
    pub queries: u64,
    /// Number of responses, which are not sent.
    pub responses: u64,
    /// Counts of packets and streams that could not be used.
    pub skipped: Skipped,
    /// Number of lines that are not queries.
    pub bad_lines: u64,
    /// Messages about the first bad lines and about damaged captures.
    pub remarks: Vec<String>,
}

/// An open input.
pub struct Source {
    kind: Kind,
    seen: Seen,
}

enum Kind {
    Capture {
        stream: Box<Stream>,
        filter: Option<Filter>,
        extractor: Box<Extractor>,
    },
    List {
        path: PathBuf,
        lines: Box<dyn BufRead + Send>,
        line: String,
        number: u64,
        message: Vec<u8>,
    },
}

impl Source {
    /// Opens an input at its beginning.
    ///
    /// # Errors
    /// If it cannot be opened or is not a capture.
    pub fn open(input: &Input) -> Result<Self, Error> {
        let kind = match input {
            Input::Captures { paths, ports, filter } => Kind::Capture {
                stream: Box::new(Stream::open(paths, Options::default())?),
                filter: filter.clone(),
                extractor: Box::new(Extractor::new(ports)),
            },
            Input::List(path) => {
                let lines: Box<dyn BufRead + Send> = if path.as_os_str() == "-" {
                    Box::new(BufReader::new(std::io::stdin()))
                } else {
                    let file = File::open(path)
                        .map_err(|error| Error::List { path: path.clone(), error })?;
                    Box::new(BufReader::new(file))
                };
                Kind::List {
                    path: path.clone(),
                    lines,
                    line: String::new(),
                    number: 0,
                    message: Vec::new(),
                }
            }
        };
        Ok(Self { kind, seen: Seen::default() })
    }

    /// Counts so far.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Reads a batch of packets or lines, passes its items to `out`, and returns whether more may
    /// follow. A damaged capture ends at the damage, with a warning.
    ///
    /// # Errors
    /// If a list cannot be read.
    pub fn read(&mut self, out: &mut impl FnMut(&InputItem<'_>)) -> Result<bool, Error> {
        let seen = &mut self.seen;
        match &mut self.kind {
            Kind::Capture { stream, filter, extractor } => {
                let batch = match stream.next_batch() {
                    Ok(Some(batch)) => batch,
                    Ok(None) => return Ok(false),
                    Err(error) => {
                        seen.remarks.push(error.to_string());
                        // Other captures of the stream may continue.
                        return Ok(true);
                    }
                };
                for packet in batch {
                    seen.packets += 1;
                    let wants =
                        |f: &Filter| f.matches(packet.link_type.0, packet.data, packet.wire_len);
                    if !filter.as_ref().is_none_or(wants) {
                        continue;
                    }
                    extractor.packet(&packet, &mut |m| {
                        if m.is_query() {
                            seen.queries += 1;
                            let time = m.time.as_nanos();
                            let exchange = Exchange { client: m.source, server: m.destination };
                            let exchange = Some(exchange);
                            let (packet, bytes) = (packet.number, m.bytes);
                            out(&InputItem::Query(Query { time, packet, exchange, bytes }));
                        } else {
                            seen.responses += 1;
                            let exchange = Exchange { client: m.destination, server: m.source };
                            out(&InputItem::Response { exchange, bytes: m.bytes });
                        }
                    });
                }
                seen.skipped = extractor.skipped();
                Ok(true)
            }
            Kind::List { path, lines, line, number, message } => {
                for _ in 0..LINES {
                    line.clear();
                    let read = lines.as_mut().take(MAX_LINE).read_line(line);
                    let query = match read {
                        Ok(0) => return Ok(false),
                        Ok(_) => text::query(line, message).map_err(|e| e.to_string()),
                        Err(e) if e.kind() == ErrorKind::InvalidData => Err("no UTF-8".to_owned()),
                        Err(error) => return Err(Error::List { path: path.clone(), error }),
                    };
                    *number += 1;
                    seen.packets += 1;
                    match query {
                        Ok(true) => {
                            seen.queries += 1;
                            let (packet, bytes) = (*number, &message[..]);
                            out(&InputItem::Query(Query {
                                time: 0,
                                packet,
                                exchange: None,
                                bytes,
                            }));
                        }
                        Ok(false) => {}
                        Err(error) => {
                            seen.bad_lines += 1;
                            if seen.bad_lines == 1 {
                                let path = path.display();
                                seen.remarks.push(format!("{path}:{number}: {error}"));
                            }
                        }
                    }
                }
                Ok(true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_returns_its_queries_and_reports_bad_lines() {
        let path = std::env::temp_dir().join(format!("gannet-list-{}.txt", std::process::id()));
        std::fs::write(&path, b"a.test A\n# no\nb.test FOO\n\xff\xff A\nc.test").unwrap();
        let mut source = Source::open(&Input::List(path.clone())).unwrap();
        let mut lens = Vec::new();
        let mut take = |found: &InputItem<'_>| {
            if let InputItem::Query(query) = found {
                lens.push(query.bytes.len());
            }
        };
        while source.read(&mut take).unwrap() {}
        assert_eq!(lens, [24, 24]);
        let seen = source.seen();
        assert_eq!((seen.queries, seen.bad_lines), (2, 2));
        assert!(seen.remarks[0].ends_with(
            ":3: 'FOO' is not a record type; TYPE65, for example, is a type by its number"
        ));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn missing_files_are_named() {
        let error = Source::open(&Input::List("/nonexistent/q".into())).err().unwrap();
        assert!(error.to_string().starts_with("/nonexistent/q: "));
    }
}
