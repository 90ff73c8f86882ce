//! Records of events and of call arguments.

use gannet_event::Port;

gannet_event::record! {
    /// A program and its port.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Mapping = "pm_mapping" {
        /// The program.
        program: u32 = "program",
        /// Its version.
        version: u32 = "version",
        /// Its port.
        p: Port = "p",
    }
}

gannet_event::record! {
    /// The program whose port is requested.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PortRequest = "pm_port_request" {
        /// The program.
        program: u32 = "program",
        /// Its version.
        version: u32 = "version",
        /// Whether the port over TCP is requested.
        is_tcp: bool = "is_tcp",
    }
}

gannet_event::record! {
    /// A call for another program.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CallIt = "pm_callit_request" {
        /// The program.
        program: u32 = "program",
        /// Its version.
        version: u32 = "version",
        /// The procedure.
        proc: u32 = "proc",
        /// Number of bytes of the arguments.
        arg_size: u64 = "arg_size",
    }
}
