//! Link types by the numbers and names of `pcap/dlt.h`, which differ in a few places from those in
//! capture files.

pub(crate) const NULL: u16 = 0;
pub(crate) const EN10MB: u16 = 1;
pub(crate) const EN3MB: u16 = 2;
pub(crate) const AX25: u16 = 3;
pub(crate) const PRONET: u16 = 4;
pub(crate) const CHAOS: u16 = 5;
pub(crate) const IEEE802: u16 = 6;
pub(crate) const ARCNET: u16 = 7;
pub(crate) const SLIP: u16 = 8;
pub(crate) const PPP: u16 = 9;
pub(crate) const FDDI: u16 = 10;
pub(crate) const ATM_RFC1483: u16 = 11;
pub(crate) const RAW: u16 = 12;
pub(crate) const SLIP_BSDOS: u16 = 13;
pub(crate) const PPP_BSDOS: u16 = 14;
pub(crate) const PFSYNC: u16 = 18;
pub(crate) const ATM_CLIP: u16 = 19;
pub(crate) const REDBACK_SMARTEDGE: u16 = 32;
pub(crate) const PPP_SERIAL: u16 = 50;
pub(crate) const PPP_ETHER: u16 = 51;
pub(crate) const SYMANTEC_FIREWALL: u16 = 99;
pub(crate) const C_HDLC: u16 = 104;
pub(crate) const IEEE802_11: u16 = 105;
pub(crate) const FRELAY: u16 = 107;
pub(crate) const LOOP: u16 = 108;
pub(crate) const ENC: u16 = 109;
pub(crate) const HDLC: u16 = 112;
pub(crate) const LINUX_SLL: u16 = 113;
pub(crate) const LTALK: u16 = 114;
pub(crate) const PFLOG: u16 = 117;
pub(crate) const PRISM_HEADER: u16 = 119;
pub(crate) const IP_OVER_FC: u16 = 122;
pub(crate) const SUNATM: u16 = 123;
pub(crate) const IEEE802_11_RADIO: u16 = 127;
pub(crate) const ARCNET_LINUX: u16 = 129;
pub(crate) const JUNIPER_MLPPP: u16 = 130;
pub(crate) const JUNIPER_MLFR: u16 = 131;
pub(crate) const JUNIPER_ES: u16 = 132;
pub(crate) const JUNIPER_GGSN: u16 = 133;
pub(crate) const JUNIPER_MFR: u16 = 134;
pub(crate) const JUNIPER_ATM2: u16 = 135;
pub(crate) const JUNIPER_SERVICES: u16 = 136;
pub(crate) const JUNIPER_ATM1: u16 = 137;
pub(crate) const APPLE_IP_OVER_IEEE1394: u16 = 138;
pub(crate) const MTP2_WITH_PHDR: u16 = 139;
pub(crate) const MTP2: u16 = 140;
pub(crate) const IEEE802_11_RADIO_AVS: u16 = 163;
pub(crate) const JUNIPER_MONITOR: u16 = 164;
pub(crate) const BACNET_MS_TP: u16 = 165;
pub(crate) const PPP_PPPD: u16 = 166;
pub(crate) const JUNIPER_PPPOE: u16 = 167;
pub(crate) const JUNIPER_PPPOE_ATM: u16 = 168;
pub(crate) const JUNIPER_ETHER: u16 = 178;
pub(crate) const JUNIPER_PPP: u16 = 179;
pub(crate) const JUNIPER_FRELAY: u16 = 180;
pub(crate) const JUNIPER_CHDLC: u16 = 181;
pub(crate) const MFR: u16 = 182;
pub(crate) const JUNIPER_VP: u16 = 183;
pub(crate) const PPI: u16 = 192;
pub(crate) const JUNIPER_ISM: u16 = 194;
pub(crate) const ERF: u16 = 197;
pub(crate) const JUNIPER_ST: u16 = 200;
pub(crate) const IPNET: u16 = 226;
pub(crate) const IPV4: u16 = 228;
pub(crate) const IPV6: u16 = 229;
pub(crate) const JUNIPER_VS: u16 = 232;
pub(crate) const JUNIPER_SRX_E2E: u16 = 233;
pub(crate) const JUNIPER_FIBRECHANNEL: u16 = 234;
pub(crate) const JUNIPER_ATM_CEMIC: u16 = 238;
pub(crate) const NETANALYZER: u16 = 240;
pub(crate) const NETANALYZER_TRANSPARENT: u16 = 241;
pub(crate) const LINUX_SLL2: u16 = 276;
pub(crate) const DSA_TAG_BRCM: u16 = 281;
pub(crate) const DSA_TAG_DSA: u16 = 284;

