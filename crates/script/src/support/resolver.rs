//! Host names and addresses from the system resolver, and TXT records from its servers.
//!
//! Lookups run on threads, because they may take seconds. Host names are resolved with `getaddrinfo(3)` and
//! `getnameinfo(3)`; TXT records (RFC 1035, section 3.3.14) are queried from the servers in `/etc/resolv.conf`.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of threads.
const MAX_THREADS: usize = 16;
/// Maximum number of queued questions: further ones fail immediately.
const MAX_QUEUED: usize = 10_000;
/// Timeout of a query for TXT records to one server.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

/// A lookup.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// The name of an address.
    Addr(IpAddr),
    /// The addresses of a name.
    Name(String),
    /// The first TXT record of a name.
    Text(String),
}

/// The result of a lookup.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Name(String),
    Addrs(Vec<IpAddr>),
    Text(Vec<u8>),
    /// No result, or no server responded.
    Nothing,
}

/// A pool of lookup threads.
#[derive(Default)]
pub(crate) struct Resolver {
    jobs: Arc<Jobs>,
    threads: usize,
}

#[derive(Default)]
struct Jobs {
    queue: Mutex<Queue>,
    added: Condvar,
    /// Number of answers that were sent and not yet received.
    undelivered: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Question, Sender<Answer>)>,
    idle: usize,
}

impl Jobs {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers questions in order. The threads end with the process.
    fn work(&self) {
        loop {
            let mut queue = self.queue();
            queue.idle += 1;
            let (question, to) = loop {
                if let Some(job) = queue.waiting.pop_front() {
                    break job;
                }
                queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
            };
            queue.idle -= 1;
            drop(queue);
            self.deliver(&to, answer(&question));
        }
    }

    fn deliver(&self, to: &Sender<Answer>, found: Answer) {
        // A receiver that timed out is closed.
        if to.send(found).is_ok() {
            self.undelivered.fetch_add(1, Ordering::Release);
        }
    }
}

impl Resolver {
    /// Queues a question. The answer is [`Answer::Nothing`] if no thread can be started or too many questions
    /// are queued.
    pub(crate) fn resolve(&mut self, question: Question) -> Receiver<Answer> {
        let (to, from) = channel();
        let mut queue = self.jobs.queue();
        if queue.waiting.len() >= MAX_QUEUED {
            self.jobs.deliver(&to, Answer::Nothing);
            return from;
        }
        queue.waiting.push_back((question, to));
        if queue.idle < queue.waiting.len() && self.threads < MAX_THREADS {
            let jobs = Arc::clone(&self.jobs);
            let thread = std::thread::Builder::new().name("resolver".to_owned());
            self.threads += usize::from(thread.spawn(move || jobs.work()).is_ok());
        }
        if self.threads == 0 {
            queue.waiting.drain(..).for_each(|(_, to)| self.jobs.deliver(&to, Answer::Nothing));
        }
        drop(queue);
        self.jobs.added.notify_one();
        from
    }

    /// Whether answers are ready.
    #[inline]
    pub(crate) fn has_answers(&self) -> bool {
        self.jobs.undelivered.load(Ordering::Acquire) > 0
    }

    /// Receives an answer, if it is ready.
    pub(crate) fn try_receive(&self, from: &Receiver<Answer>) -> Option<Answer> {
        let found = from.try_recv().ok()?;
        self.jobs.undelivered.fetch_sub(1, Ordering::Relaxed);
        Some(found)
    }
}

