use std::io;

/// Errors of capturing and sending.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No interface has this name.
    #[error("no interface is named '{0}'")]
    NoInterface(String),
    /// The process may not open packet sockets.
    #[error(
        "{0}: capturing needs the capability CAP_NET_RAW: run as root, or setcap cap_net_raw=ep"
    )]
    NotPermitted(String),
    /// The link type of the interface is not supported.
    #[error("{name}: interfaces of this type are not supported (ARP hardware type {kind})")]
    LinkType {
        /// The interface.
        name: String,
        /// Its hardware type (`ARPHRD_*`).
        kind: u16,
    },
    /// The size of a ring is not supported.
    #[error("{0}")]
    Ring(String),
    /// A system call failed.
    #[error("{name}: {what}: {source}")]
    System {
        /// The interface.
        name: String,
        /// The operation.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn system(name: &str, what: &'static str, source: io::Error) -> Self {
        if matches!(source.kind(), io::ErrorKind::PermissionDenied) {
            return Self::NotPermitted(name.to_owned());
        }
        Self::System { name: name.to_owned(), what, source }
    }
}
