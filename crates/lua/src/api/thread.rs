//! Threads with a Lua state of their own, the values passed to them, and the rings between threads.
//!
//! A thread holds the rings that were passed to it. When it ends, no other thread waits for it: a
//! ring whose other threads have all ended accepts nothing once it is full, and returns nothing
//! once it is empty.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ffi::c_int;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicIsize;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use gannet_pipeline::ring::Ring;

use super::fail;

/// The C declarations of [`Threads`].
pub(crate) const DECLARATIONS: &str = "
typedef struct gannet_ring gannet_ring;
typedef struct gannet_thread gannet_thread;
typedef struct {
    double number;
    const char *text;
    uint32_t len;
    gannet_ring *ring;
} gannet_item;
typedef struct {
    gannet_ring *(*ring_new)(uint32_t capacity);
    gannet_ring *(*ring_share)(gannet_ring *ring);
    void (*ring_free)(gannet_ring *ring);
    int (*ring_put)(gannet_ring *ring, void *word);
    int (*ring_try_put)(gannet_ring *ring, void *word);
    int (*ring_take)(gannet_ring *ring, int wait, void **word);
    uint32_t (*ring_len)(gannet_ring *ring);
    uint32_t (*ring_capacity)(gannet_ring *ring);
    int (*ring_closed)(gannet_ring *ring);
    int (*ring_alone)(gannet_ring *ring);
    void (*ring_close)(gannet_ring *ring);
    gannet_thread *(*thread_new)(void);
    void (*thread_free)(gannet_thread *thread);
    int (*thread_start)(gannet_thread *thread, const char *code, uint32_t len);
    int (*thread_stop)(gannet_thread *thread);
    void (*thread_push)(gannet_thread *thread, const gannet_item *item);
    int (*thread_pop)(gannet_thread *thread, gannet_item *item);
} gannet_threads;
";

/// The functions, in the order of [`DECLARATIONS`].
#[repr(C)]
pub(crate) struct Threads {
    ring_new: extern "C" fn(u32) -> *const Shared,
    ring_share: unsafe extern "C" fn(*const Shared) -> *const Shared,
    ring_free: unsafe extern "C" fn(*const Shared),
    ring_put: unsafe extern "C" fn(*const Shared, *mut c_void) -> c_int,
    ring_try_put: unsafe extern "C" fn(*const Shared, *mut c_void) -> c_int,
    ring_take: unsafe extern "C" fn(*const Shared, c_int, *mut *mut c_void) -> c_int,
    ring_len: unsafe extern "C" fn(*const Shared) -> u32,
    ring_capacity: unsafe extern "C" fn(*const Shared) -> u32,
    ring_closed: unsafe extern "C" fn(*const Shared) -> c_int,
    ring_alone: unsafe extern "C" fn(*const Shared) -> c_int,
    ring_close: unsafe extern "C" fn(*const Shared),
    thread_new: extern "C" fn() -> *const Thread,
    thread_free: unsafe extern "C" fn(*const Thread),
    thread_start: unsafe extern "C" fn(*const Thread, *const u8, u32) -> c_int,
    thread_stop: unsafe extern "C" fn(*const Thread) -> c_int,
    thread_push: unsafe extern "C" fn(*const Thread, *const Raw),
    thread_pop: unsafe extern "C" fn(*const Thread, *mut Raw) -> c_int,
}

pub(crate) const TABLE: Threads = Threads {
    ring_new,
    ring_share,
    ring_free,
    ring_put,
    ring_try_put,
    ring_take,
    ring_len,
    ring_capacity,
    ring_closed,
    ring_alone,
    ring_close,
    thread_new,
    thread_free,
    thread_start,
    thread_stop,
    thread_push,
    thread_pop,
};

/// A ring, and the number of running threads that hold it; [`UNSHARED`] until the first.
pub(crate) struct Shared {
    ring: Ring,
    users: AtomicIsize,
}

/// The value of `users` until the ring is passed to a thread.
const UNSHARED: isize = isize::MIN;

impl Shared {
    fn add_user(&self) {
        let counted = |users: isize| Some(users.max(0) + 1);
        self.users.fetch_update(Ordering::AcqRel, Ordering::Acquire, counted).unwrap_or_default();
    }

