use std::io;

/// Why packets cannot be captured or sent.
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
    /// Frames of this kind of interface cannot be read.
    #[error("{name}: frames of this kind of interface cannot be read (hardware type {kind})")]
    LinkType {
        /// Its name.
        name: String,
        /// Its ARPHRD number.
        kind: u16,
    },
    /// A ring of this size cannot be made.
    #[error("{0}")]
    Ring(String),
    /// A call to the system failed.
    #[error("{name}: {what}: {source}")]
    System {
        /// The interface.
        name: String,
        /// What was tried.
        what: &'static str,
        /// What the system says.
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
