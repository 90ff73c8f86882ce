//! Packets in and out: pcap and pcapng, mapped, streamed and compressed.
