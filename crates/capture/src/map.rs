//! Memory-mapped files, and advice to the kernel about their pages. One of the modules of this
//! crate with `unsafe`.
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

use gannet_base::prefetch;
use gannet_workers::Workers;
use memmap2::Advice;
use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;

use crate::Bytes;

/// A whole file, mapped for sequential reading.
#[derive(Debug)]
pub(crate) struct Map {
    pages: Pages,
    /// The thread that prepares the pages, if it was started.
    ahead: Option<PagePreparer>,
    /// The pages that receivers of batches prepare, if they do.
    shared_pages: Option<Arc<SharedPages>>,
}

/// The state of the mapped pages.
#[derive(Clone, Debug)]
struct Pages {
    bytes: Bytes,
    /// The offset up to which pages were mapped.
    mapped_to: usize,
    /// The offset up to which pages were released.
    released_to: usize,
    /// Number of owners of the bytes that do not read them.
    holders: usize,
}

/// Distance from the reader up to which pages are mapped in advance, instead of a page fault for
/// every 64 KiB.
const AHEAD: usize = 1 << 20;

/// Number of bytes before the reader that stay mapped.
const BEHIND: usize = 1 << 20;

/// Like [`BEHIND`], if other threads read the batches and may be some batches (a megabyte each)
/// behind: a page released before all have read it is mapped again and stays mapped.
const BEHIND_SHARED: usize = 12 << 20;

/// Number of bytes released at a time in that case: each release interrupts all processors that run
/// one of the threads.
const RELEASE_SHARED: usize = 2 << 20;

/// Alignment of advice: a multiple of every page size in use, and the kernel's fault-around size.
const PAGE: usize = 64 << 10;

impl Map {
    /// Maps `file` with its current length; bytes appended later are not included.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the mapping is shared and read-only, and this process does not write to the file.
        // Another process may: bytes that change while they are read give wrong packets but no
        // invalid lengths, because every length is read once and checked against the map before
        // use. If another process truncates the file, accessing the lost pages ends this process
        // with SIGBUS, as in every program that maps its input; reading such files through standard
        // input avoids it.
        let map = unsafe { Mmap::map(file) }?;
        // Only speed depends on this advice.
        let _ = map.advise(Advice::Sequential);
        let pages = Pages { bytes: map.into(), mapped_to: 0, released_to: 0, holders: 1 };
        Ok(Self { pages, ahead: None, shared_pages: None })
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.pages.bytes
    }

    /// A sequential reader of all bytes, for decompression.
    pub(crate) fn into_reader(self) -> MapReader {
        MapReader { map: self, at: 0 }
    }

    /// Starts a thread that prepares the pages, if the file is long enough to benefit.
    pub(crate) fn read_ahead(&mut self) {
        if self.ahead.is_none() && self.pages.bytes.len() >= MIN_FILE_LEN {
            // Without a thread the reader prepares the pages.
            self.ahead = PagePreparer::start(self.pages.clone()).ok();
        }
    }

    /// Lets other threads prepare the pages through the returned handle, unless a dedicated thread
    /// does so.
    pub(crate) fn share_pages(&mut self) -> Option<Weak<SharedPages>> {
        if self.ahead.is_some() {
            return None;
        }
        let mut pages = self.pages.clone();
        pages.holders += 1;
        let shared_pages =
            Arc::new(SharedPages { at: AtomicUsize::new(0), pages: Mutex::new(pages) });
        Some(Arc::downgrade(self.shared_pages.insert(shared_pages)))
    }

    /// Records that everything before `at` was read and what follows is read next.
    pub(crate) fn reading_at(&mut self, at: usize) {
        match (&self.ahead, &self.shared_pages) {
            (Some(ahead), _) => ahead.reading_at(at),
            (None, Some(shared_pages)) => shared_pages.at.store(at, Ordering::Release),
            (None, None) => {
                self.pages.map_ahead(at, AHEAD / 2);
                self.pages.release(at);
            }
        }
    }
}

