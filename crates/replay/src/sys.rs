//! Many datagrams in one system call, with segmentation by the kernel: sendmmsg(2), recvmmsg(2),
//! UDP_SEGMENT and UDP_GRO of udp(7); the time slice of sched_setattr(2), and sched_setscheduler(2). No
//! safe wrapper has these.
//!
//! All structs that the kernel reads or writes live in vectors of [`Sender`] and [`Receiver`], are
//! filled right before the call, and point only into those vectors or into slices that the caller
//! borrows for the duration of the call.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::net::SocketAddrV4;
use std::net::SocketAddrV6;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;

/// Maximum number of datagrams of a segmented message (UDP_MAX_SEGMENTS of older kernels).
pub(crate) const MAX_SEGMENTS: usize = 64;
/// Maximum length of a segmented message in bytes: that of an IP datagram, less its headers.
pub(crate) const MAX_SEGMENTED: usize = 65_000;
/// Maximum number of messages per system call.
pub(crate) const MESSAGES: usize = 64;
/// Size of a receive buffer in bytes, enough for coalesced segments.
const RECEIVE: usize = 65_536;
/// Size of control data in bytes: one header and an integer.
const CONTROL: usize = 32;

const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;

/// A control buffer, aligned as the kernel requires.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// One datagram, or several of the same length (the last may be shorter) that the kernel splits.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// Range of its bytes.
    pub(crate) bytes: Range<usize>,
    /// Length of all datagrams except the last.
    pub(crate) segment: u16,
    /// Destination; `None` on a connected socket.
    pub(crate) to: Option<SocketAddr>,
}

impl Chunk {
    /// Number of datagrams that it is split into.
    pub(crate) fn messages(&self) -> usize {
        self.bytes.len().div_ceil(usize::from(self.segment).max(1)).max(1)
    }
}

/// Sends datagrams.
pub(crate) struct Sender {
    headers: Vec<libc::mmsghdr>,
    pieces: Vec<libc::iovec>,
    controls: Vec<Control>,
    names: Vec<libc::sockaddr_storage>,
}

impl Sender {
    pub(crate) fn new() -> Self {
        Self {
            headers: Vec::with_capacity(MESSAGES),
            pieces: Vec::with_capacity(MESSAGES),
            controls: vec![Control([0; CONTROL]); MESSAGES],
            names: vec![empty_name(); MESSAGES],
        }
    }

    /// Sends up to [`MESSAGES`] chunks in order without waiting; returns the number that the kernel
    /// accepted. Chunks are ranges of `data`; a chunk outside of it is sent as an empty datagram.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        data: &[u8],
        chunks: &[Chunk],
    ) -> io::Result<usize> {
        let chunks = &chunks[..chunks.len().min(MESSAGES)];
        self.headers.clear();
        self.pieces.clear();
        self.pieces.extend(chunks.iter().map(|chunk| {
            let bytes = data.get(chunk.bytes.clone()).unwrap_or_default();
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
        }));
        for (index, (chunk, piece)) in chunks.iter().zip(&mut self.pieces).enumerate() {
            // SAFETY: all fields of these C structs are integers and pointers, for which zero is
            // valid.
            let mut header: libc::msghdr = unsafe { mem::zeroed() };
            let several = piece.iov_len > usize::from(chunk.segment);
            header.msg_iov = piece;
            header.msg_iovlen = 1;
            if let Some(to) = chunk.to {
                header.msg_namelen = write_name(to, &mut self.names[index]);
                header.msg_name = (&raw mut self.names[index]).cast();
            }
            if several && chunk.segment > 0 {
                header.msg_control = (&raw mut self.controls[index]).cast();
                // SAFETY: CMSG_SPACE and CMSG_LEN compute from their argument alone.
                header.msg_controllen = unsafe { libc::CMSG_SPACE(2) } as _;
                // SAFETY: msg_control points to CONTROL (32) bytes, aligned to 8, and
                // msg_controllen (24) is the space of one header with two bytes of data; so
                // CMSG_FIRSTHDR is that header, inside the buffer, and its data are inside, too.
                unsafe {
                    let control = libc::CMSG_FIRSTHDR(&raw const header);
                    (*control).cmsg_level = libc::SOL_UDP;
                    (*control).cmsg_type = UDP_SEGMENT;
                    (*control).cmsg_len = libc::CMSG_LEN(2) as _;
                    libc::CMSG_DATA(control).cast::<u16>().write_unaligned(chunk.segment);
                }
            }
            self.headers.push(libc::mmsghdr { msg_hdr: header, msg_len: 0 });
        }
        if self.headers.is_empty() {
            return Ok(0);
        }
        // SAFETY: `headers` holds that many headers; each points to an iovec in `self.pieces` (not
        // touched since), which points into `data` (borrowed for this call), and to control data and
        // names of `self`. The kernel writes to msg_len alone.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as _,
                // Signed with glibc, unsigned with musl.
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// Receives datagrams.
pub(crate) struct Receiver {
    headers: Vec<libc::mmsghdr>,
    pieces: Vec<libc::iovec>,
    controls: Vec<Control>,
    names: Vec<libc::sockaddr_storage>,
    data: Vec<u8>,
}

/// One received message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    /// Its bytes: one datagram, or several of length `segment` and a last one.
    pub(crate) data: &'a [u8],
    /// Length of all datagrams except the last.
    pub(crate) segment: usize,
    /// Address of the sender.
    pub(crate) from: Option<SocketAddr>,
}

