//! System calls without a safe wrapper: packet sockets and the memory that they share with the kernel.
//!
//! [`Mapping`] is a ring of blocks. The status word of a block shows whether it belongs to the kernel or to this
//! process. [`Mapping::take`] returns a [`Lease`] of a block, and no second one until it is dropped: a lease is the
//! only owner of its bytes.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::AsRawFd as _;
use std::os::fd::FromRawFd as _;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use gannet_filter::Insn;
use libc::c_int;
use libc::c_void;

const TPACKET_V3: c_int = 2;
const PACKET_FANOUT_FLAG_UNIQUEID: u32 = 0x2000;
const TP_FT_REQ_FILL_RXHASH: u32 = 1;
const PACKET_IGNORE_OUTGOING: c_int = 23;
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// A packet socket.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

/// Size of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingSize {
    pub(crate) block_size: u32,
    pub(crate) blocks: u32,
    /// Milliseconds after which the kernel retires a block that is not full.
    pub(crate) retire_ms: u32,
}

/// Counters of the kernel since they were last read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketStatistics {
    pub(crate) drops: u32,
    pub(crate) freezes: u32,
}

impl Socket {
    /// A socket that receives nothing before it is [bound](Self::bind).
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created the descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.0
    }

    fn set<T: Copy>(&self, level: c_int, name: c_int, value: &T) -> io::Result<()> {
        let len = size_of::<T>() as libc::socklen_t;
        // SAFETY: `value` has `len` bytes that live during the call; the kernel only reads them.
        let result = unsafe {
            libc::setsockopt(self.0.as_raw_fd(), level, name, (&raw const *value).cast(), len)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn set_packet<T: Copy>(&self, name: c_int, value: &T) -> io::Result<()> {
        self.set(libc::SOL_PACKET, name, value)
    }

    /// Attaches a filter: packets that it rejects do not reach the ring.
    pub(crate) fn attach(&self, insns: &[Insn]) -> io::Result<()> {
        let raw = |i: &Insn| libc::sock_filter { code: i.code, jt: i.jt, jf: i.jf, k: i.k };
        let mut insns: Vec<libc::sock_filter> = insns.iter().map(raw).collect();
        let len = u16::try_from(insns.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let filter = libc::sock_fprog { len, filter: insns.as_mut_ptr() };
        // `insns` lives to the end of the function; the kernel copies it.
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
    }

    pub(crate) fn detach(&self) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0_i32)
    }

    /// Excludes packets that this host sends.
    pub(crate) fn ignore_outgoing(&self) -> io::Result<()> {
        self.set_packet(PACKET_IGNORE_OUTGOING, &1_i32)
    }

    /// Makes the socket bypass the queueing discipline when it sends.
    pub(crate) fn bypass_queue(&self) -> io::Result<()> {
        self.set_packet(libc::PACKET_QDISC_BYPASS, &1_i32)
    }

    /// Creates a ring and maps it. `reserve` bytes before each packet stay free.
    pub(crate) fn ring(&self, size: RingSize, reserve: u32) -> io::Result<Mapping> {
        self.set_packet(libc::PACKET_VERSION, &TPACKET_V3)?;
        self.set_packet(libc::PACKET_RESERVE, &reserve)?;
        let frame = 2048;
        let request = libc::tpacket_req3 {
            tp_block_size: size.block_size,
            tp_block_nr: size.blocks,
            tp_frame_size: frame,
            tp_frame_nr: size.block_size / frame * size.blocks,
            tp_retire_blk_tov: size.retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: TP_FT_REQ_FILL_RXHASH,
        };
        self.set_packet(libc::PACKET_RX_RING, &request)?;
        let (block, count) = (size.block_size as usize, size.blocks as usize);
        let len = block.checked_mul(count).ok_or(io::ErrorKind::InvalidInput)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address of the new mapping, so no existing memory is affected.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, self.0.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let leased = (0..count).map(|_| AtomicBool::new(false)).collect();
        Ok(Mapping { start, block, leased })
    }

    /// Receives packets of all protocols from an interface.
    pub(crate) fn bind(&self, interface: u32) -> io::Result<()> {
        // SAFETY: all zeros is a valid `sockaddr_ll`.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface.cast_signed();
        let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: `address` has `len` bytes that live during the call.
        let result = unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Joins a fan-out group of sockets that share the packets of an interface by flow; `None` creates a group. Returns
    /// the number of the group.
    pub(crate) fn fan_out(&self, group: Option<u16>) -> io::Result<u16> {
        let mode = libc::PACKET_FANOUT_HASH << 16;
        let value = match group {
            Some(group) => mode | u32::from(group),
            None => mode | PACKET_FANOUT_FLAG_UNIQUEID << 16,
        };
        self.set_packet(libc::PACKET_FANOUT, &value)?;
        let mut answer = 0_u32;
        self.get(libc::SOL_PACKET, libc::PACKET_FANOUT, &mut answer)?;
        Ok((answer & 0xffff) as u16)
    }

    /// Enables promiscuous mode on the interface.
    pub(crate) fn promiscuous(&self, interface: u32) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: interface.cast_signed(),
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set_packet(libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    fn get<T: Copy>(&self, level: c_int, name: c_int, value: &mut T) -> io::Result<()> {
        let mut len = size_of::<T>() as libc::socklen_t;
        // SAFETY: `value` has `len` bytes for the kernel to write; any bytes are valid for the types used here.
        let result = unsafe {
            let target = (&raw mut *value).cast::<c_void>();
            libc::getsockopt(self.0.as_raw_fd(), level, name, target, &raw mut len)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Reads the counters of the kernel since the last call, and resets them.
    pub(crate) fn statistics(&self) -> io::Result<PacketStatistics> {
        let mut counts = [0_u32; 3];
        self.get(libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut counts)?;
        // The first counter includes all packets that passed the filter, also dropped ones.
        let [_, drops, freezes] = counts;
        Ok(PacketStatistics { drops, freezes })
    }

    /// Takes the pending error of the socket.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        let mut number = 0_i32;
        match self.get(libc::SOL_SOCKET, libc::SO_ERROR, &mut number) {
            Ok(()) if number == 0 => None,
            Ok(()) => Some(io::Error::from_raw_os_error(number)),
            Err(error) => Some(error),
        }
    }

    /// Reads a setting of an interface, as ethtool(8) does; `None` if the interface does not support it.
    pub(crate) fn ethtool(&self, name: &str, command: u32) -> Option<u32> {
        #[repr(C)]
        struct Value {
            command: u32,
            data: u32,
        }
        let mut value = Value { command, data: 0 };
        // SAFETY: all zeros is a valid request.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        if name.len() >= request.ifr_name.len() {
            return None;
        }
        for (target, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *target = from.cast_signed();
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the request refers to a value of the size that these commands use, which lives during the call.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
        (result == 0).then_some(value.data)
    }

    /// Sends frames; returns the number of frames sent, which may be less than all.
    pub(crate) fn send(&self, frames: &[&[u8]]) -> io::Result<usize> {
        let mut parts: Vec<libc::iovec> = frames
            .iter()
            .map(|f| libc::iovec { iov_base: f.as_ptr().cast_mut().cast(), iov_len: f.len() })
            .collect();
        let header = |part: &mut libc::iovec| {
            // SAFETY: all zeros is a valid message without address, data and control data.
            let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            header
        };
        let mut headers: Vec<libc::mmsghdr> = parts.iter_mut().map(header).collect();
        let fd = self.0.as_raw_fd();
        // SAFETY: the number of headers is `headers.len()`; each has one part, whose bytes live during the call and are
        // only read.
        let sent = unsafe { libc::sendmmsg(fd, headers.as_mut_ptr(), headers.len() as u32, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// The memory of a ring, shared with the kernel.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    block: usize,
    /// For each block, whether this process has a [`Lease`] of it.
    leased: Box<[AtomicBool]>,
}

// SAFETY: only leases and status words access the memory. Each block has at most one lease at a time, and status words
// are atomic.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was created with this address and length; leases keep the mapping alive.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.block * self.leased.len()) };
    }
}

/// Offset of the status word in a block.
const STATUS: usize = 8;
/// Status bit of a block that belongs to this process.
const USER: u32 = 1;
/// Status of a block that belongs to the kernel.
const KERNEL: u32 = 0;

impl Mapping {
    pub(crate) fn blocks(&self) -> usize {
        self.leased.len()
    }

    fn status(&self, index: usize) -> &AtomicU32 {
        debug_assert!(index < self.leased.len());
        // SAFETY: callers pass an index below the number of blocks. A block is at least a page and aligned to a page,
        // so its status word is within the mapping and aligned. The kernel writes the word atomically.
        unsafe { &*self.start.as_ptr().add(index * self.block + STATUS).cast::<AtomicU32>() }
    }

    /// Takes a block that the kernel has retired and that has no lease.
    pub(crate) fn take(self: &Arc<Self>, index: usize) -> Option<Lease> {
        let leased = self.leased.get(index)?;
        if leased.load(Ordering::Acquire) || self.status(index).load(Ordering::Acquire) & USER == 0
        {
            return None;
        }
        leased.store(true, Ordering::Relaxed);
        Some(Lease { map: Arc::clone(self), index })
    }
}

/// A block of a ring that belongs to this process until it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    map: Arc<Mapping>,
    index: usize,
}

impl Lease {
    fn start(&self) -> *mut u8 {
        // SAFETY: the index is below the number of blocks, so the result is within the mapping.
        unsafe { self.map.start.as_ptr().add(self.index * self.map.block) }
    }

    /// The bytes of the block.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the kernel does not access a block that it has retired, and this lease is the only one; it is
        // borrowed while the slice lives. The status word is part of the slice, and is otherwise accessed only before a
        // lease exists and after it is dropped.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.map.block) }
    }
}

impl AsRef<[u8]> for Lease {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: as for `bytes_mut`, with a shared borrow.
        unsafe { std::slice::from_raw_parts(self.start(), self.map.block) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The kernel may write from here on; the release ordering completes all reads before.
        self.map.status(self.index).store(KERNEL, Ordering::Release);
        if let Some(leased) = self.map.leased.get(self.index) {
            leased.store(false, Ordering::Release);
        }
    }
}

/// Prevents the process and its children from gaining privileges by executing programs.
pub(crate) fn no_new_privileges() -> io::Result<()> {
    // SAFETY: no memory is passed.
    let result = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Drops all capabilities of the calling thread and of threads that it starts.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        process: c_int,
    }
    // Dropping capabilities of the bounding set requires CAP_SETPCAP. Without it they cannot be gained anyway, because
    // no program can be executed with new privileges.
    for capability in 0..64 {
        // SAFETY: no memory is passed.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    let header = Header { version: 0x2008_0522, process: 0 };
    let none = [0_u32; 6];
    // SAFETY: a header of this version requires two sets of three words, which live during the call; the kernel only
    // reads them.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
