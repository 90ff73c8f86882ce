//! A thread that exchanges messages with its owner.

use std::io;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvError;
use std::sync::mpsc::SendError;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::thread::JoinHandle;
use std::thread::Result;

/// A thread that receives messages from its owner and sends others back, in the order in which it likes.
///
/// Memory is bounded by the number of buffers that the owner lets circulate: neither side makes more of them. The owner
/// closes both channels when it is dropped, and waits for the thread.
#[derive(Debug)]
pub struct Partner<A, B, T = ()> {
    // `None` once the thread is to end.
    sender: Option<Sender<A>>,
    receiver: Option<Receiver<B>>,
    thread: Option<JoinHandle<T>>,
}

impl<A: Send + 'static, B: Send + 'static, T: Send + 'static> Partner<A, B, T> {
    /// Starts a thread. It is to end when a channel to its owner is closed.
    ///
    /// # Errors
    /// If the system has no further thread.
    pub fn start(
        name: impl Into<String>,
        work: impl FnOnce(Receiver<A>, Sender<B>) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, taken) = channel();
        let (given, receiver) = channel();
        let thread = Builder::new().name(name.into()).spawn(move || work(taken, given))?;
        Ok(Self { sender: Some(sender), receiver: Some(receiver), thread: Some(thread) })
    }
}

impl<A, B, T> Partner<A, B, T> {
    /// Sends the thread a message.
    ///
    /// # Errors
    /// If the thread has ended, with the message.
    pub fn send(&self, message: A) -> std::result::Result<(), SendError<A>> {
        match &self.sender {
            Some(sender) => sender.send(message),
            None => Err(SendError(message)),
        }
    }

    /// Waits for the next message of the thread.
    ///
    /// # Errors
    /// If the thread has ended and all its messages are received.
    pub fn receive(&self) -> std::result::Result<B, RecvError> {
        self.receiver.as_ref().ok_or(RecvError)?.recv()
    }

    /// Closes the channel to the thread and waits for its end; messages that it sent can still be received. `None` if
    /// the thread was waited for before.
    pub fn end(&mut self) -> Option<Result<T>> {
        self.sender = None;
        self.thread.take().map(JoinHandle::join)
    }
}

impl<A, B, T> Drop for Partner<A, B, T> {
    fn drop(&mut self) {
        self.receiver = None;
        // A panic was reported when it happened, and its owner ends.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_circulate() {
        let mut partner = Partner::start("sums", |buffers: Receiver<Vec<u32>>, back| {
            let mut sum = 0;
            for mut buffer in buffers {
                sum += buffer.drain(..).sum::<u32>();
                if back.send(buffer).is_err() {
                    break;
                }
            }
            sum
        })
        .unwrap();
        let mut buffer = Vec::with_capacity(7);
        for n in 0..100 {
            buffer.extend([n; 7]);
            partner.send(buffer).unwrap();
            buffer = partner.receive().unwrap();
            assert!(buffer.is_empty() && buffer.capacity() == 7);
        }
        assert_eq!(partner.end().unwrap().unwrap(), 7 * 4950);
        assert_eq!(partner.send(vec![1]).unwrap_err().0, [1]);
        assert!(partner.receive().is_err() && partner.end().is_none());
    }

    #[test]
    fn messages_outlive_their_thread() {
        let mut partner = Partner::start("numbers", |_: Receiver<()>, numbers| {
            (0..3).for_each(|n| numbers.send(n).unwrap());
        })
        .unwrap();
        partner.end().unwrap().unwrap();
        let all: Vec<i32> = std::iter::from_fn(|| partner.receive().ok()).collect();
        assert_eq!(all, [0, 1, 2]);
    }

    #[test]
    fn a_partner_that_sends_without_end_ends_with_its_owner() {
        let partner = Partner::start("endless", |_: Receiver<()>, numbers| {
            let sent = (0_u64..).take_while(|n| n % 1000 != 0 || numbers.send(*n).is_ok());
            sent.count()
        })
        .unwrap();
        assert_eq!(partner.receive(), Ok(0));
        drop(partner);
    }

    #[test]
    fn a_panic_ends_what_waits_for_messages() {
        let mut partner = Partner::<(), (), ()>::start("panics", |_, _| {
            std::panic::resume_unwind(Box::new("lost"));
        })
        .unwrap();
        assert!(partner.receive().is_err());
        assert_eq!(partner.end().unwrap().unwrap_err().downcast_ref(), Some(&"lost"));
    }
}
