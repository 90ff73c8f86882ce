//! Files mapped into memory, and what the processor is told about them: the one place of this
//! crate that needs `unsafe`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::Read;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use gannet_base::prefetch;
use memmap2::Advice;
use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;

use crate::Bytes;

/// A whole file, mapped for reading from front to back.
#[derive(Debug)]
pub(crate) struct Map {
    pages: Pages,
    /// Where a thread of their own sees to the pages.
    ahead: Option<Ahead>,
    /// Where whoever has time does.
    tended: Option<Arc<Tended>>,
}

/// Which pages of a map are there.
#[derive(Clone, Debug)]
struct Pages {
    bytes: Bytes,
    /// Up to here pages were asked for in advance.
    wanted: usize,
    /// Up to here pages were given back.
    released: usize,
    /// Who holds the bytes without reading them.
    holders: usize,
}

/// How far ahead of the reader pages are mapped at a time, instead of one fault for every 64 KiB.
const AHEAD: usize = 1 << 20;

/// How much lies behind the reader before its pages are given back.
const BEHIND: usize = 1 << 20;

/// The same where others read what was handed out, and may be some batches late, a megabyte each: pages
/// that are given back before all have read them come back, one by one, and stay.
const BEHIND_OTHERS: usize = 12 << 20;

/// The same, of how much is given back at once: every processor that has one of the threads must be
/// told, and waits.
const RELEASED_OTHERS: usize = 2 << 20;

/// Advice starts at page borders: a multiple of every page size in use, and what the kernel maps around
/// a page that was asked for.
const PAGE: usize = 64 << 10;

impl Map {
    /// Maps `file` as long as it is now; what is appended later is not seen.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the mapping is shared and read-only, and nothing here writes to the file.
        // Another process may: bytes that change under the reader give wrong packets but no
        // undefined lengths, because every length is read once and checked against the map
        // before it is used. If another process cuts the file below what is mapped, touching the
        // lost pages ends this process with SIGBUS, as with every program that maps its input;
        // reading such files through standard input avoids it.
        let map = unsafe { Mmap::map(file) }?;
        // Advice only: a kernel that knows it not loses speed, nothing else.
        let _ = map.advise(Advice::Sequential);
        let pages = Pages { bytes: map.into(), wanted: 0, released: 0, holders: 1 };
        Ok(Self { pages, ahead: None, tended: None })
    }

    /// All its bytes.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.pages.bytes
    }

    /// All its bytes from front to back, for what unpacks them.
    pub(crate) fn into_reader(self) -> MapReader {
        MapReader { map: self, at: 0 }
    }

    /// From now on a thread sees to the pages, if there are enough of them for that to pay.
    pub(crate) fn read_ahead(&mut self) {
        if self.ahead.is_none() && self.pages.bytes.len() >= LONG {
            // Without another thread the reader does it, as it did so far.
            self.ahead = Ahead::start(self.pages.clone()).ok();
        }
    }

    /// From now on others see to the pages, by what this gives, if no thread of their own does.
    pub(crate) fn tend(&mut self) -> Option<Weak<Tended>> {
        if self.ahead.is_some() {
            return None;
        }
        let mut pages = self.pages.clone();
        pages.holders += 1;
        let tended = Arc::new(Tended { at: AtomicUsize::new(0), pages: Mutex::new(pages) });
        Some(Arc::downgrade(self.tended.insert(tended)))
    }

    /// Tells that everything before `at` has been read and that what follows is next.
    pub(crate) fn reading_at(&mut self, at: usize) {
        match (&self.ahead, &self.tended) {
            (Some(ahead), _) => ahead.reading_at(at),
            (None, Some(tended)) => tended.at.store(at, Ordering::Release),
            (None, None) => {
                self.pages.want(at, AHEAD / 2);
                self.pages.release(at);
            }
        }
    }
}