impl Pages {
    /// Maps more pages if the mapped ones end less than `near` bytes after `at`; returns whether it
    /// did.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(clippy::unused_self, clippy::needless_pass_by_ref_mut)
    )]
    fn map_ahead(&mut self, at: usize, near: usize) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(map) = self.bytes.map()
            && at + near > self.mapped_to
            && self.mapped_to < map.len()
        {
            let from = self.mapped_to.max(at) & !(PAGE - 1);
            let to = (from + AHEAD).min(map.len());
            // Touching one page maps the cached pages around it (the kernel's fault-around, 64 KiB
            // by default) without further faults. A single call for the whole range makes the
            // kernel visit each page once more, which takes a quarter of the time of reading small
            // packets.
            for page in (from..to).step_by(PAGE) {
                let _ = map.advise_range(Advice::PopulateRead, page, 1);
            }
            self.mapped_to = to;
            return true;
        }
        let _ = (at, near);
        false
    }

    /// Releases pages that are far enough before `at`.
    fn release(&mut self, at: usize) {
        #[cfg(unix)]
        if let Some(map) = self.bytes.map() {
            let (behind, at_once) = match self.bytes.is_shared_beyond(self.holders) {
                true => (BEHIND_SHARED, RELEASE_SHARED),
                false => (BEHIND, BEHIND),
            };
            if at.saturating_sub(self.released_to) < behind + at_once {
                return;
            }
            let to = at.saturating_sub(behind) & !(PAGE - 1);
            // SAFETY: in a shared mapping of a file, released pages are read from the file again
            // when they are accessed, with the same bytes, so even an outdated view stays valid.
            // This keeps the resident size small for captures of many gigabytes.
            let _ = unsafe {
                map.unchecked_advise_range(
                    UncheckedAdvice::DontNeed,
                    self.released_to,
                    to - self.released_to,
                )
            };
            self.released_to = to;
        }
        #[cfg(not(unix))]
        let _ = at;
    }
}

/// Distance from the reader up to which receivers of batches prepare pages: some batches (a
/// megabyte each) for each of a few threads.
const AHEAD_SHARED: usize = 4 << 20;

/// The pages of a map, prepared by threads other than the reader.
#[derive(Debug)]
pub(crate) struct SharedPages {
    /// The offset of the reader.
    at: AtomicUsize,
    pages: Mutex<Pages>,
}

impl SharedPages {
    fn prepare(&self) {
        // If another thread is preparing pages, this one need not.
        let Ok(mut pages) = self.pages.try_lock() else { return };
        pages.release(self.at.load(Ordering::Acquire));
        while pages.map_ahead(self.at.load(Ordering::Acquire), AHEAD_SHARED) {}
    }
}

/// The pages of the mapped files of a stream, prepared by the threads that receive its batches. So
/// the reader, for which all others wait, only reads.
#[derive(Clone, Debug, Default)]
pub struct PageReadahead(Arc<Mutex<Vec<Weak<SharedPages>>>>);

impl PageReadahead {
    /// Adds the pages of one more file.
    pub(crate) fn add(&self, shared_pages: Weak<SharedPages>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(shared_pages);
    }

    /// Prepares the next pages and releases those before the reader, unless another thread is doing
    /// so. If no thread calls this for some time, pages are mapped by page faults when they are
    /// read, and stay mapped.
    pub fn prepare(&self) {
        let Ok(mut all) = self.0.try_lock() else { return };
        all.retain(|shared_pages| {
            shared_pages.upgrade().is_some_and(|shared_pages| {
                shared_pages.prepare();
                true
            })
        });
    }
}

/// A thread that prepares the pages of a map; without it, reading takes a third longer.
#[derive(Debug)]
struct PagePreparer {
    position: Arc<ReadPosition>,
    thread: Workers,
}

/// The offset of the reader, shared with the thread.
#[derive(Debug, Default)]
struct ReadPosition {
    at: AtomicUsize,
    ended: AtomicBool,
}

/// Minimum length of a file for which the thread is started; shorter files are read before a thread
/// has started.
const MIN_FILE_LEN: usize = 16 << 20;

/// Maximum distance of the thread from the reader, in bytes.
const MAX_AHEAD: usize = 8 << 20;

impl PagePreparer {
    fn start(mut pages: Pages) -> io::Result<Self> {
        pages.holders += 1;
        let position = Arc::new(ReadPosition::default());
        let seen = Arc::clone(&position);
        let work = move || {
            while !seen.ended.load(Ordering::Acquire) {
                let at = seen.at.load(Ordering::Acquire);
                pages.release(at);
                if !pages.map_ahead(at, MAX_AHEAD) {
                    // Returns immediately if the reader has advanced in the meantime.
                    std::thread::park();
                }
            }
        };
        let mut thread = Workers::default();
        thread.start("pages", work)?;
        Ok(Self { position, thread })
    }

    fn reading_at(&self, at: usize) {
        self.position.at.store(at, Ordering::Release);
        self.thread.unpark();
    }
}