    fn remove_user(&self) {
        self.users.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether all threads that held the ring have ended.
    fn is_alone(&self) -> bool {
        self.users.load(Ordering::Acquire) <= 0
    }
}

/// An item passed to a thread, in C layout.
#[repr(C)]
pub(crate) struct Raw {
    number: f64,
    text: *const u8,
    len: u32,
    ring: *const Shared,
}

enum Item {
    Number(f64),
    Text(Box<[u8]>),
    Ring(Arc<Shared>),
}

/// A thread.
#[derive(Default)]
pub(crate) struct Thread {
    inside: Mutex<ThreadState>,
    changed: Condvar,
}

#[derive(Default)]
struct ThreadState {
    items: VecDeque<Item>,
    /// The last returned item, kept while Lua may read it.
    last: Option<Item>,
    /// Rings that the thread may use.
    rings: Vec<Arc<Shared>>,
    /// Whether no more items will be added.
    is_last: bool,
    running: Option<JoinHandle<Result<(), String>>>,
}

impl Thread {
    fn lock(&self) -> MutexGuard<'_, ThreadState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, item: Item) {
        let mut inside = self.lock();
        if let Item::Ring(ring) = &item {
            ring.add_user();
            inside.rings.push(Arc::clone(ring));
        }
        inside.items.push_back(item);
        self.changed.notify_all();
    }

