//! What is packed, as bytes.

use std::fmt;
use std::io;
use std::io::BufRead;
use std::io::Read;

use super::frame::Scanner;
use super::job::Job;
use super::order::Order;
use super::unpack::Entropy;

/// Unpacks zstd data, of one frame or several.
///
/// ```
/// use std::io::Read;
///
/// use gannet_capture::zstd::Unzstd;
///
/// // A frame of one block with one byte, repeated.
/// let packed = b"\x28\xb5\x2f\xfd\x20\x05\x2b\0\0a";
/// let mut text = Vec::new();
/// Unzstd::new(&packed[..]).read_to_end(&mut text)?;
/// assert_eq!(text, b"aaaaa");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Unzstd<R> {
    scanner: Scanner<R>,
    /// Whether the input is there, so that nobody waits for what comes after the next block.
    at_hand: bool,
    entropy: Entropy,
    /// Blocks that were taken from the input.
    jobs: [Job; 2],
    /// Which of them comes next, and how many there are.
    next: usize,
    taken: usize,
    order: Order,
    ended: bool,
}

impl<R> fmt::Debug for Unzstd<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unzstd").field("frame", &self.order.frame()).finish_non_exhaustive()
    }
}

impl<R: BufRead> Unzstd<R> {
    /// Of input that begins with a frame. Of that no more is read than what is asked for takes.
    pub fn new(input: R) -> Self {
        Self {
            scanner: Scanner::new(input),
            at_hand: false,
            entropy: Entropy::default(),
            jobs: Default::default(),
            next: 0,
            taken: 0,
            order: Order::new(),
            ended: false,
        }
    }

    /// Of input that can be read without waiting for it: of that more is read, which takes less time.
    pub fn at_hand(input: R) -> Self {
        Self { at_hand: true, ..Self::new(input) }
    }

    /// Unpacks the next block; false at the end, and where an error comes next.
    fn step(&mut self) -> bool {
        if self.ended {
            return false;
        }
        if self.next == self.taken {
            self.take();
        }
        let Some(job) = self.jobs[..self.taken].get_mut(self.next) else {
            self.ended = true;
            return false;
        };
        self.next += 1;
        self.ended = !self.order.put(job);
        !self.ended
    }

    /// Takes one block or two.
    fn take(&mut self) {
        let [first, second] = &mut self.jobs;
        self.next = 0;
        self.taken = usize::from(self.scanner.next(first));
        if self.taken == 0 {
            return;
        }
        if self.at_hand && self.scanner.next(second) {
            self.taken = 2;
            self.entropy.two(first, second);
        } else {
            self.entropy.one(first);
        }
    }
}

impl<R: BufRead> Read for Unzstd<R> {
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] where the input ends within a frame, [`io::ErrorKind::InvalidData`] where
    /// it is damaged or does not match its checksum or size, and the input's own. What was unpacked
    /// before comes first.
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            let n = self.order.read(to)?;
            if n > 0 {
                return Ok(n);
            }
            if !self.step() {
                return self.order.read(to);
            }
        }
    }
}
