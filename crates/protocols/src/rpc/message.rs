//! The headers of calls and replies (RFC 5531 section 9).

use std::hash::BuildHasher;

use gannet_base::Time;
use gannet_dict::KeyedHash;

use super::xdr::Xdr;

/// Outcome of a call according to its reply, or [`Timeout`](Self::Timeout) without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The call was executed.
    Success,
    /// The server does not have the program.
    ProgUnavail,
    /// The server does not have this version of the program.
    ProgMismatch,
    /// The program does not have the procedure.
    ProcUnavail,
    /// The server cannot decode the arguments.
    GarbageArgs,
    /// The server failed.
    SystemErr,
    /// There was no reply.
    Timeout,
    /// The server does not have this version of RPC.
    VersMismatch,
    /// The server does not accept the credential.
    AuthError,
    /// Any other outcome.
    UnknownError,
}

gannet_event::enumeration!(Status = "rpc_status", |status| match status {
    Self::Success => "RPC_SUCCESS",
    Self::ProgUnavail => "RPC_PROG_UNAVAIL",
    Self::ProgMismatch => "RPC_PROG_MISMATCH",
    Self::ProcUnavail => "RPC_PROC_UNAVAIL",
    Self::GarbageArgs => "RPC_GARBAGE_ARGS",
    Self::SystemErr => "RPC_SYSTEM_ERR",
    Self::Timeout => "RPC_TIMEOUT",
    Self::VersMismatch => "RPC_VERS_MISMATCH",
    Self::AuthError => "RPC_AUTH_ERROR",
    Self::UnknownError => "RPC_UNKNOWN_ERROR",
});

/// Message type of a call.
pub(super) const CALL: u32 = 0;
/// Message type of a reply.
pub(super) const REPLY: u32 = 1;

/// Flavor of a UNIX credential (RFC 5531 appendix A).
const AUTH_UNIX: u32 = 1;
/// Maximum length of the machine name in it, in bytes.
const MAX_MACHINE: u32 = 255;
/// Maximum number of groups in it that are parsed.
const MAX_GROUPS: u32 = 64;

/// The header of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Transaction identifier.
    pub xid: u32,
    /// Program.
    pub prog: u32,
    /// Version of the program.
    pub vers: u32,
    /// Procedure.
    pub proc: u32,
    /// The caller's credential.
    pub cred: Credential,
    /// Time of its first byte.
    pub start: Time,
    /// Time of its last byte.
    pub last: Time,
    /// Number of bytes after transaction identifier and message type.
    pub len: usize,
    /// Number of those bytes that precede the arguments.
    pub header: i64,
    digest: u64,
}

/// The caller, as far as the credential contains it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credential {
    /// An arbitrary identifier that the caller chose.
    pub stamp: u32,
    /// Name of the caller's machine.
    pub machine: Vec<u8>,
    /// The caller's user ID.
    pub uid: u32,
    /// The caller's group ID.
    pub gid: u32,
    /// Further group IDs of the caller.
    pub groups: Vec<u32>,
}

impl Credential {
    /// The groups as Zeek reports them: values from 2^31 on are sign-extended to 64 bits.
    pub fn signed_groups(&self) -> Vec<u64> {
        self.groups.iter().map(|group| i64::from(*group as i32) as u64).collect()
    }
}

impl Call {
    /// Parses the header of a call after transaction identifier and message type, and leaves the
    /// arguments; `None` if it is malformed.
    pub fn parse(xid: u32, (start, last): (Time, Time), x: &mut Xdr<'_>) -> Option<Self> {
        let (len, digest) = (x.rest().len(), digest(x.rest()));
        x.u32();
        let [prog, vers, proc, flavor] = std::array::from_fn(|_| x.u32());
        let cred = x.string();
        x.skip_auth();
        if !x.is_whole() {
            return None;
        }
        let cred = match flavor {
            AUTH_UNIX => Credential::parse(cred?)?,
            _ => Credential::default(),
        };
        let header = len as i64 - x.left();
        Some(Self { xid, prog, vers, proc, cred, start, last, len, header, digest })
    }

    /// Whether `bytes` are those of this call.
    pub fn has_bytes(&self, bytes: &[u8]) -> bool {
        self.len == bytes.len() && self.digest == digest(bytes)
    }
}

/// A digest that is compared instead of the bytes of a call.
fn digest(bytes: &[u8]) -> u64 {
    KeyedHash.hash_one(bytes)
}

impl Credential {
    fn parse(cred: &[u8]) -> Option<Self> {
        let mut x = Xdr::new(cred);
        let stamp = x.u32();
        let machine = x.opaque(MAX_MACHINE)?.to_vec();
        // As in Zeek, missing values are 0.
        let (uid, gid, count) = (x.u32(), x.u32(), x.u32());
        let groups = (0..count).map(|_| x.u32());
        (count <= MAX_GROUPS).then(|| Self { stamp, machine, uid, gid, groups: groups.collect() })
    }
}