/// The highest number of a link type.
pub(crate) const HIGHEST: u16 = 304;

/// Numbers, names and descriptions.
#[rustfmt::skip]
const NAMES: &[(u16, &str, &str)] = &[
    (0, "NULL", "BSD loopback"),
    (1, "EN10MB", "Ethernet"),
    (2, "EN3MB", "experimental Ethernet (3Mb/s)"),
    (3, "AX25", "AX.25 layer 2"),
    (4, "PRONET", "Proteon ProNET Token Ring"),
    (5, "CHAOS", "MIT Chaosnet"),
    (6, "IEEE802", "802.5 Token Ring"),
    (7, "ARCNET", "BSD ARCnet"),
    (8, "SLIP", "Serial Line IP"),
    (9, "PPP", "Point-to-Point Protocol"),
    (10, "FDDI", "Fiber Distributed Data Interface"),
    (11, "ATM_RFC1483", "RFC 1483 LLC-encapsulated ATM"),
    (12, "RAW", "Raw IPv4/IPv6"),
    (13, "SLIP_BSDOS", "BSD/OS Serial Line IP"),
    (14, "PPP_BSDOS", "BSD/OS Point-to-Point Protocol"),
    (18, "PFSYNC", "Packet filter state syncing"),
    (19, "ATM_CLIP", "Linux Classical IP over ATM"),
    (32, "REDBACK_SMARTEDGE", "Redback SmartEdge 400/800"),
    (50, "PPP_SERIAL", "Point-to-Point Protocol over serial"),
    (51, "PPP_ETHER", "PPPoE session packets"),
    (99, "SYMANTEC_FIREWALL", "Symantec Firewall"),
    (104, "C_HDLC", "Cisco HDLC"),
    (105, "IEEE802_11", "802.11"),
    (107, "FRELAY", "Frame Relay"),
    (108, "LOOP", "OpenBSD loopback"),
    (109, "ENC", "OpenBSD encapsulated IP"),
    (113, "LINUX_SLL", "Linux cooked v1"),
    (114, "LTALK", "LocalTalk"),
    (117, "PFLOG", "OpenBSD pflog file"),
    (119, "PRISM_HEADER", "802.11 plus Prism header"),
    (122, "IP_OVER_FC", "RFC 2625 IP-over-Fibre Channel"),
    (123, "SUNATM", "Sun raw ATM"),
    (127, "IEEE802_11_RADIO", "802.11 plus radiotap header"),
    (129, "ARCNET_LINUX", "Linux ARCnet"),
    (130, "JUNIPER_MLPPP", "Juniper Multi-Link PPP"),
    (131, "JUNIPER_MLFR", "Juniper Multi-Link Frame Relay"),
    (132, "JUNIPER_ES", "Juniper Encryption Services PIC"),
    (133, "JUNIPER_GGSN", "Juniper GGSN PIC"),
    (134, "JUNIPER_MFR", "Juniper FRF.16 Frame Relay"),
    (135, "JUNIPER_ATM2", "Juniper ATM2 PIC"),
    (136, "JUNIPER_SERVICES", "Juniper Advanced Services PIC"),
    (137, "JUNIPER_ATM1", "Juniper ATM1 PIC"),
    (138, "APPLE_IP_OVER_IEEE1394", "Apple IP-over-IEEE 1394"),
    (139, "MTP2_WITH_PHDR", "SS7 MTP2 with Pseudo-header"),
    (140, "MTP2", "SS7 MTP2"),
    (141, "MTP3", "SS7 MTP3"),
    (142, "SCCP", "SS7 SCCP"),
    (143, "DOCSIS", "DOCSIS"),
    (144, "LINUX_IRDA", "Linux IrDA"),
    (163, "IEEE802_11_RADIO_AVS", "802.11 plus AVS radio information header"),
    (164, "JUNIPER_MONITOR", "Juniper Passive Monitor PIC"),
    (165, "BACNET_MS_TP", "BACnet MS/TP"),
    (166, "PPP_PPPD", "PPP for pppd, with direction flag"),
    (167, "JUNIPER_PPPOE", "Juniper PPPoE"),
    (168, "JUNIPER_PPPOE_ATM", "Juniper PPPoE/ATM"),
    (169, "GPRS_LLC", "GPRS LLC"),
    (170, "GPF_T", "GPF-T"),
    (171, "GPF_F", "GPF-F"),
    (174, "JUNIPER_PIC_PEER", "Juniper PIC Peer"),
    (175, "ERF_ETH", "Ethernet with Endace ERF header"),
    (176, "ERF_POS", "Packet-over-SONET with Endace ERF header"),
    (177, "LINUX_LAPD", "Linux vISDN LAPD"),
    (178, "JUNIPER_ETHER", "Juniper Ethernet"),
    (179, "JUNIPER_PPP", "Juniper PPP"),
    (180, "JUNIPER_FRELAY", "Juniper Frame Relay"),
    (181, "JUNIPER_CHDLC", "Juniper C-HDLC"),
    (182, "MFR", "FRF.16 Frame Relay"),
    (183, "JUNIPER_VP", "Juniper Voice PIC"),
    (184, "A429", "Arinc 429"),
    (185, "A653_ICM", "Arinc 653 Interpartition Communication"),
    (186, "USB_FREEBSD", "USB with FreeBSD header"),
    (187, "BLUETOOTH_HCI_H4", "Bluetooth HCI UART transport layer"),
    (188, "IEEE802_16_MAC_CPS", "IEEE 802.16 MAC Common Part Sublayer"),
    (189, "USB_LINUX", "USB with Linux header"),
    (190, "CAN20B", "Controller Area Network (CAN) v. 2.0B"),
    (191, "IEEE802_15_4_LINUX", "IEEE 802.15.4 with Linux padding"),
    (192, "PPI", "Per-Packet Information"),
    (193, "IEEE802_16_MAC_CPS_RADIO", "IEEE 802.16 MAC Common Part Sublayer plus radiotap header"),
    (194, "JUNIPER_ISM", "Juniper Integrated Service Module"),
    (195, "IEEE802_15_4", "IEEE 802.15.4 with FCS"),
    (196, "SITA", "SITA pseudo-header"),
    (197, "ERF", "Endace ERF header"),
    (198, "RAIF1", "Ethernet with u10 Networks pseudo-header"),
    (199, "IPMB_KONTRON", "IPMB with Kontron pseudo-header"),
    (200, "JUNIPER_ST", "Juniper Secure Tunnel"),
    (201, "BLUETOOTH_HCI_H4_WITH_PHDR", "Bluetooth HCI UART transport layer plus pseudo-header"),
    (202, "AX25_KISS", "AX.25 with KISS header"),
    (209, "I2C_LINUX", "I2C with Linux/Pigeon Point pseudo-header"),
    (215, "IEEE802_15_4_NONASK_PHY", "IEEE 802.15.4 with non-ASK PHY data"),
    (216, "LINUX_EVDEV", "Linux evdev events"),
    (219, "MPLS", "MPLS with label as link-layer header"),
    (220, "USB_LINUX_MMAPPED", "USB with padded Linux header"),
    (221, "DECT", "DECT"),
    (222, "AOS", "AOS Space Data Link protocol"),
    (223, "WIHART", "WirelessHART"),
    (224, "FC_2", "Fibre Channel FC-2"),
    (225, "FC_2_WITH_FRAME_DELIMS", "Fibre Channel FC-2 with frame delimiters"),
    (226, "IPNET", "Solaris ipnet"),
    (227, "CAN_SOCKETCAN", "CAN-bus with SocketCAN headers"),
    (228, "IPV4", "Raw IPv4"),
    (229, "IPV6", "Raw IPv6"),
    (230, "IEEE802_15_4_NOFCS", "IEEE 802.15.4 without FCS"),
    (231, "DBUS", "D-Bus"),
    (232, "JUNIPER_VS", "Juniper Virtual Server"),
    (233, "JUNIPER_SRX_E2E", "Juniper SRX E2E"),
    (234, "JUNIPER_FIBRECHANNEL", "Juniper Fibre Channel"),
    (235, "DVB_CI", "DVB-CI"),
    (236, "MUX27010", "MUX27010"),
    (237, "STANAG_5066_D_PDU", "STANAG 5066 D_PDUs"),
    (238, "JUNIPER_ATM_CEMIC", "Juniper ATM CEMIC"),
    (239, "NFLOG", "Linux netfilter log messages"),
    (240, "NETANALYZER", "Ethernet with Hilscher netANALYZER pseudo-header"),
    (241, "NETANALYZER_TRANSPARENT", "Ethernet with Hilscher netANALYZER pseudo-header and with preamble and SFD"),
    (242, "IPOIB", "RFC 4391 IP-over-InfiniBand"),
    (243, "MPEG_2_TS", "MPEG-2 transport stream"),
    (244, "NG40", "ng40 protocol tester Iub/Iur"),
    (245, "NFC_LLCP", "NFC LLCP PDUs with pseudo-header"),
    (247, "INFINIBAND", "InfiniBand"),
    (248, "SCTP", "SCTP"),
    (249, "USBPCAP", "USB with USBPcap header"),
    (250, "RTAC_SERIAL", "Schweitzer Engineering Laboratories RTAC packets"),
    (251, "BLUETOOTH_LE_LL", "Bluetooth Low Energy air interface"),
    (253, "NETLINK", "Linux netlink"),
    (254, "BLUETOOTH_LINUX_MONITOR", "Bluetooth Linux Monitor"),
    (255, "BLUETOOTH_BREDR_BB", "Bluetooth Basic Rate/Enhanced Data Rate baseband packets"),
    (256, "BLUETOOTH_LE_LL_WITH_PHDR", "Bluetooth Low Energy air interface with pseudo-header"),
    (257, "PROFIBUS_DL", "PROFIBUS data link layer"),
    (258, "PKTAP", "Apple PKTAP"),
    (259, "EPON", "Ethernet with 802.3 Clause 65 EPON preamble"),
    (260, "IPMI_HPM_2", "IPMI trace packets"),
    (261, "ZWAVE_R1_R2", "Z-Wave RF profile R1 and R2 packets"),
    (262, "ZWAVE_R3", "Z-Wave RF profile R3 packets"),
    (263, "WATTSTOPPER_DLM", "WattStopper Digital Lighting Management (DLM) and Legrand Nitoo Open protocol"),
    (264, "ISO_14443", "ISO 14443 messages"),
    (265, "RDS", "IEC 62106 Radio Data System groups"),
    (266, "USB_DARWIN", "USB with Darwin header"),
    (267, "OPENFLOW", "OpenBSD OpenFlow"),
    (268, "SDLC", "IBM SDLC frames"),
    (269, "TI_LLN_SNIFFER", "TI LLN sniffer frames"),
    (271, "VSOCK", "Linux vsock"),
    (272, "NORDIC_BLE", "Nordic Semiconductor Bluetooth LE sniffer frames"),
    (273, "DOCSIS31_XRA31", "Excentis XRA-31 DOCSIS 3.1 RF sniffer frames"),
    (274, "ETHERNET_MPACKET", "802.3br mPackets"),
    (275, "DISPLAYPORT_AUX", "DisplayPort AUX channel monitoring data"),
    (276, "LINUX_SLL2", "Linux cooked v2"),
    (278, "OPENVIZSLA", "OpenVizsla USB"),
    (279, "EBHSCR", "Elektrobit High Speed Capture and Replay (EBHSCR)"),
    (280, "VPP_DISPATCH", "VPP graph dispatch tracer"),
    (281, "DSA_TAG_BRCM", "Broadcom infix DSA tag"),
    (282, "DSA_TAG_BRCM_PREPEND", "Broadcom prefix DSA tag"),
    (283, "IEEE802_15_4_TAP", "IEEE 802.15.4 with pseudo-header"),
    (284, "DSA_TAG_DSA", "Marvell infix 4-octet DSA tag"),
    (285, "DSA_TAG_EDSA", "Marvell infix 8-octet DSA tag"),
    (286, "ELEE", "ELEE lawful intercept packets"),
    (287, "Z_WAVE_SERIAL", "Z-Wave serial frames between host and chip"),
    (288, "USB_2_0", "USB 2.0/1.1/1.0 as transmitted over the cable"),
    (289, "ATSC_ALP", "ATSC Link-Layer Protocol packets"),
    (290, "ETW", "Event Tracing for Windows messages"),
    (291, "NETANALYZER_NG", "Hilscher netANALYZER NG pseudo-footer"),
    (292, "ZBOSS_NCP", "ZBOSS NCP protocol with pseudo-header"),
    (293, "USB_2_0_LOW_SPEED", "Low-Speed USB 2.0/1.1/1.0 as transmitted over the cable"),
    (294, "USB_2_0_FULL_SPEED", "Full-Speed USB 2.0/1.1/1.0 as transmitted over the cable"),
    (295, "USB_2_0_HIGH_SPEED", "High-Speed USB 2.0 as transmitted over the cable"),
    (296, "AUERSWALD_LOG", "Auerswald Logger Protocol"),
    (297, "ZWAVE_TAP", "Z-Wave packets with a TAP meta-data header"),
    (298, "SILABS_DEBUG_CHANNEL", "Silicon Labs debug channel protocol"),
    (299, "FIRA_UCI", "Ultra-wideband controller interface protocol"),
    (300, "MDB", "Multi-Drop Bus"),
    (301, "DECT_NR", "DECT New Radio"),
    (302, "EDK2_MM", "EDK II MM request serialization protocol"),
    (303, "DEBUG_ONLY", "unstructured data for manual debugging only"),
    (304, "DECT_NR_TAP", "DECT-2020 New Radio TAP"),
];

/// The number of a link type's name, without `DLT_`.
pub fn by_name(name: &str) -> Option<u16> {
    NAMES.iter().find(|(_, n, _)| *n == name).map(|(number, ..)| *number)
}

/// The name of a link type in messages.
pub(crate) fn described(number: u16) -> String {
    match NAMES.iter().find(|(n, ..)| *n == number) {
        Some((_, name, description)) => format!("DLT_{name} ({description})"),
        None => format!("DLT {number}"),
    }
}

/// The number in `pcap/dlt.h` for the link type of a capture file.
pub fn of_file(link_type: u16) -> u16 {
    match link_type {
        100 => ATM_RFC1483,
        101 => RAW,
        102 => SLIP_BSDOS,
        103 => PPP_BSDOS,
        106 => ATM_CLIP,
        246 => PFSYNC,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_files() {
        assert_eq!(by_name("EN10MB"), Some(EN10MB));
        assert_eq!(by_name("none"), None);
        assert_eq!(described(EN10MB), "DLT_EN10MB (Ethernet)");
        assert_eq!(described(9999), "DLT 9999");
        assert_eq!(of_file(101), RAW);
        assert_eq!(of_file(1), EN10MB);
    }
}