impl Pages {
    /// Asks for more pages if those asked for end less than `near` behind `at`; whether it did.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(clippy::unused_self, clippy::needless_pass_by_ref_mut)
    )]
    fn want(&mut self, at: usize, near: usize) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(map) = self.bytes.map()
            && at + near > self.wanted
            && self.wanted < map.len()
        {
            let from = self.wanted.max(at) & !(PAGE - 1);
            let to = (from + AHEAD).min(map.len());
            // Asking for one page brings those around it that are in memory (the kernel's
            // fault-around, 64 KiB if nobody set it otherwise), without the fault. Asking for all
            // of them in one call has the kernel walk over each of them once more, which takes a
            // quarter of the time that reading small packets does.
            for page in (from..to).step_by(PAGE) {
                let _ = map.advise_range(Advice::PopulateRead, page, 1);
            }
            self.wanted = to;
            return true;
        }
        let _ = (at, near);
        false
    }

    /// Gives back what lies far enough behind `at`.
    fn release(&mut self, at: usize) {
        #[cfg(unix)]
        if let Some(map) = self.bytes.map() {
            let (behind, at_once) = match self.bytes.is_shared_beyond(self.holders) {
                true => (BEHIND_OTHERS, RELEASED_OTHERS),
                false => (BEHIND, BEHIND),
            };
            if at.saturating_sub(self.released) < behind + at_once {
                return;
            }
            let to = at.saturating_sub(behind) & !(PAGE - 1);
            // SAFETY: in a shared mapping of a file, dropped pages come back from the file with
            // the same bytes when they are touched again, so even a view that outlived its use
            // would stay valid. It keeps the resident size small on captures of many gigabytes.
            let _ = unsafe {
                map.unchecked_advise_range(
                    UncheckedAdvice::DontNeed,
                    self.released,
                    to - self.released,
                )
            };
            self.released = to;
        }
        #[cfg(not(unix))]
        let _ = at;
    }
}

/// How far ahead of the reader pages are made ready by those who take batches from it: some batches for
/// each of a few of them, a megabyte each.
const AHEAD_OTHERS: usize = 4 << 20;

/// The pages of a map, for others than its reader.
#[derive(Debug)]
pub(crate) struct Tended {
    /// Where the reader is.
    at: AtomicUsize,
    pages: Mutex<Pages>,
}

impl Tended {
    fn see_to(&self) {
        // Whoever does it is not waited for.
        let Ok(mut pages) = self.pages.try_lock() else { return };
        pages.release(self.at.load(Ordering::Acquire));
        while pages.want(self.at.load(Ordering::Acquire), AHEAD_OTHERS) {}
    }
}

/// The pages of mapped files that a stream reads from, for those who take its batches to see to: so that a
/// reader of whom many wait does nothing but read.
#[derive(Clone, Debug, Default)]
pub struct Tending(Arc<Mutex<Vec<Weak<Tended>>>>);

impl Tending {
    /// Adds those of one more file.
    pub(crate) fn add(&self, tended: Weak<Tended>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(tended);
    }

    /// Makes pages ready that come next, and gives back those that lie behind, unless somebody else is at
    /// it. Where nobody does that for some time, pages come one by one as they are read, and stay.
    pub fn see_to(&self) {
        let Ok(mut all) = self.0.try_lock() else { return };
        all.retain(|tended| {
            tended.upgrade().is_some_and(|tended| {
                tended.see_to();
                true
            })
        });
    }
}

/// A thread that sees to the pages of a map: a third of the time that reading takes without one.
#[derive(Debug)]
struct Ahead {
    place: Arc<Place>,
    thread: Option<JoinHandle<()>>,
}

/// Where the reader is.
#[derive(Debug, Default)]
struct Place {
    at: AtomicUsize,
    ended: AtomicBool,
}

/// Shorter files are read before a thread has begun.
const LONG: usize = 16 << 20;

/// How far the thread may be ahead of the reader.
const FAR: usize = 8 << 20;

impl Ahead {
    fn start(mut pages: Pages) -> io::Result<Self> {
        pages.holders += 1;
        let place = Arc::new(Place::default());
        let seen = Arc::clone(&place);
        let work = move || {
            while !seen.ended.load(Ordering::Acquire) {
                let at = seen.at.load(Ordering::Acquire);
                pages.release(at);
                if !pages.want(at, FAR) {
                    // A reader that went on meanwhile has left a token: this returns at once.
                    std::thread::park();
                }
            }
        };
        let thread = std::thread::Builder::new().name("pages".into()).spawn(work)?;
        Ok(Self { place, thread: Some(thread) })
    }

    fn reading_at(&self, at: usize) {
        self.place.at.store(at, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.place.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It only ends: what it held goes with it.
            let _ = thread.join();
        }
    }
}

/// A mapped file that is read: nothing is copied.
#[derive(Debug)]
pub(crate) struct MapReader {
    map: Map,
    at: usize,
}

/// Bytes that a [`MapReader`] shows at a time, so that pages come and go as they are read.
const SHOWN: usize = AHEAD / 2;

impl BufRead for MapReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.map.reading_at(self.at);
        let rest = self.map.bytes().get(self.at..).unwrap_or_default();
        Ok(&rest[..rest.len().min(SHOWN)])
    }

    fn consume(&mut self, n: usize) {
        self.at += n;
    }
}