/// The header of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Outcome of the call.
    pub status: Status,
    /// Its status is unknown.
    pub is_unknown: bool,
}

impl Reply {
    /// Parses the header of a reply after transaction identifier and message type; `None` if it is
    /// truncated.
    pub fn parse(x: &mut Xdr<'_>) -> Option<Self> {
        let mut is_unknown = false;
        let status = match x.u32() {
            // Accepted. Of the supported versions in the reply, only the length matters.
            0 if x.is_whole() => {
                x.skip_auth();
                match x.u32() {
                    0 => Status::Success,
                    1 => Status::ProgUnavail,
                    2 => {
                        x.u64();
                        Status::ProgMismatch
                    }
                    3 => Status::ProcUnavail,
                    4 => Status::GarbageArgs,
                    5 => Status::SystemErr,
                    _ => Status::UnknownError,
                }
            }
            // Denied.
            1 => match x.u32() {
                0 if x.is_whole() => {
                    x.u64();
                    Status::VersMismatch
                }
                1 => {
                    x.u32();
                    Status::AuthError
                }
                _ => {
                    is_unknown = true;
                    Status::UnknownError
                }
            },
            _ => {
                is_unknown = true;
                Status::UnknownError
            }
        };
        x.is_whole().then_some(Self { status, is_unknown })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The bytes of a call after transaction identifier and message type.
    pub(in super::super) fn call(prog: u32, vers: u32, proc: u32, args: &[u8]) -> Vec<u8> {
        let mut out = [2, prog, vers, proc].map(u32::to_be_bytes).concat();
        out.extend_from_slice(
            b"\0\0\0\x01\0\0\0\x20\0\0\0\x05\0\0\0\x03box\0\0\0\x03\xe8\0\0\0\x64",
        );
        out.extend_from_slice(b"\0\0\0\x02\0\0\0\x04\0\0\0\x18\0\0\0\0\0\0\0\0");
        out.extend_from_slice(args);
        out
    }

    fn parse(bytes: &[u8]) -> Option<(Call, i64)> {
        let mut x = Xdr::new(bytes);
        let call = Call::parse(7, (Time::from_secs(1), Time::from_secs(2)), &mut x)?;
        Some((call, x.left()))
    }

    #[test]
    fn calls_name_program_and_caller() {
        let bytes = call(100_003, 3, 1, b"args");
        let (parsed, left) = parse(&bytes).unwrap();
        assert_eq!((parsed.xid, parsed.prog, parsed.vers, parsed.proc), (7, 100_003, 3, 1));
        assert_eq!((parsed.len, parsed.header, left), (bytes.len(), bytes.len() as i64 - 4, 4));
        let groups = vec![4, 24];
        let cred = Credential { stamp: 5, machine: b"box".to_vec(), uid: 1000, gid: 100, groups };
        assert_eq!(parsed.cred, cred);
        let cred = Credential { groups: vec![24, 0x8000_0001], ..cred };
        assert_eq!(cred.signed_groups(), [24, 0xffff_ffff_8000_0001]);
        assert!(parsed.has_bytes(&bytes) && !parsed.has_bytes(&call(100_003, 3, 1, b"argz")));
    }

    #[test]
    fn headers_that_are_cut_or_too_long() {
        let whole = call(100_003, 3, 1, b"");
        for n in 0..whole.len() {
            assert!(parse(&whole[..n]).is_none(), "{n}");
        }
        // A verifier of more than 400 bytes, and 65 groups.
        let mut long = whole.clone();
        let at = long.len() - 4;
        long[at..].copy_from_slice(&401u32.to_be_bytes());
        long.resize(long.len() + 404, 0);
        assert!(parse(&long).is_none());
        let mut many = whole;
        many[47] = 65;
        assert!(parse(&many).is_none());
    }

    #[test]
    fn replies_say_how_it_went() {
        let reply = |bytes: &[u8]| Reply::parse(&mut Xdr::new(bytes)).map(|r| r.status);
        assert_eq!(reply(b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), Some(Status::Success));
        assert_eq!(reply(b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04"), Some(Status::GarbageArgs));
        let mismatch = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x02\0\0\0\x03";
        assert_eq!(reply(mismatch), Some(Status::ProgMismatch));
        assert_eq!(reply(&mismatch[..20]), None);
        assert_eq!(reply(b"\0\0\0\x01\0\0\0\x01\0\0\0\x05"), Some(Status::AuthError));
        assert_eq!(reply(b"\0\0\0\x01\0\0\0\x01"), None);
        assert_eq!(reply(b"\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x02"), Some(Status::VersMismatch));
        let strange = Reply::parse(&mut Xdr::new(b"\0\0\0\x02"));
        assert_eq!(strange, Some(Reply { status: Status::UnknownError, is_unknown: true }));
        assert_eq!(reply(b""), None);
    }
}
