//! stats.log: periodic statistics of a live analysis, a row every five minutes.

use gannet_base::Interval;
use gannet_base::Time;

gannet_log::row! {
    /// What the process does while it captures: a row every five minutes and one at the end. Captures in files have none.
    pub struct StatsRow<'a> = "stats" {
        /// Time of the row.
        ts: Time = "ts",
        /// Name of the process.
        peer: &'a str = "peer",
        /// Memory in use, in MiB.
        mem: u64 = "mem",
        /// Packets analyzed since the last row.
        pkts_proc: u64 = "pkts_proc",
        /// Bytes received since the last row.
        bytes_recv: u64 = "bytes_recv",
        /// Packets lost since the last row: at the capture ring, by network cards, in the backlog of the kernel.
        pkts_dropped: Option<u64> = "pkts_dropped",
        /// Packets seen on the link since the last row.
        pkts_link: Option<u64> = "pkts_link",
        /// Time from the capture of the last packet to its analysis.
        pkt_lag: Option<Interval> = "pkt_lag",
        /// Packets since the last row that the filter rejected.
        pkts_filtered: Option<u64> = "pkts_filtered",
        /// Rows written since the last row, of all logs.
        events_proc: u64 = "events_proc",
        /// Rows queued for sinks.
        events_queued: u64 = "events_queued",
        /// TCP connections at the moment.
        active_tcp_conns: u64 = "active_tcp_conns",
        /// UDP connections at the moment.
        active_udp_conns: u64 = "active_udp_conns",
        /// ICMP connections at the moment.
        active_icmp_conns: u64 = "active_icmp_conns",
        /// Connections since the last row: with Zeek those of TCP alone.
        tcp_conns: u64 = "tcp_conns",
        /// With Zeek, UDP connections since the last row; not counted separately.
        udp_conns: Option<u64> = "udp_conns",
        /// With Zeek, ICMP connections since the last row; not counted separately.
        icmp_conns: Option<u64> = "icmp_conns",
        /// With Zeek, timers since the last row; not counted.
        timers: Option<u64> = "timers",
        /// Timers at the moment.
        active_timers: u64 = "active_timers",
        /// With Zeek, files since the last row; not counted.
        files: Option<u64> = "files",
        /// Files in transit at the moment.
        active_files: u64 = "active_files",
        /// With Zeek, its own DNS lookups since the last row; always 0.
        dns_requests: u64 = "dns_requests",
        /// With Zeek, its own DNS lookups at the moment; always 0.
        active_dns_requests: u64 = "active_dns_requests",
        /// Bytes buffered for TCP reassembly.
        reassem_tcp_size: u64 = "reassem_tcp_size",
        /// Bytes buffered for file reassembly; not counted.
        reassem_file_size: Option<u64> = "reassem_file_size",
        /// Bytes of buffered IP fragments.
        reassem_frag_size: u64 = "reassem_frag_size",
        /// Other buffered bytes: always 0.
        reassem_unknown_size: u64 = "reassem_unknown_size",
    }
}
