//! The kernel's engine: a filter attached to a socket for verdicts, and a test run of the same
//! program as eBPF for timing.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use gannet_filter::engine::ebpf::{self, Ebpf};
use gannet_filter::engine::{Engine, Unavailable, View, foreign};
use gannet_filter::{Insn, Program};

/// A pair of sockets: matching packets arrive at the second.
///
/// Packets are sent as datagrams, so the captured length is the wire length: only completely
/// captured packets can be tested.
#[derive(Debug)]
pub struct Socket {
    pair: Mutex<(OwnedFd, OwnedFd)>,
}

fn unavailable(what: &str) -> Unavailable {
    Unavailable::new(format!("{what}: {}", io::Error::last_os_error()))
}

/// Maximum length of a datagram, in bytes.
const MAX_DATAGRAM: usize = 64 << 10;

impl Socket {
    /// Attaches a program.
    ///
    /// # Errors
    /// If the kernel refuses it, or sockets are not permitted.
    pub fn new(program: &Program) -> Result<Self, Unavailable> {
        foreign::check(program).map_err(|e| Unavailable::new(e.to_string()))?;
        foreign::same_meaning(program).map_err(Unavailable::new)?;
        attach(program.insns())
            .map(|pair| Self { pair: Mutex::new(pair) })
            .map_err(|error| Unavailable::new(format!("the kernel rejects the filter: {error}")))
    }
}

/// Creates a pair of sockets with a filter attached to the second.
fn attach(insns: &[Insn]) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the array has space for two descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just created them, and they have no other owner.
    let pair = unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) };
    let raw = |i: &Insn| libc::sock_filter { code: i.code, jt: i.jt, jf: i.jf, k: i.k };
    let mut insns: Vec<libc::sock_filter> = insns.iter().map(raw).collect();
    let len = u16::try_from(insns.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let filter = libc::sock_fprog { len, filter: insns.as_mut_ptr() };
    // SAFETY: `filter` has the length of the instructions; the kernel copies them.
    let failed = unsafe {
        libc::setsockopt(
            pair.1.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(pair)
}

impl Socket {
    /// The number of bytes that the kernel keeps of a completely captured packet. `None` if it
    /// cannot be sent.
    pub fn verdict(&self, data: &[u8]) -> Option<u32> {
        let pair = self.pair.lock().ok()?;
        // SAFETY: the bytes live for the duration of the call.
        let sent = unsafe {
            libc::send(pair.0.as_raw_fd(), data.as_ptr().cast(), data.len(), libc::MSG_NOSIGNAL)
        };
        if usize::try_from(sent) != Ok(data.len()) {
            return None;
        }
        let got = receive(pair.1.as_raw_fd());
        Some(u32::try_from(got).unwrap_or(0))
    }
}

/// The length of the next datagram, whose contents are dropped; negative if none arrived.
fn receive(fd: RawFd) -> isize {
    let mut first = 0_u8;
    // SAFETY: the buffer has room for the one byte requested; the flag makes the kernel return the
    // full length.
    unsafe { libc::recv(fd, (&raw mut first).cast(), 1, libc::MSG_TRUNC) }
}

impl Engine for Socket {
    fn run(&self, packet: View<'_>) -> u32 {
        self.verdict(packet.data()).unwrap_or(0)
    }

    fn covers(&self, packet: View<'_>) -> bool {
        let len = packet.data().len();
        // An empty datagram cannot be distinguished from a rejected one.
        len > 0 && len <= MAX_DATAGRAM && len == packet.wire_len() as usize
    }
}

/// The beginning of `union bpf_attr` for `BPF_PROG_LOAD`.
#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    insns: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    version: u32,
    flags: u32,
}

/// The beginning of `union bpf_attr` for `BPF_PROG_TEST_RUN`.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    fd: u32,
    verdict: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
}

const PROG_LOAD: libc::c_long = 5;
const PROG_TEST_RUN: libc::c_long = 10;
const SCHED_CLS: u32 = 3;

fn bpf<T>(command: libc::c_long, attributes: &mut T) -> libc::c_long {
    // SAFETY: the kernel reads and writes `size_of::<T>()` bytes of the attributes, and the memory
    // they point to, which callers keep valid.
    unsafe {
        libc::syscall(libc::SYS_bpf, command, (attributes as *mut T).cast::<u8>(), size_of::<T>())
    }
}

/// A program loaded in the kernel for timing.
#[derive(Debug)]
pub struct Timed {
    program: OwnedFd,
}

impl Timed {
    /// Loads a program.
    ///
    /// # Errors
    /// If the kernel refuses it, or does not permit this user to load programs.
    pub fn new(program: &Program) -> Result<Self, Unavailable> {
        let code = ebpf::translate(program).map_err(|e| Unavailable::new(e.to_string()))?;
        Self::load(&code)
    }

