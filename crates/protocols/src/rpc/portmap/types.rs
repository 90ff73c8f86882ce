//! Records of events and of the arguments of calls.

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
    /// The program whose port is asked for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PortRequest = "pm_port_request" {
        /// The program.
        program: u32 = "program",
        /// Its version.
        version: u32 = "version",
        /// Whether over TCP.
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
        /// Bytes of the arguments.
        arg_size: u64 = "arg_size",
    }
}
