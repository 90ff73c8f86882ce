//! Parallel decoding of blocks: the caller and helper threads.
//!
//! Threads are not bound to a task. A thread without work takes the next task: decoding two blocks,
//! or reading a block from the input if too few are queued. The caller first does its own task,
//! executing ready blocks in order, and otherwise helps. So it waits only for a block that another
//! thread is decoding.

use std::collections::VecDeque;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use gannet_workers::OnPanic;
use gannet_workers::Workers;

use super::frame::Scanner;
use super::job::Job;
use super::unpack::Entropy;

/// Blocks in flight for each thread: two being decoded, two waiting. With more, their memory is
/// evicted from the nearer caches before it is used.
const DEPTH: usize = 4;

/// Input that begins with a frame, and its blocks in flight.
pub(super) struct BlocksInFlight<R> {
    shared: Arc<Shared<R>>,
    threads: Workers,
    entropy: Entropy,
    /// The block returned last.
    current: Option<Box<Job>>,
}

struct Shared<R> {
    queue: Mutex<Queue<R>>,
    /// Wakes threads: there may be work.
    work: Condvar,
    /// Wakes the caller: a block is ready.
    ready: Condvar,
}

// Blocks are boxed because they are large and move between threads.
#[allow(clippy::vec_box)]
struct Queue<R> {
    /// `None` while a thread reads a block from it, and once it has ended.
    scanner: Option<Box<Scanner<R>>>,
    /// Number of blocks read from the input.
    known: u64,
    ended: bool,
    /// Unused jobs, whose memory is reused for further blocks.
    free: Vec<Box<Job>>,
    /// Number of jobs allocated.
    depth: usize,
    /// Blocks to be decoded, in order.
    pending: VecDeque<Box<Job>>,
    /// Decoded blocks from number `next` on, as far as they are ready.
    done: VecDeque<Option<Box<Job>>>,
    next: u64,
    /// Number of waiting threads.
    idle: usize,
    /// Whether the caller waits.
    caller_waits: bool,
    /// Whether threads should end.
    stop: bool,
    /// Whether a thread has panicked.
    has_panicked: bool,
}

/// A task for any thread.
enum Task<R> {
    Scan(Box<Scanner<R>>, Box<Job>),
    One(Box<Job>),
    Two(Box<Job>, Box<Job>),
}

/// The error that a helper thread panicked, so that a block is missing.
#[derive(Debug)]
pub(super) struct Lost;

impl<R> Queue<R> {
    /// The next task.
    fn task(&mut self) -> Option<Task<R>> {
        if self.pending.len() < 2
            && !self.free.is_empty()
            && let Some(scanner) = self.scanner.take()
        {
            return self.free.pop().map(|job| Task::Scan(scanner, job));
        }
        let first = self.pending.pop_front()?;
        Some(match self.pending.pop_front() {
            Some(second) => Task::Two(first, second),
            None => Task::One(first),
        })
    }

    fn put(&mut self, job: Box<Job>) {
        let at = job.number.saturating_sub(self.next) as usize;
        if self.done.len() <= at {
            self.done.resize_with(at + 1, || None);
        }
        if let Some(place) = self.done.get_mut(at) {
            *place = Some(job);
        }
    }
}