    fn load(code: &[Ebpf]) -> Result<Self, Unavailable> {
        let mut load = Load {
            kind: SCHED_CLS,
            insns: code.len() as u32,
            code: code.as_ptr() as u64,
            license: c"GPL".as_ptr() as u64,
            ..Load::default()
        };
        let fd = bpf(PROG_LOAD, &mut load);
        let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0);
        let fd = fd.ok_or_else(|| unavailable("the kernel rejects the program"))?;
        // SAFETY: the kernel just created it, and it has no other owner.
        Ok(Self { program: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Runs `repeat` times over a packet of at least an Ethernet header: returns the verdict and
    /// the nanoseconds of a run, including the kernel's overhead.
    ///
    /// # Errors
    /// If the kernel does not run it.
    pub fn run(&self, packet: &[u8], repeat: u32) -> Result<(u32, u32), Unavailable> {
        let mut test = TestRun {
            fd: self.program.as_raw_fd() as u32,
            size_in: packet.len() as u32,
            data_in: packet.as_ptr() as u64,
            repeat,
            ..TestRun::default()
        };
        if bpf(PROG_TEST_RUN, &mut test) != 0 {
            return Err(unavailable("the kernel cannot run the program"));
        }
        Ok((test.verdict, test.duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_filter::proof::{Expressions, Random};
    use gannet_filter::{NoNames, Options, compile, opcode};

    /// Programs with a random change that may make them invalid. `GANNET_CHECKS` sets their number;
    /// the kernel needs some milliseconds for each.
    #[test]
    #[allow(clippy::print_stderr)]
    fn the_checker_is_as_strict_as_the_kernel() {
        let ret = [Insn::new(opcode::RET, 1)];
        if let Err(error) = attach(&ret) {
            eprintln!("skipped: {error}");
            return;
        }
        let mut random = Random::new(3);
        let mut expressions = Expressions::new(3);
        let (mut taken, mut refused) = (0, 0);
        let rounds = std::env::var("GANNET_CHECKS").ok().and_then(|n| n.parse().ok());
        for round in 0..rounds.unwrap_or(300) {
            let mut insns = match round % 4 {
                // An arbitrary instruction before a return.
                0 => {
                    let n = random.below(6);
                    let any = |r: &mut Random| Insn {
                        code: r.below(256) as u16,
                        jt: r.below(4) as u8,
                        jf: r.below(4) as u8,
                        k: r.below(20) as u32,
                    };
                    (0..n).map(|_| any(&mut random)).chain(ret).collect()
                }
                _ => {
                    let (link, text) = expressions.filter();
                    match compile(&text, link, &Options::default(), &NoNames) {
                        Ok(c) if c.program().insns().len() < 500 => c.program().insns().to_vec(),
                        _ => continue,
                    }
                }
            };
            for _ in 0..random.below(3) {
                let at = random.below(insns.len());
                let insn = &mut insns[at];
                match random.below(5) {
                    0 => insn.code ^= 1 << random.below(9),
                    1 => insn.k = random.number(),
                    2 => insn.k = (0xffff_f000_u32).wrapping_add(random.below(80) as u32),
                    3 => insn.jt = random.below(8) as u8,
                    _ => insn.k = random.below(40) as u32,
                }
            }
            let ours =
                Program::new(insns.clone()).map_err(Into::into).and_then(|p| foreign::check(&p));
            let kernel = attach(&insns).map(|_| ());
            match &kernel {
                Ok(()) => taken += 1,
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
                    refused += 1;
                }
            }
            assert_eq!(ours.is_ok(), kernel.is_ok(), "{ours:?} {insns:?}");
        }
        assert!(taken > 50 && refused > 50, "{taken} taken, {refused} refused");
    }

    #[test]
    #[allow(clippy::print_stderr)]
    fn the_kernel_agrees() {
        let compiled = compile("tcp dst port 80", 1, &Options::default(), &NoNames).unwrap();
        let mut frame = vec![0; 60];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[23] = 6;
        frame[37] = 80;
        let other = {
            let mut f = frame.clone();
            f[37] = 81;
            f
        };
        match Socket::new(compiled.program()) {
            Ok(socket) => {
                assert_eq!(socket.verdict(&frame), Some(60));
                assert_eq!(socket.verdict(&other), Some(0));
            }
            Err(error) => eprintln!("skipped: {error}"),
        }
        match Timed::new(compiled.program()) {
            Ok(timed) => {
                assert_eq!(timed.run(&frame, 1).unwrap().0, 262_144);
                assert_eq!(timed.run(&other, 1).unwrap().0, 0);
            }
            Err(error) => eprintln!("skipped: {error}"),
        }
    }
}
