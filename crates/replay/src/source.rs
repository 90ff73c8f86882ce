//! Where queries come from: captures, or a list.

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

/// Lines of a list that are read at once.
const LINES: usize = 1024;
/// A line that is longer is no query.
const MAX_LINE: u64 = 4096;

/// Where queries are to come from.
#[derive(Clone, Debug)]
pub enum Input {
    /// Captures and folders of captures, as one.
    Captures {
        /// Their paths.
        paths: Vec<PathBuf>,
        /// Ports of servers; queries are messages to them.
        ports: Vec<u16>,
        /// Packets that count; all, if none.
        filter: Option<Filter>,
    },
    /// A list of names and types, see [`text`].
    List(PathBuf),
}

impl Input {
    /// Whether queries come with times and sources.
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

    /// How to call it.
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
        /// Whose.
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
    /// Number of the packet that completed it, over all captures, or of its line; from 1.
    pub packet: u64,
    /// Endpoints; `None` for a list.
    pub exchange: Option<Exchange>,
    /// The message.
    pub bytes: &'a [u8],
}

/// Counts of a source so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Packets, or lines of a list.
    pub packets: u64,
    /// Number of queries returned.
    pub queries: u64,
    /// Responses, which are not sent.
    pub responses: u64,
    /// What could not be used.
    pub skipped: Skipped,
    /// Lines that are no query.
    pub bad_lines: u64,
    /// The first of them, and damage of captures: words for people.
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
    /// Where it cannot be opened or is no capture.
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

    /// Reads a batch of packets or lines, passes on its queries, and returns whether there may be
    /// more. A damaged capture ends at the damage, with a warning.
    ///
    /// # Errors
    /// Where a list cannot be read.
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
    fn a_list_gives_its_queries_and_tells_of_bad_lines() {
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
        assert!(
            seen.remarks[0]
                .ends_with(":3: 'FOO' is no record type; TYPE65 names one by its number")
        );
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = Source::open(&Input::List("/nonexistent/q".into())).err().unwrap();
        assert!(error.to_string().starts_with("/nonexistent/q: "));
    }
}