/// Answers a question synchronously.
pub(crate) fn answer(question: &Question) -> Answer {
    match question {
        Question::Addr(addr) => {
            let named = dns_lookup::getnameinfo(&SocketAddr::new(*addr, 0), NAME_REQUIRED);
            named.map_or(Answer::Nothing, |(name, _)| Answer::Name(name))
        }
        Question::Name(name) => match dns_lookup::lookup_host(name) {
            Ok(found) => {
                let mut addrs: Vec<IpAddr> = found.collect();
                addrs.sort_unstable();
                addrs.dedup();
                if addrs.is_empty() { Answer::Nothing } else { Answer::Addrs(addrs) }
            }
            Err(_) => Answer::Nothing,
        },
        Question::Text(name) => {
            let servers = servers(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
            let found = servers.iter().find_map(|server| query(*server, name));
            found.map_or(Answer::Nothing, Answer::Text)
        }
    }
}

/// `NI_NAMEREQD` of `getnameinfo(3)`: an error if the address has no name.
const NAME_REQUIRED: i32 = if cfg!(target_os = "macos") { 4 } else { 8 };

/// The name servers in resolv.conf(5).
fn servers(text: &str) -> Vec<SocketAddr> {
    let addr = |line: &str| line.trim().strip_prefix("nameserver")?.trim().parse::<IpAddr>().ok();
    text.lines().filter_map(addr).map(|addr| SocketAddr::new(addr, 53)).collect()
}

/// Queries a server for TXT records over UDP.
fn query(server: SocketAddr, name: &str) -> Option<Vec<u8>> {
    let local: SocketAddr = match server {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(local).ok()?;
    socket.set_read_timeout(Some(QUERY_TIMEOUT)).ok()?;
    // Receive only datagrams of this server.
    socket.connect(server).ok()?;
    let id = socket.local_addr().ok()?.port().rotate_left(7) ^ std::process::id() as u16;
    socket.send(&message(id, name)?).ok()?;
    let mut bytes = [0; 4096];
    let len = socket.recv(&mut bytes).ok()?;
    text(bytes.get(..len)?, id)
}

/// The type TXT and the class IN.
const TXT: u16 = 16;
const IN: u16 = 1;

/// A DNS query message (RFC 1035, section 4.1).
fn message(id: u16, name: &str) -> Option<Vec<u8>> {
    let mut bytes = id.to_be_bytes().to_vec();
    // Flags: recursion desired; one question.
    bytes.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.trim_end_matches('.').split('.') {
        let len = u8::try_from(label.len()).ok().filter(|len| (1..=63).contains(len))?;
        bytes.push(len);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes.extend([TXT, IN].map(u16::to_be_bytes).as_flattened());
    (bytes.len() <= 12 + 255 + 4).then_some(bytes)
}

/// The strings of the first TXT record of a response.
fn text(response: &[u8], id: u16) -> Option<Vec<u8>> {
    let half = |at: usize| Some(u16::from_be_bytes(*response.get(at..)?.first_chunk()?));
    let is_answer = half(0)? == id && half(2)? & 0x8000 != 0 && half(2)? & 0xf == 0;
    if !is_answer {
        return None;
    }
    let (questions, answers) = (half(4)?, half(6)?);
    let mut at = 12;
    for _ in 0..questions {
        at = skip_name(response, at)? + 4;
    }
    for _ in 0..answers {
        at = skip_name(response, at)?;
        let (kind, class, len) = (half(at)?, half(at + 2)?, usize::from(half(at + 8)?));
        let data = response.get(at + 10..at + 10 + len)?;
        if (kind, class) == (TXT, IN) {
            let (mut text, mut rest) = (Vec::new(), data);
            while let [len, tail @ ..] = rest {
                let (part, tail) = tail.split_at_checked(usize::from(*len))?;
                text.extend_from_slice(part);
                rest = tail;
            }
            return Some(text);
        }
        at += 10 + len;
    }
    None
}

/// The offset after a name, which may end with a pointer (RFC 1035, section 4.1.4).
fn skip_name(response: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *response.get(at)? {
            0 => return Some(at + 1),
            len @ 1..=63 => at += 1 + usize::from(len),
            0xc0.. => return Some(at + 2),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_those_of_the_file() {
        let text = "# nameserver 1.1.1.1\nsearch a.b\nnameserver 127.0.0.53\n nameserver ::1\nnameserver x\n";
        let expected: [SocketAddr; 2] =
            [([127, 0, 0, 53], 53).into(), ([0, 0, 0, 0, 0, 0, 0, 1_u16], 53).into()];
        assert_eq!(servers(text), expected);
    }

    #[test]
    fn text_records_of_a_response() {
        let query = message(7, "a.test").unwrap();
        assert_eq!(query, b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x01a\x04test\0\0\x10\0\x01");
        assert_eq!(message(7, "a..b"), None);
        assert_eq!(message(7, &"a.".repeat(128)), None);
        let mut response = query;
        response[2] = 0x81;
        response[7] = 2;
        // A CNAME record, then strings.
        response.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\0\0\x02\xc0\x0c");
        response.extend(b"\xc0\x0c\0\x10\0\x01\0\0\0\0\0\x06\x02hi\x02 t");
        let all = response.clone();
        assert_eq!(text(&all, 7), Some(b"hi t".to_vec()));
        assert_eq!(text(&all, 8), None, "another query");
        for len in 0..all.len() {
            assert_eq!(text(&all[..len], 7), None, "{len}");
        }
        response[3] = 3;
        assert_eq!(text(&response, 7), None, "there is no such name");
    }

    #[test]
    fn a_server_is_queried() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = server.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 512];
            let (len, from) = server.recv_from(&mut bytes).unwrap();
            let mut response = bytes[..len].to_vec();
            response[2] = 0x81;
            response[7] = 1;
            response.extend(b"\xc0\x0c\0\x10\0\x01\0\0\0\0\0\x03\x02hi");
            server.send_to(&response, from).unwrap();
        });
        assert_eq!(query(at, "a.test"), Some(b"hi".to_vec()));
        thread.join().unwrap();
    }

    #[test]
    fn addresses_in_words_need_no_server() {
        let mut resolver = Resolver::default();
        for n in [10, 1_000] {
            let receivers: Vec<_> = (0..n)
                .map(|i| resolver.resolve(Question::Name(format!("127.0.{}.{}", i / 250, i % 250))))
                .collect();
            for (i, from) in receivers.iter().enumerate() {
                let addr: IpAddr = format!("127.0.{}.{}", i / 250, i % 250).parse().unwrap();
                assert_eq!(from.recv(), Ok(Answer::Addrs(vec![addr])));
            }
            assert!(resolver.threads <= MAX_THREADS);
        }
    }
}