impl Drop for PagePreparer {
    fn drop(&mut self) {
        self.position.ended.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A reader of a mapped file that does not copy.
#[derive(Debug)]
pub(crate) struct MapReader {
    map: Map,
    at: usize,
}

/// Number of bytes that a [`MapReader`] returns at a time, so that pages are prepared and released
/// at the pace of reading.
const CHUNK: usize = AHEAD / 2;

impl BufRead for MapReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.map.reading_at(self.at);
        let rest = self.map.bytes().get(self.at..).unwrap_or_default();
        Ok(&rest[..rest.len().min(CHUNK)])
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

/// Distance from a record up to which cache lines are prefetched, in bytes: a few dozen small
/// packets.
const PREFETCH_AHEAD: usize = 4096;

/// Number of bytes of a record to prefetch: its headers, and those of small packets after it.
const PREFETCH_RECORD: usize = 512;

/// Number of bytes prefetched at a time: about the size of a small record.
const PREFETCH_SMALL: usize = 128;

/// Prefetches memory at some distance after the record `data[from..to]`.
///
/// The hardware prefetcher cannot predict it, because the start of a record is known only when the
/// previous record was parsed. Small packets are parsed twice as fast with this.
#[inline(always)]
pub(crate) fn prefetch_after(data: &[u8], from: usize, to: usize) {
    // Always both lines, because the size of a small record is unpredictable.
    let ahead = data.as_ptr().wrapping_add(from + PREFETCH_AHEAD);
    prefetch(ahead.cast::<[u8; PREFETCH_SMALL]>());
    if to - from > PREFETCH_SMALL {
        prefetch_after_long(data, from, to);
    }
}

/// Large records often have the same length: prefetches the expected starts of two following
/// records.
#[inline(never)]
fn prefetch_after_long(data: &[u8], from: usize, to: usize) {
    let fetch = |at: usize| prefetch(data.as_ptr().wrapping_add(at).cast::<[u8; PREFETCH_SMALL]>());
    let len = to - from;
    if len > PREFETCH_RECORD {
        fetch(to + len);
        fetch(to + 3 * len);
    }
    let first = (from + PREFETCH_SMALL).max(to.saturating_sub(PREFETCH_RECORD));
    (first..to).step_by(PREFETCH_SMALL).for_each(|at| fetch(at + PREFETCH_AHEAD));
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
        let long: Vec<u8> = (0..MIN_FILE_LEN + 3 * PAGE + 5).map(|i| (i % 251) as u8).collect();
        for (bytes, threads) in [(&long[..], true), (&long[..MIN_FILE_LEN - 1], false)] {
            fs::write(&path, bytes).unwrap();
            let mut map = Map::new(&File::open(&path).unwrap()).unwrap();
            map.reading_at(0);
            map.read_ahead();
            assert_eq!(map.ahead.is_some(), threads);
            // Other owners still read earlier bytes.
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
    fn bytes_are_the_same_if_other_threads_prepare_the_pages() {
        let dir = Dir::new("pages-shared_pages");
        let path = dir.0.join("long");
        let long: Vec<u8> = (0..MIN_FILE_LEN + 3 * PAGE + 5).map(|i| (i % 251) as u8).collect();
        fs::write(&path, &long).unwrap();
        let mut map = Map::new(&File::open(&path).unwrap()).unwrap();
        map.reading_at(0);
        let (readahead, shared_pages) = (PageReadahead::default(), map.share_pages().unwrap());
        readahead.add(shared_pages.clone());
        let asked = || shared_pages.upgrade().map(|t| t.pages.lock().unwrap().mapped_to);
        let kept = map.bytes().clone();
        for at in (0..long.len()).step_by(300_001) {
            map.reading_at(at);
            readahead.prepare();
            if cfg!(target_os = "linux") {
                assert!(asked() >= Some((at + AHEAD_SHARED).min(long.len())));
            }
            assert_eq!(map.bytes()[at], long[at]);
        }
        drop(map);
        readahead.prepare();
        assert!(readahead.0.lock().unwrap().is_empty());
        assert!(*kept == *long);
    }

    #[test]
    fn a_reader_that_stops_early_does_not_wait() {
        let dir = Dir::new("pages-early");
        let path = dir.0.join("long");
        fs::write(&path, vec![1; MIN_FILE_LEN]).unwrap();
        for read in [0, 1, MAX_AHEAD, MIN_FILE_LEN] {
            let mut map = Map::new(&File::open(&path).unwrap()).unwrap();
            map.read_ahead();
            map.reading_at(read);
            drop(map);
        }
    }
}
