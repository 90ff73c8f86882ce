//! Events of the analysis itself: its beginning and its end.

pub mod events {
    //! Events of the analysis itself.

    use gannet_base::Time;

    gannet_event::events! {
        crate::events::module::LIFECYCLE;

        /// The analysis begins; there is no packet yet.
        pub struct ZeekInit = "zeek_init" {}

        /// Network time begins with the first packet.
        pub struct NetworkTimeInit = "network_time_init", opt_in {}

        /// The handlers of all events so far have run.
        pub struct EventQueueFlushPoint = "event_queue_flush_point", opt_in {}

        /// There are no more packets. Connections are still open.
        pub struct NetDone = "net_done" {
            /// Time of the last packet.
            t: Time = "t",
        }

        /// A capture was read to its end.
        pub struct PcapFileDone<'a> = "Pcap::file_done", opt_in {
            /// Its path.
            path: &'a str = "path",
        }

        /// The analysis ends: all connections and files are closed.
        pub struct ZeekDone = "zeek_done" {}
    }
}