impl<'a> Received<'a> {
    /// The datagrams.
    pub(crate) fn datagrams(self) -> impl Iterator<Item = &'a [u8]> {
        // An empty message is one empty datagram.
        let empty = self.data.is_empty().then_some(&[][..]);
        self.data.chunks(self.segment.max(1)).chain(empty)
    }
}

impl Receiver {
    /// Buffers for `messages` at once.
    pub(crate) fn new(messages: usize) -> Self {
        Self {
            headers: Vec::with_capacity(messages),
            pieces: Vec::with_capacity(messages),
            controls: vec![Control([0; CONTROL]); messages],
            names: vec![empty_name(); messages],
            data: vec![0; messages * RECEIVE],
        }
    }

    /// Receives up to `max_messages` available messages without waiting; returns their number.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        max_messages: usize,
    ) -> io::Result<usize> {
        self.headers.clear();
        self.pieces.clear();
        for buffer in self.data.chunks_mut(RECEIVE).take(max_messages) {
            let iov_base = buffer.as_mut_ptr().cast();
            self.pieces.push(libc::iovec { iov_base, iov_len: buffer.len() });
        }
        for (index, piece) in self.pieces.iter_mut().enumerate() {
            // SAFETY: as in `send`.
            let mut header: libc::msghdr = unsafe { mem::zeroed() };
            header.msg_iov = piece;
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut self.names[index]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            header.msg_control = (&raw mut self.controls[index]).cast();
            header.msg_controllen = CONTROL as _;
            self.headers.push(libc::mmsghdr { msg_hdr: header, msg_len: 0 });
        }
        // SAFETY: each header points to one iovec over its own RECEIVE bytes of `self.data`, to a
        // name and to CONTROL bytes of its own, all owned by `self` and borrowed mutably here.
        let got = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as _,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error());
        self.headers.truncate(got.as_ref().map_or(0, |n| *n));
        got
    }

    /// Message `index` of the last [`receive`](Self::receive).
    pub(crate) fn message(&self, index: usize) -> Option<Received<'_>> {
        let header = self.headers.get(index)?;
        let start = index * RECEIVE;
        let data = self.data.get(start..start + (header.msg_len as usize).min(RECEIVE))?;
        let segment = segment(&header.msg_hdr).unwrap_or(data.len());
        Some(Received { data, segment, from: read_name(&self.names[index]) })
    }
}

/// The segment length that the kernel reported with a message.
fn segment(header: &libc::msghdr) -> Option<usize> {
    // SAFETY: recvmmsg filled the header: msg_control points to the CONTROL bytes of the receiver
    // that owns the buffer, and msg_controllen is the number of them that the kernel wrote, so
    // CMSG_FIRSTHDR is null or a header inside of them. Its data is read only if its length covers
    // it.
    unsafe {
        let control = libc::CMSG_FIRSTHDR(header);
        if control.is_null()
            || (*control).cmsg_level != libc::SOL_UDP
            || (*control).cmsg_type != UDP_GRO
            || (*control).cmsg_len < libc::CMSG_LEN(4) as _
        {
            return None;
        }
        let size = libc::CMSG_DATA(control).cast::<libc::c_int>().read_unaligned();
        usize::try_from(size).ok().filter(|n| *n > 0)
    }
}

/// Enables coalescing of datagrams of one sender (UDP_GRO); returns whether the kernel supports it.
pub(crate) fn join_datagrams(socket: BorrowedFd<'_>) -> bool {
    let on: libc::c_int = 1;
    // SAFETY: the pointer is to an int, whose size is passed.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            UDP_GRO,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as _,
        )
    };
    done == 0
}

/// The argument of sched_setattr(2), in its first version.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Scheduling {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Time slice without real-time scheduling (Linux 6.12), in nanoseconds.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Requests a short time slice for this thread, so that the kernel schedules it earlier at wake-up;
/// returns whether the kernel accepted it. This needs no privilege and takes no processor time from
/// other threads.
pub(crate) fn set_short_time_slice(nanoseconds: u64) -> bool {
    let size = size_of::<Scheduling>() as u32;
    let mut scheduling = Scheduling { size, ..Scheduling::default() };
    // SAFETY: 0 is this thread; the kernel writes at most `size` bytes, the size of the struct
    // pointed to, all of whose fields are integers.
    let got = unsafe {
        libc::syscall(libc::SYS_sched_getattr, 0, &raw mut scheduling, size, 0 as libc::c_uint)
    };
    // The user has set another policy.
    if got != 0 || scheduling.policy != libc::SCHED_OTHER as u32 {
        return false;
    }
    scheduling.size = size;
    scheduling.runtime = nanoseconds;
    // SAFETY: the kernel reads as many bytes as the `size` field of the struct states, which is its
    // size.
    let set = unsafe {
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const scheduling, 0 as libc::c_uint)
    };
    set == 0
}

