//! Link types, as <https://www.tcpdump.org/linktypes.html> numbers them.

use std::fmt;

/// The link type of a packet: a LINKTYPE_ number of the tcpdump registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

/// Declares the constants, and the table for [`LinkType::name`].
macro_rules! link_types {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl LinkType {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The registry's name without its prefix, or `UNKNOWN`.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($value => stringify!($name),)*
                    _ => "UNKNOWN",
                }
            }

            /// A description, or `unknown`.
            pub fn description(self) -> &'static str {
                match self.0 {
                    $($value => $text,)*
                    _ => "unknown",
                }
            }
        }
    };
}

link_types! {
    /// BSD loopback: four bytes of address family in the capturing host's byte order.
    NULL = 0, "BSD loopback";
    /// IEEE 802.3 Ethernet, without preamble and most often without checksum.
    ETHERNET = 1, "Ethernet";
    /// AX.25 packet.
    AX25 = 3, "AX.25";
    /// IEEE 802.5 Token Ring.
    IEEE802_5 = 6, "Token Ring";
    /// ARCNET with BSD headers.
    ARCNET_BSD = 7, "ARCNET";
    /// SLIP with a BSD header.
    SLIP = 8, "SLIP";
    /// PPP, with or without HDLC-like framing.
    PPP = 9, "PPP";
    /// Fiber Distributed Data Interface.
    FDDI = 10, "FDDI";
    /// Raw IP by the DLT_ number of most systems, which some writers use in files.
    DLT_RAW_12 = 12, "Raw IP";
    /// Raw IP by the DLT_ number of OpenBSD.
    DLT_RAW_14 = 14, "Raw IP";
    /// PPP in HDLC-like framing (RFC 1662).
    PPP_HDLC = 50, "PPP with HDLC framing";
    /// PPP over Ethernet session packets (RFC 2516).
    PPP_ETHER = 51, "PPP over Ethernet";
    /// Symantec Enterprise Firewall.
    SYMANTEC_FIREWALL = 99, "Symantec firewall";
    /// LLC/SNAP-encapsulated ATM (RFC 2684).
    ATM_RFC1483 = 100, "RFC 1483 ATM";
    /// IPv4 or IPv6 without a link layer; the version field distinguishes them.
    RAW = 101, "Raw IP";
    /// Cisco HDLC.
    C_HDLC = 104, "Cisco HDLC";
    /// IEEE 802.11 frames.
    IEEE802_11 = 105, "IEEE 802.11";
    /// Frame Relay.
    FRELAY = 107, "Frame Relay";
    /// OpenBSD loopback: four bytes of address family in network order.
    LOOP = 108, "OpenBSD loopback";
    /// Linux cooked capture v1.
    LINUX_SLL = 113, "Linux cooked v1";
    /// Apple LocalTalk.
    LTALK = 114, "LocalTalk";
    /// OpenBSD packet filter log.
    PFLOG = 117, "OpenBSD pflog";
    /// Prism monitor mode header before IEEE 802.11.
    IEEE802_11_PRISM = 119, "IEEE 802.11 with Prism header";
    /// IP over Fibre Channel (RFC 2625).
    IP_OVER_FC = 122, "IP over Fibre Channel";
    /// SunATM device.
    SUNATM = 123, "SunATM";
    /// Radiotap header before IEEE 802.11.
    IEEE802_11_RADIOTAP = 127, "IEEE 802.11 with radiotap header";
    /// Apple IP over IEEE 1394.
    APPLE_IP_OVER_IEEE1394 = 138, "Apple IP over IEEE 1394";
    /// SS7 MTP2 with pseudo-header.
    MTP2_WITH_PHDR = 139, "SS7 MTP2 with pseudo-header";
    /// SS7 MTP2.
    MTP2 = 140, "SS7 MTP2";
    /// SS7 MTP3.
    MTP3 = 141, "SS7 MTP3";
    /// SS7 SCCP.
    SCCP = 142, "SS7 SCCP";
    /// DOCSIS MAC frames.
    DOCSIS = 143, "DOCSIS";
    /// Linux IrDA.
    LINUX_IRDA = 144, "Linux IrDA";
    /// First of the sixteen values for private use.
    USER0 = 147, "private use 0";
    /// AVS monitor mode header before IEEE 802.11.
    IEEE802_11_AVS = 163, "IEEE 802.11 with AVS header";
    /// BACnet MS/TP.
    BACNET_MS_TP = 165, "BACnet MS/TP";
    /// PPP with a direction byte, from pppd.
    PPP_PPPD = 166, "PPP with direction";
    /// GPRS LLC.
    GPRS_LLC = 169, "GPRS LLC";
    /// Linux LAPD.
    LINUX_LAPD = 177, "Linux LAPD";
    /// Bluetooth HCI UART transport.
    BLUETOOTH_HCI_H4 = 187, "Bluetooth HCI H4";
    /// USB with a Linux header of 48 bytes.
    USB_LINUX = 189, "USB with Linux header";
    /// Per-Packet Information header.
    PPI = 192, "PPI";
    /// IEEE 802.15.4 with checksum.
    IEEE802_15_4_WITHFCS = 195, "IEEE 802.15.4 with FCS";
    /// Endace ERF records.
    ERF = 197, "Endace ERF";
    /// Bluetooth HCI UART transport with a direction word.
    BLUETOOTH_HCI_H4_WITH_PHDR = 201, "Bluetooth HCI H4 with direction";
    /// AX.25 with a KISS header.
    AX25_KISS = 202, "AX.25 with KISS header";
    /// LAPD frames.
    LAPD = 203, "LAPD";
    /// PPP with a direction byte.
    PPP_WITH_DIR = 204, "PPP with direction";
    /// Cisco HDLC with a direction byte.
    C_HDLC_WITH_DIR = 205, "Cisco HDLC with direction";
    /// Frame Relay with a direction byte.
    FRELAY_WITH_DIR = 206, "Frame Relay with direction";
    /// IPMB with a Linux header.
    IPMB_LINUX = 209, "IPMB with Linux header";
    /// IEEE 802.15.4 with address bytes left out.
    IEEE802_15_4_NONASK_PHY = 215, "IEEE 802.15.4 non-ASK PHY";
    /// USB with a Linux header of 64 bytes.
    USB_LINUX_MMAPPED = 220, "USB with padded Linux header";
    /// Fibre Channel FC-2.
    FC_2 = 224, "Fibre Channel FC-2";
    /// Solaris IP network.
    IPNET = 226, "Solaris ipnet";
    /// Controller Area Network with a pseudo-header.
    CAN_SOCKETCAN = 227, "CAN";
    /// IPv4 without a link layer.
    IPV4 = 228, "Raw IPv4";
    /// IPv6 without a link layer.
    IPV6 = 229, "Raw IPv6";
    /// IEEE 802.15.4 without checksum.
    IEEE802_15_4_NOFCS = 230, "IEEE 802.15.4 without FCS";
    /// D-Bus messages.
    DBUS = 231, "D-Bus";
    /// DVB-CI.
    DVB_CI = 235, "DVB-CI";
    /// Linux netfilter log messages.
    NFLOG = 239, "Linux netfilter log";
    /// Ethernet with Hilscher's netANALYZER header.
    NETANALYZER = 240, "netANALYZER";
    /// IP over InfiniBand.
    IPOIB = 242, "IP over InfiniBand";
    /// MPEG-2 transport stream.
    MPEG_2_TS = 243, "MPEG-2 transport stream";
    /// NFC LLCP.
    NFC_LLCP = 245, "NFC LLCP";
    /// SCTP packets without a lower layer.
    SCTP = 248, "SCTP";
    /// USBPcap.
    USBPCAP = 249, "USBPcap";
    /// Bluetooth Low Energy air interface.
    BLUETOOTH_LE_LL = 251, "Bluetooth LE link layer";
    /// Upper-layer PDUs exported by Wireshark.
    WIRESHARK_UPPER_PDU = 252, "Wireshark upper PDU";
    /// Linux netlink messages.
    NETLINK = 253, "Linux netlink";
    /// Bluetooth Linux monitor.
    BLUETOOTH_LINUX_MONITOR = 254, "Bluetooth Linux monitor";
    /// Bluetooth Low Energy with a pseudo-header.
    BLUETOOTH_LE_LL_WITH_PHDR = 256, "Bluetooth LE with pseudo-header";
    /// Apple's packet tap header.
    PKTAP = 258, "Apple pktap";
    /// Ethernet passive optical network.
    EPON = 259, "EPON";
    /// ITU-T G.7041 generic framing.
    GFP_T = 261, "GFP-T";
    /// Z-Wave.
    ZWAVE_R1_R2 = 262, "Z-Wave R1/R2";
    /// Linux vsock with a header.
    VSOCK = 271, "Linux vsock";
    /// nRF Sniffer for Bluetooth LE.
    NORDIC_BLE = 272, "nRF Sniffer BLE";
    /// Linux cooked capture v2.
    LINUX_SLL2 = 276, "Linux cooked v2";
    /// Ethernet with an mPacket header.
    ETHERNET_MPACKET = 274, "Ethernet mPacket";
    /// OpenVizsla USB.
    OPENVIZSLA = 278, "OpenVizsla USB";
    /// IEEE 802.15.4 with TAP metadata.
    IEEE802_15_4_TAP = 283, "IEEE 802.15.4 TAP";
    /// USB 2.0 as seen on the bus.
    USB_2_0 = 288, "USB 2.0";
}

impl fmt::Display for LinkType {
    /// The description, with the number if it is unknown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.description() {
            "unknown" => write!(f, "link type {}", self.0),
            text => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_registry() {
        assert_eq!(LinkType::ETHERNET, LinkType(1));
        assert_eq!(LinkType::LINUX_SLL.name(), "LINUX_SLL");
        assert_eq!(LinkType(101).to_string(), "Raw IP");
        assert_eq!(LinkType(60000).to_string(), "link type 60000");
    }
}
