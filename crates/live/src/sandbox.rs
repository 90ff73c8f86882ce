//! Restricts a process after its rings are open: privileges, file system access, system calls.
//!
//! [`Sandbox::enter`] restricts the calling thread and all threads that it starts later; threads that run already are
//! not restricted. The steps are, in this order: no new privileges, another user, no capabilities, Landlock for files
//! and TCP, seccomp for system calls.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use landlock::ABI;
use landlock::Access as _;
use landlock::AccessFs;
use landlock::AccessNet;
use landlock::Ruleset;
use landlock::RulesetAttr as _;
use landlock::RulesetCreatedAttr as _;
use landlock::RulesetStatus;
use landlock::path_beneath_rules;
use nix::unistd::Gid;
use nix::unistd::Uid;
use nix::unistd::User;
use seccompiler::BpfProgram;
use seccompiler::SeccompAction;
use seccompiler::SeccompFilter;

use crate::sys;

/// Enforcement of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No sandbox.
    Off,
    /// Enforce what the system supports.
    BestEffort,
    /// Enforce everything, or return an error.
    Required,
}

/// What a process is still allowed to do.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    /// Folders in which it may create, write, rename and remove files.
    pub write: Vec<PathBuf>,
    /// Files and folders that it may read.
    pub read: Vec<PathBuf>,
    /// Whether it may open connections.
    pub connects: bool,
    /// Whether it executes programs, which excludes Landlock and seccomp.
    pub executes: bool,
    /// The user to switch to: a name, or numbers as `uid:gid`.
    pub user: Option<String>,
}

/// Errors of entering a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The user does not exist.
    #[error("no user is named '{0}'")]
    NoUser(String),
    /// Switching to another user failed.
    #[error("becoming user '{0}': {1}")]
    User(String, io::Error),
    /// A required restriction cannot be enforced.
    #[error("--sandbox required: {0}")]
    Missing(String),
}

/// System files that are read at any time: counters of interfaces, the state of the process, time zones.
const SYSTEM_PATHS: [&str; 6] =
    ["/sys", "/proc", "/etc/localtime", "/usr/share/zoneinfo", "/dev/null", "/dev/urandom"];

impl Sandbox {
    /// Enters the sandbox. Returns descriptions of restrictions that are not enforced.
    ///
    /// # Errors
    /// If switching to the user fails, or a required restriction cannot be enforced.
    pub fn enter(&self, mode: Mode) -> Result<Vec<String>, Refused> {
        let mut missing = Vec::new();
        if let Err(error) = sys::no_new_privileges() {
            missing.push(format!("no_new_privs ({error})"));
        }
        if let Some(name) = &self.user {
            become_user(name)?;
        }
        if mode == Mode::Off {
            return Ok(vec!["everything (--sandbox off)".into()]);
        }
        if let Err(error) = sys::drop_capabilities() {
            missing.push(format!("capabilities ({error})"));
        }
        if self.executes {
            missing.push("Landlock and seccomp (--postprocessor runs programs)".into());
        } else {
            missing.extend(self.landlock().err());
            if let Err(error) = seccomp(self.connects) {
                missing.push(format!("seccomp ({error})"));
            }
        }
        if mode == Mode::Required && !missing.is_empty() {
            return Err(Refused::Missing(format!("not enforced: {}", missing.join(", "))));
        }
        Ok(missing)
    }

    fn landlock(&self) -> Result<(), String> {
        let abi = ABI::V5;
        let error_of = |error: landlock::RulesetError| format!("Landlock ({error})");
        let ruleset =
            Ruleset::default().handle_access(AccessFs::from_all(abi)).map_err(error_of)?;
        let ruleset = match self.connects {
            true => ruleset.handle_access(AccessNet::BindTcp),
            false => ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp),
        };
        let ruleset = ruleset.map_err(error_of)?.create().map_err(error_of)?;
        let read = AccessFs::from_read(abi) & !AccessFs::Execute;
        let write = AccessFs::from_all(abi) & !AccessFs::Execute;
        let system = SYSTEM_PATHS.iter().map(PathBuf::from);
        let ruleset = ruleset
            .add_rules(path_beneath_rules(system.chain(self.read.iter().cloned()), read))
            .and_then(|set| set.add_rules(path_beneath_rules(&self.write, write)))
            .map_err(error_of)?;
        match ruleset.restrict_self().map_err(error_of)?.ruleset {
            RulesetStatus::FullyEnforced => Ok(()),
            RulesetStatus::PartiallyEnforced => {
                Err("parts of Landlock (the kernel is too old)".into())
            }
            RulesetStatus::NotEnforced => Err("Landlock (the kernel does not support it)".into()),
        }
    }
}