impl Read for MapReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let shown = self.fill_buf()?;
        let n = shown.len().min(buf.len());
        buf[..n].copy_from_slice(&shown[..n]);
        self.consume(n);
        Ok(n)
    }
}

/// How far ahead of a record reader lines are fetched: a few dozen small packets.
const FETCH_AHEAD: usize = 4096;

/// The bytes of a record that are worth fetching for: its headers, and those of small packets
/// behind it.
const FETCH_RECORD: usize = 512;

/// Bytes that are fetched at a time: about what a small record takes.
const FETCH_SMALL: usize = 128;

/// Starts loading what lies a little beyond the record `data[from..to]`.
///
/// Where a record begins is known only once the one before it has come from memory, so the
/// processor cannot look ahead by itself; small packets are walked twice as fast for this.
#[inline(always)]
pub(crate) fn fetch_beyond(data: &[u8], from: usize, to: usize) {
    // Both lines in any case: how many a small record takes is not to be guessed.
    let ahead = data.as_ptr().wrapping_add(from + FETCH_AHEAD);
    prefetch(ahead.cast::<[u8; FETCH_SMALL]>());
    if to - from > FETCH_SMALL {
        fetch_beyond_long(data, from, to);
    }
}

/// Large records come in rows of one length: where the next but one and its third neighbour would begin
/// then is fetched as well.
#[inline(never)]
fn fetch_beyond_long(data: &[u8], from: usize, to: usize) {
    let fetch = |at: usize| prefetch(data.as_ptr().wrapping_add(at).cast::<[u8; FETCH_SMALL]>());
    let len = to - from;
    if len > FETCH_RECORD {
        fetch(to + len);
        fetch(to + 3 * len);
    }
    let first = (from + FETCH_SMALL).max(to.saturating_sub(FETCH_RECORD));
    (first..to).step_by(FETCH_SMALL).for_each(|at| fetch(at + FETCH_AHEAD));
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::test::Dir;

    #[test]
    fn bytes_are_the_same_with_a_thread_for_the_pages() {
        let dir = Dir::new("pages");
        let path = dir.0.join("long");
        let long: Vec<u8> = (0..LONG + 3 * PAGE + 5).map(|i| (i % 251) as u8).collect();
        for (bytes, threads) in [(&long[..], true), (&long[..LONG - 1], false)] {
            fs::write(&path, bytes).unwrap();
            let mut map = Map::new(&File::open(&path).unwrap()).unwrap();
            map.reading_at(0);
            map.read_ahead();
            assert_eq!(map.ahead.is_some(), threads);
            // Others still read what lies behind.
            let kept = map.bytes().clone();
            for at in (0..bytes.len()).step_by(300_001) {
                map.reading_at(at);
                assert_eq!(map.bytes()[at], bytes[at]);
            }
            map.reading_at(bytes.len());
            drop(map);
            assert!(*kept == *bytes);
        }
    }

    #[test]
    fn bytes_are_the_same_where_others_see_to_the_pages() {
        let dir = Dir::new("pages-tended");
        let path = dir.0.join("long");
        let long: Vec<u8> = (0..LONG + 3 * PAGE + 5).map(|i| (i % 251) as u8).collect();
        fs::write(&path, &long).unwrap();
        let mut map = Map::new(&File::open(&path).unwrap()).unwrap();
        map.reading_at(0);
        let (tending, tended) = (Tending::default(), map.tend().unwrap());
        tending.add(tended.clone());
        let asked = || tended.upgrade().map(|t| t.pages.lock().unwrap().wanted);
        let kept = map.bytes().clone();
        for at in (0..long.len()).step_by(300_001) {
            map.reading_at(at);
            tending.see_to();
            if cfg!(target_os = "linux") {
                assert!(asked() >= Some((at + AHEAD_OTHERS).min(long.len())));
            }
            assert_eq!(map.bytes()[at], long[at]);
        }
        drop(map);
        tending.see_to();
        assert!(tending.0.lock().unwrap().is_empty());
        assert!(*kept == *long);
    }

    #[test]
    fn a_reader_that_stops_early_waits_for_nobody() {
        let dir = Dir::new("pages-early");
        let path = dir.0.join("long");
        fs::write(&path, vec![1; LONG]).unwrap();
        for read in [0, 1, FAR, LONG] {
            let mut map = Map::new(&File::open(&path).unwrap()).unwrap();
            map.read_ahead();
            map.reading_at(read);
            drop(map);
        }
    }
}