    /// Writes the next item to `out`; returns its kind, 1 number, 2 text, 3 ring, or 0 if no more
    /// will follow.
    fn pop(&self, out: &mut Raw) -> c_int {
        let mut inside = self.lock();
        while inside.items.is_empty() && !inside.is_last {
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        inside.last = inside.items.pop_front();
        match &inside.last {
            None => 0,
            Some(Item::Number(number)) => {
                out.number = *number;
                1
            }
            Some(Item::Text(text)) => {
                (out.text, out.len) = (text.as_ptr(), text.len() as u32);
                2
            }
            Some(Item::Ring(ring)) => {
                out.ring = Arc::into_raw(Arc::clone(ring));
                3
            }
        }
    }

    /// Waits for the end of the thread; returns its error.
    fn stop(&self) -> Result<(), String> {
        let running = {
            let mut inside = self.lock();
            inside.is_last = true;
            self.changed.notify_all();
            inside.running.take()
        };
        running.map_or(Ok(()), |t| t.join().unwrap_or_else(|_| Err("the thread panicked".into())))
    }

    fn end(&self) {
        let rings = std::mem::take(&mut self.lock().rings);
        rings.iter().for_each(|ring| ring.remove_user());
    }
}

/// # Safety
/// `ring` came from `ring_new`, `ring_share` or `thread_pop` and was not freed.
unsafe fn ring<'a>(ring: *const Shared) -> &'a Shared {
    assert!(!ring.is_null(), "a ring's handle is not null");
    // SAFETY: by this function's contract; all of its uses are shared.
    unsafe { &*ring }
}

extern "C" fn ring_new(capacity: u32) -> *const Shared {
    let users = AtomicIsize::new(UNSHARED);
    Arc::into_raw(Arc::new(Shared { ring: Ring::new(capacity as usize), users }))
}

/// # Safety
/// As for [`ring`].
unsafe extern "C" fn ring_share(it: *const Shared) -> *const Shared {
    // SAFETY: by this function's contract, it came from `Arc::into_raw` and is alive.
    unsafe { Arc::increment_strong_count(it) };
    it
}

/// # Safety
/// As for [`ring`], and this is the last use of that handle.
unsafe extern "C" fn ring_free(it: *const Shared) {
    // SAFETY: by this function's contract.
    drop(unsafe { Arc::from_raw(it) });
}

/// # Safety
/// As for [`ring`].
unsafe extern "C" fn ring_put(it: *const Shared, word: *mut c_void) -> c_int {
    // SAFETY: by this function's contract.
    let it = unsafe { ring(it) };
    it.ring.put_unless(word.addr() as u64, || it.is_alone()).map_or(-1, |()| 0)
}

/// # Safety
/// As for [`ring`].
unsafe extern "C" fn ring_try_put(it: *const Shared, word: *mut c_void) -> c_int {
    // SAFETY: by this function's contract.
    if unsafe { ring(it) }.ring.try_put(word.addr() as u64) { 0 } else { -1 }
}

/// # Safety
/// As for [`ring`]; `word` is valid for a write.
unsafe extern "C" fn ring_take(it: *const Shared, wait: c_int, word: *mut *mut c_void) -> c_int {
    // SAFETY: by this function's contract.
    let it = unsafe { ring(it) };
    let taken = if wait != 0 { it.ring.take_unless(|| it.is_alone()) } else { it.ring.try_take() };
    let Some(taken) = taken else { return -1 };
    // SAFETY: by this function's contract. The program never dereferences the pointer; only scripts
    // do, which stored it.
    unsafe { word.write(std::ptr::with_exposed_provenance_mut(taken as usize)) };
    0
}

/// # Safety
/// As for [`ring`].
unsafe extern "C" fn ring_len(it: *const Shared) -> u32 {
    // SAFETY: by this function's contract.
    unsafe { ring(it) }.ring.len() as u32
}

/// # Safety
/// As for [`ring`].
unsafe extern "C" fn ring_capacity(it: *const Shared) -> u32 {
    // SAFETY: by this function's contract.
    unsafe { ring(it) }.ring.capacity() as u32
}

/// # Safety
/// As for [`ring`].
unsafe extern "C" fn ring_closed(it: *const Shared) -> c_int {
    // SAFETY: by this function's contract.
    c_int::from(unsafe { ring(it) }.ring.is_closed())
}

/// # Safety
/// As for [`ring`].
unsafe extern "C" fn ring_alone(it: *const Shared) -> c_int {
    // SAFETY: by this function's contract.
    c_int::from(unsafe { ring(it) }.is_alone())
}

/// # Safety
/// As for [`ring`].
unsafe extern "C" fn ring_close(it: *const Shared) {
    // SAFETY: by this function's contract.
    unsafe { ring(it) }.ring.close();
}

extern "C" fn thread_new() -> *const Thread {
    Arc::into_raw(Arc::new(Thread::default()))
}

/// # Safety
/// `thread` came from `thread_new` and was not freed.
unsafe fn thread<'a>(thread: *const Thread) -> &'a Thread {
    assert!(!thread.is_null(), "a thread's handle is not null");
    // SAFETY: by this function's contract; all of its uses are shared.
    unsafe { &*thread }
}

/// # Safety
/// As for [`thread`], and this is the last use of that handle.
unsafe extern "C" fn thread_free(it: *const Thread) {
    // SAFETY: by this function's contract.
    let it = unsafe { Arc::from_raw(it) };
    let mut inside = it.lock();
    inside.is_last = true;
    it.changed.notify_all();
    let runs = inside.running.is_some();
    drop(inside);
    if !runs {
        it.end();
    }
}

/// # Safety
/// As for [`thread`]; `code` points to `len` bytes from string.dump().
unsafe extern "C" fn thread_start(it: *const Thread, code: *const u8, len: u32) -> c_int {
    // SAFETY: by this function's contract; the count is of the thread's own handle.
    let own = unsafe {
        Arc::increment_strong_count(it);
        Arc::from_raw(it)
    };
    // SAFETY: by this function's contract.
    let code = unsafe { std::slice::from_raw_parts(code, len as usize) }.to_vec();
    let mut inside = own.lock();
    if inside.running.is_some() {
        fail(&"the thread is already running");
        return -1;
    }
    let inner = Arc::clone(&own);
    let started = std::thread::Builder::new().name("script".into()).spawn(move || {
        let result = crate::script::thread(Arc::as_ptr(&inner).cast(), &code);
        inner.end();
        result
    });
    match started {
        Ok(handle) => inside.running = Some(handle),
        Err(error) => {
            fail(&error);
            return -1;
        }
    }
    0
}

/// # Safety
/// As for [`thread`].
unsafe extern "C" fn thread_stop(it: *const Thread) -> c_int {
    // SAFETY: by this function's contract.
    match unsafe { thread(it) }.stop() {
        Ok(()) => 0,
        Err(error) => {
            fail(&error);
            -1
        }
    }
}

/// # Safety
/// As for [`thread`]; `item` has a ring, or else a text of `len` bytes, or else a number.
unsafe extern "C" fn thread_push(it: *const Thread, item: *const Raw) {
    // SAFETY: by this function's contract.
    let (it, raw) = unsafe { (thread(it), &*item) };
    it.push(if !raw.ring.is_null() {
        // SAFETY: by this function's contract, a ring that lives; the count is for the item.
        Item::Ring(unsafe { Arc::from_raw(ring_share(raw.ring)) })
    } else if !raw.text.is_null() {
        // SAFETY: by this function's contract.
        Item::Text(unsafe { std::slice::from_raw_parts(raw.text, raw.len as usize) }.into())
    } else {
        Item::Number(raw.number)
    });
}

/// # Safety
/// As for [`thread`]; `item` is valid for a write. A text is valid until the next call, a ring is the
/// caller's to free.
unsafe extern "C" fn thread_pop(it: *const Thread, item: *mut Raw) -> c_int {
    // SAFETY: by this function's contract.
    let (it, item) = unsafe { (thread(it), &mut *item) };
    it.pop(item)
}