impl<R> Shared<R> {
    fn lock(&self) -> MutexGuard<'_, Queue<R>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: BufRead> Shared<R> {
    /// Runs a task without holding the queue's lock, and stores the result.
    fn run_task<'a>(
        &'a self,
        task: Task<R>,
        entropy: &mut Entropy,
        queue: MutexGuard<'a, Queue<R>>,
    ) -> MutexGuard<'a, Queue<R>> {
        drop(queue);
        match task {
            Task::Scan(mut scanner, mut job) => {
                let taken = scanner.next(&mut job);
                let mut queue = self.lock();
                if taken {
                    queue.scanner = Some(scanner);
                    queue.known += 1;
                    queue.pending.push_back(job);
                    // This thread continues with the block; another one may take the following
                    // blocks.
                    if queue.idle > 0 && queue.pending.len() > 1 {
                        self.work.notify_one();
                    }
                } else {
                    queue.ended = true;
                    queue.free.push(job);
                    self.ready(&queue);
                }
                queue
            }
            Task::One(mut job) => {
                entropy.one(&mut job);
                let mut queue = self.lock();
                queue.put(job);
                self.ready(&queue);
                queue
            }
            Task::Two(mut first, mut second) => {
                entropy.two(&mut first, &mut second);
                let mut queue = self.lock();
                queue.put(first);
                queue.put(second);
                self.ready(&queue);
                queue
            }
        }
    }

    fn ready(&self, queue: &Queue<R>) {
        if queue.caller_waits {
            self.ready.notify_one();
        }
    }

    /// The loop of a helper thread.
    fn help(&self) {
        // Wakes the caller, which would otherwise wait for a block that no thread decodes.
        let _guard = OnPanic(|| {
            self.lock().has_panicked = true;
            self.ready.notify_one();
        });
        let mut entropy = Entropy::default();
        let mut queue = self.lock();
        while !queue.stop {
            queue = match queue.task() {
                Some(task) => self.run_task(task, &mut entropy, queue),
                None => {
                    queue.idle += 1;
                    queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                    queue.idle -= 1;
                    queue
                }
            };
        }
    }
}

impl<R: BufRead> BlocksInFlight<R> {
    /// Blocks that the caller reads and decodes one after the other, or two at once if reading the
    /// input never blocks (`in_memory`). The input begins at the offset `used` of its file.
    pub(super) fn new(input: R, used: u64, in_memory: bool) -> Self {
        let depth = if in_memory { 2 } else { 1 };
        let queue = Queue {
            scanner: Some(Box::new(Scanner::new(input, used))),
            known: 0,
            ended: false,
            free: (0..depth).map(|_| Box::default()).collect(),
            depth,
            pending: VecDeque::new(),
            done: VecDeque::new(),
            next: 0,
            idle: 0,
            caller_waits: false,
            stop: false,
            has_panicked: false,
        };
        let shared =
            Shared { queue: Mutex::new(queue), work: Condvar::new(), ready: Condvar::new() };
        Self {
            shared: Arc::new(shared),
            threads: Workers::default(),
            entropy: Entropy::default(),
            current: None,
        }
    }

    /// The next decoded block; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<&mut Job>, Lost> {
        let shared = &*self.shared;
        let mut queue = shared.lock();
        if let Some(job) = self.current.take() {
            queue.free.push(job);
            // Waking a thread for each block would cost more than the work.
            if queue.idle > 0 && queue.free.len() * 2 >= queue.depth {
                shared.work.notify_all();
            }
        }
        loop {
            if let Some(Some(_)) = queue.done.front()
                && let Some(job) = queue.done.pop_front()
            {
                queue.next += 1;
                self.current = job;
                return Ok(self.current.as_deref_mut());
            }
            if queue.has_panicked {
                return Err(Lost);
            }
            if queue.ended && queue.next == queue.known {
                return Ok(None);
            }
            queue = match queue.task() {
                Some(task) => shared.run_task(task, &mut self.entropy, queue),
                None => {
                    queue.caller_waits = true;
                    queue = shared.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
                    queue.caller_waits = false;
                    queue
                }
            };
        }
    }
}

impl<R: BufRead + Send + 'static> BlocksInFlight<R> {
    /// Starts helper threads. If none can be started, the caller continues alone.
    pub(super) fn start(&mut self, threads: usize) {
        for _ in 0..threads {
            let shared = Arc::clone(&self.shared);
            if self.threads.start("unpack", move || shared.help()).is_err() {
                break;
            }
        }
        let mut queue = self.shared.lock();
        let depth = DEPTH * (self.threads.count() + 1);
        while self.threads.count() > 0 && queue.depth < depth {
            queue.depth += 1;
            queue.free.push(Box::default());
        }
        drop(queue);
        self.shared.work.notify_all();
    }
}

impl<R> Drop for BlocksInFlight<R> {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        // The threads end after their current tasks.
        self.shared.work.notify_all();
    }
}