/// Sets or resets real-time scheduling of this thread (SCHED_RR at the lowest priority); returns
/// whether the kernel permits it. This requires CAP_SYS_NICE.
pub(crate) fn set_realtime_priority(on: bool) -> bool {
    let (policy, sched_priority) =
        if on { (libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1) } else { (libc::SCHED_OTHER, 0) };
    // On some systems the struct has more than one field. SAFETY: integers only, for which zero is
    // valid.
    let mut parameters: libc::sched_param = unsafe { mem::zeroed() };
    parameters.sched_priority = sched_priority;
    // SAFETY: 0 is this thread; the pointer is to a struct that lives for the call and is only read.
    let set = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    set == 0
}

fn empty_name() -> libc::sockaddr_storage {
    // SAFETY: integers only; zero is family AF_UNSPEC.
    unsafe { mem::zeroed() }
}

fn write_name(address: SocketAddr, name: &mut libc::sockaddr_storage) -> libc::socklen_t {
    match address {
        SocketAddr::V4(a) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as _,
                sin_port: a.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(a.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is larger than, and aligned for, every address.
            unsafe { (&raw mut *name).cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>() as _
        }
        SocketAddr::V6(a) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as _,
                sin6_port: a.port().to_be(),
                sin6_flowinfo: a.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: a.ip().octets() },
                sin6_scope_id: a.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut *name).cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>() as _
        }
    }
}

fn read_name(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which address it is; the storage is larger and aligned, and
            // its bytes were written by the kernel or are zero.
            let raw = unsafe { (&raw const *name).cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { (&raw const *name).cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            let port = u16::from_be(raw.sin6_port);
            Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    fn pair(host: &str) -> (UdpSocket, UdpSocket) {
        let (a, b) = (UdpSocket::bind((host, 0)).unwrap(), UdpSocket::bind((host, 0)).unwrap());
        a.connect(b.local_addr().unwrap()).unwrap();
        (a, b)
    }

    fn receive(receiver: &mut Receiver, socket: &UdpSocket, want: usize) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        for _ in 0..500 {
            for index in 0..receiver.receive(socket.as_fd(), usize::MAX).unwrap_or(0) {
                let message = receiver.message(index).unwrap();
                got.extend(message.datagrams().map(<[u8]>::to_vec));
            }
            if got.len() >= want {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        got
    }

    #[test]
    fn segments_arrive_as_datagrams_whether_joined_or_not() {
        for join in [false, true] {
            let (a, b) = pair("127.0.0.1");
            if join && !join_datagrams(b.as_fd()) {
                continue;
            }
            let data = b"aabbccdefg";
            let chunks = [
                Chunk { bytes: 0..7, segment: 2, to: None },
                Chunk { bytes: 7..10, segment: 3, to: None },
            ];
            assert_eq!(chunks.each_ref().map(Chunk::messages), [4, 1]);
            let sent = Sender::new().send(a.as_fd(), data, &chunks).unwrap();
            assert_eq!(sent, 2);
            let got = receive(&mut Receiver::new(4), &b, 5);
            assert_eq!(got, [&b"aa"[..], b"bb", b"cc", b"d", b"efg"]);
        }
    }

    #[test]
    fn a_thread_may_request_a_short_time_slice() {
        std::thread::spawn(|| {
            // Kernels before 6.12 accept the value and ignore it.
            if set_short_time_slice(100_000) {
                assert!(set_short_time_slice(200_000), "once more");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn real_time_priority_can_be_reset() {
        std::thread::spawn(|| {
            // It requires a privilege.
            if set_realtime_priority(true) {
                assert!(set_realtime_priority(false));
            }
            assert!(set_realtime_priority(false), "as others do it always may");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn addresses_round_trip() {
        for host in ["127.0.0.1", "::1"] {
            let Ok(a) = UdpSocket::bind((host, 0)) else { continue };
            let b = UdpSocket::bind((host, 0)).unwrap();
            let chunk = Chunk { bytes: 0..2, segment: 2, to: Some(b.local_addr().unwrap()) };
            assert_eq!(Sender::new().send(a.as_fd(), b"hi", &[chunk]).unwrap(), 1);
            let mut receiver = Receiver::new(1);
            assert_eq!(receive(&mut receiver, &b, 1), [b"hi"]);
            assert_eq!(receiver.message(0).unwrap().from, Some(a.local_addr().unwrap()));
        }
    }

    #[test]
    fn wrong_ranges_are_sent_as_empty_datagrams() {
        let (a, b) = pair("127.0.0.1");
        let mut sender = Sender::new();
        assert_eq!(sender.send(a.as_fd(), b"x", &[]).unwrap(), 0);
        let outside = Chunk { bytes: 5..9, segment: 4, to: None };
        let empty = Chunk { bytes: 0..0, segment: 0, to: None };
        assert_eq!(empty.messages(), 1);
        assert_eq!(sender.send(a.as_fd(), b"x", &[outside, empty]).unwrap(), 2);
        assert_eq!(receive(&mut Receiver::new(2), &b, 2), [b"", b""]);
    }
}
