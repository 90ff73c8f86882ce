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

/// A thread that receives messages from its owner and sends messages back, in any order.
///
/// The channels are unbounded: memory is bounded if the owner sends a fixed number of buffers back and forth. Dropping
/// the `Partner` closes both channels and waits for the thread.
#[derive(Debug)]
pub struct Partner<A, B, T = ()> {
    // `None` after the thread was requested to end.
    sender: Option<Sender<A>>,
    receiver: Option<Receiver<B>>,
    thread: Option<JoinHandle<T>>,
}

impl<A: Send + 'static, B: Send + 'static, T: Send + 'static> Partner<A, B, T> {
    /// Starts a thread. It must end when a channel to its owner is closed.
    ///
    /// # Errors
    /// If the system cannot start a further thread.
    pub fn start(
        name: impl Into<String>,
        work: impl FnOnce(Receiver<A>, Sender<B>) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, thread_receiver) = channel();
        let (thread_sender, receiver) = channel();
        let thread =
            Builder::new().name(name.into()).spawn(move || work(thread_receiver, thread_sender))?;
        Ok(Self { sender: Some(sender), receiver: Some(receiver), thread: Some(thread) })
    }
}

impl<A, B, T> Partner<A, B, T> {
    /// Sends a message to the thread.
    ///
    /// # Errors
    /// If the thread has ended. The error contains the message.
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

    /// Closes the channel to the thread and waits for its end; messages that it sent can still be received. Returns
    /// `None` if it was called before.
    pub fn end(&mut self) -> Option<Result<T>> {
        self.sender = None;
        self.thread.take().map(JoinHandle::join)
    }
}

impl<A, B, T> Drop for Partner<A, B, T> {
    fn drop(&mut self) {
        self.receiver = None;
        // The panic hook has reported a panic already.
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
    fn messages_can_be_received_after_the_thread_has_ended() {
        let mut partner = Partner::start("numbers", |_: Receiver<()>, numbers| {
            (0..3).for_each(|n| numbers.send(n).unwrap());
        })
        .unwrap();
        partner.end().unwrap().unwrap();
        let all: Vec<i32> = std::iter::from_fn(|| partner.receive().ok()).collect();
        assert_eq!(all, [0, 1, 2]);
    }

    #[test]
    fn an_endless_sender_ends_when_its_owner_is_dropped() {
        let partner = Partner::start("endless", |_: Receiver<()>, numbers| {
            let sent = (0_u64..).take_while(|n| n % 1000 != 0 || numbers.send(*n).is_ok());
            sent.count()
        })
        .unwrap();
        assert_eq!(partner.receive(), Ok(0));
        drop(partner);
    }

    #[test]
    fn a_panic_ends_the_wait_for_messages() {
        let mut partner = Partner::<(), (), ()>::start("panics", |_, _| {
            std::panic::resume_unwind(Box::new("lost"));
        })
        .unwrap();
        assert!(partner.receive().is_err());
        assert_eq!(partner.end().unwrap().unwrap_err().downcast_ref(), Some(&"lost"));
    }
}