/// Switches to another user, with only the group of that user.
fn become_user(name: &str) -> Result<(), Refused> {
    let (uid, gid) = user_ids(name)?;
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    let error_of = |errno: nix::Error| Refused::User(name.to_owned(), errno.into());
    nix::unistd::setgroups(&[gid]).map_err(error_of)?;
    nix::unistd::setresgid(gid, gid, gid).map_err(error_of)?;
    nix::unistd::setresuid(uid, uid, uid).map_err(error_of)
}

/// User and group ids of a `--user` argument, for folders that are to belong to it.
///
/// # Errors
/// If the user does not exist.
pub fn user_ids(name: &str) -> Result<(u32, u32), Refused> {
    let missing = || Refused::NoUser(name.to_owned());
    if let Some((uid, gid)) = name.split_once(':') {
        return Ok((uid.parse().map_err(|_| missing())?, gid.parse().map_err(|_| missing())?));
    }
    let user = User::from_name(name).ok().flatten().ok_or_else(missing)?;
    Ok((user.uid.as_raw(), user.gid.as_raw()))
}

/// System calls that kill the process, because it never makes them.
const KILLED_CALLS: [i64; 12] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_bpf,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_setns,
    libc::SYS_unshare,
];

/// System calls that kill the process unless it may open connections.
const CONNECT_CALLS: [i64; 2] = [libc::SYS_socket, libc::SYS_connect];

/// System calls that are allowed; others fail.
const ALLOWED_CALLS: &[i64] = &[
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_close,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_geteuid,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_ioctl,
    libc::SYS_kill,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mkdirat,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_prctl,
    libc::SYS_pread64,
    libc::SYS_prlimit64,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendfile,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_socketpair,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_tgkill,
    libc::SYS_uname,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Allowed system calls that exist only on this architecture.
#[cfg(target_arch = "x86_64")]
const ALLOWED_ON_X86_64: &[i64] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_epoll_wait,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_stat,
    libc::SYS_time,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_ON_X86_64: &[i64] = &[];

/// Allows the system calls that a sensor makes; some others kill the process, the rest fails.
fn seccomp(connects: bool) -> Result<(), Box<dyn std::error::Error>> {
    let arch = std::env::consts::ARCH.try_into()?;
    let rules = |calls: &mut dyn Iterator<Item = i64>| -> BTreeMap<i64, Vec<_>> {
        calls.map(|call| (call, Vec::new())).collect()
    };
    let connecting = || CONNECT_CALLS.iter().copied();
    let mut allowed = ALLOWED_CALLS
        .iter()
        .chain(ALLOWED_ON_X86_64)
        .copied()
        .chain(connecting().filter(|_| connects));
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let allow = SeccompFilter::new(rules(&mut allowed), refused, SeccompAction::Allow, arch)?;
    let mut killed = KILLED_CALLS.iter().copied().chain(connecting().filter(|_| !connects));
    let kill = SeccompFilter::new(
        rules(&mut killed),
        SeccompAction::Allow,
        SeccompAction::KillProcess,
        arch,
    )?;
    // The kernel applies the strictest result of several filters. The second filter is attached with prctl(2), which
    // the first one must allow.
    let programs: [BpfProgram; 2] = [kill.try_into()?, allow.try_into()?];
    for program in &programs {
        seccompiler::apply_filter(program)?;
    }
    Ok(())
}
