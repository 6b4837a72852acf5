//! Why a packet left GRO alone, or as large as it is and no larger.
//!
//! Every delivered packet has exactly one reason, made by the branch that decided. Where several
//! hold, the first stands, in this order, which is that of the kernel's tests: what is wrong with
//! the packet that came (in this table's order, down to `urg`), then what differs between the two
//! (likewise), then what ends a super-packet that has just grown. A packet that does not merge and
//! is not held either gives its reason to the head that it completes, except PSH, FIN and a bad
//! GSO tail: these would have merged, so the head keeps the difference that kept them apart.

/// A [`Reason`], and the two values that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Why {
    /// The cause.
    pub reason: Reason,
    /// The value of [`Reason::field`] in the head, or what the rule asks for where the packet was
    /// judged alone; 0 where the reason has no field.
    pub head: u64,
    /// The value in the packet that came.
    pub packet: u64,
}

impl Why {
    pub(crate) fn new(reason: Reason, head: impl Into<u64>, packet: impl Into<u64>) -> Self {
        Self { reason, head: head.into(), packet: packet.into() }
    }

    pub(crate) fn lengths(reason: Reason, head: usize, packet: usize) -> Self {
        Self { reason, head: head as u64, packet: packet as u64 }
    }
}

impl From<Reason> for Why {
    fn from(reason: Reason) -> Self {
        Self { reason, head: 0, packet: 0 }
    }
}

macro_rules! reasons {
    ($($variant:ident $name:literal $field:literal $text:literal)*) => {
        /// Why a delivered packet did not merge, or stopped growing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Reason {
            $(#[doc = $text] $variant,)*
        }

        impl Reason {
            /// All reasons, in order of precedence.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Name for tables and JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The field whose two values decided; `None` where no field did.
            pub const fn field(self) -> Option<&'static str> {
                let field = match self { $(Self::$variant => $field,)* };
                if field.is_empty() { None } else { Some(field) }
            }

            /// One line: what it means, and the mend where there is one.
            pub const fn describe(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    // Of the packet alone.
    GroOff "gro-off" ""
        "GRO is turned off; turn it on (ethtool -K DEV gro on)."
    LinkTruncated "link-truncated" "frame.len"
        "The frame ends within its link header or a VLAN tag."
    NoOffload "no-offload" "eth.type"
        "Only IPv4 and IPv6 are coalesced, not this ethertype."
    VlanNotHandled "vlan-not-handled" "eth.type"
        "A VLAN tag inside the frame, and no 8021q; let the device strip tags or load 8021q."
    ChainedInput "chained-input" ""
        "The packet came with other packets chained behind it."
    GsoNotTcp "gso-not-tcp" "gso.type"
        "A super-packet already, and not of TCP."
    UntrustedGso "untrusted-gso" "gso.type"
        "A super-packet from a source that is not trusted."
    RecursionLimit "recursion-limit" "headers"
        "Too many nested headers."
    Unreadable "unreadable" "header.len"
        "The headers lie apart, and the packet has no room to gather them."
    Ipv4Truncated "ip-truncated" "frame.len"
        "The frame ends within its IPv4 header."
    IpProtocol "ip-protocol" "ip.protocol"
        "Only TCP, UDP, and what IP and GRE carry are coalesced, not this IP protocol."
    IpVersion "ip-version" "ip.version"
        "The ethertype says IPv4, the header does not."
    IpHeaderLength "ip-header-length" "ip.ihl"
        "The IPv4 header claims to be shorter than 20 bytes."
    IpOptions "ip-options" "ip.ihl"
        "IPv4 options are never coalesced."
    IpFragment "ip-fragment" "ip.frag_off"
        "Fragments are never coalesced; lower the sender's MTU or mend path MTU discovery."
    IpHeaderChecksum "ip-header-checksum" "ip.check"
        "The IPv4 header checksum is wrong."
    IpTotalLength "ip-total-length" "ip.tot_len"
        "The IPv4 total length is not what the frame holds: Ethernet padding or a cut frame."
    IpReservedFlag "ip-reserved-flag" "ip.frag_off"
        "The reserved IPv4 flag is set."
    IpChecksumForm "ip-checksum-form" "ip.check"
        "The IPv4 header checksum stands as 0xffff, which segmentation would write as 0."
    Ipv6Truncated "ipv6-truncated" "frame.len"
        "The frame ends within its IPv6 header."
    Ipv6NextHeader "ipv6-next-header" "ipv6.nexthdr"
        "No TCP, UDP, IP or GRE behind Hop-by-Hop, Routing and Destination Options at most."
    Ipv6PayloadLength "ipv6-payload-length" "ipv6.payload_len"
        "The IPv6 payload length is not what the frame holds: padding, a jumbogram, a cut frame."
    NestedTunnel "nested-tunnel" "tunnels"
        "A tunnel in a tunnel: the inner one is not looked into."
    TunnelTruncated "tunnel-truncated" "frame.len"
        "The frame ends within a tunnel header."
    GreFlags "gre-flags" "gre.flags"
        "GRE with sequence numbers, routing or a version, or summed within UDP; the flags allowed."
    GreChecksum "gre-checksum" "gre.sum"
        "The GRE checksum is wrong."
    GreChecksumForm "gre-checksum-form" "gre.check"
        "The GRE checksum is 0xffff, or has bytes behind it: segmentation would write 0."
    RemoteChecksum "remote-checksum" "tunnel.flags"
        "Remote checksum offload is never coalesced: the inner checksum is not in the packet."
    VxlanGpeFlags "vxlan-gpe-flags" "vxlan.flags"
        "VXLAN-GPE without a next protocol, of an unknown version, or for management."
    VxlanGpeProtocol "vxlan-gpe-protocol" "vxlan.next_protocol"
        "VXLAN-GPE that carries neither IPv4, IPv6 nor Ethernet."
    GeneveVersion "geneve-version" "geneve.version"
        "GENEVE of an unknown version."
    GeneveOam "geneve-oam" "geneve.oam"
        "A GENEVE control packet."
    GueVersion "gue-version" "gue.version"
        "GUE of an unknown version, or of version 1 without an IP packet."
    GueControl "gue-control" "gue.control"
        "A GUE control message."
    GueFlags "gue-flags" "gue.flags"
        "GUE with unknown flags, or with flags whose fields are missing; the flags allowed."
    GueProtocol "gue-protocol" "gue.protocol"
        "GUE that carries neither IP nor GRE."
    TcpChecksum "tcp-checksum" "tcp.sum"
        "The TCP checksum is wrong; the capture may predate checksum offload."
    UnfinishedChecksum "unfinished-checksum" ""
        "The sender left the checksum to its device; segmentation would finish it."
    VouchedChecksum "vouched-checksum" "l4.sum"
        "The device vouched for a checksum that is wrong, and that segmentation would mend."
    TcpTruncated "tcp-truncated" "frame.len"
        "The frame ends within its TCP header."
    TcpDataOffset "tcp-data-offset" "tcp.header_len"
        "The TCP data offset points into the header or past the end."
    TcpChecksumForm "tcp-checksum-form" "tcp.check"
        "The TCP checksum stands as 0xffff, which segmentation would write as 0."
    UdpTruncated "udp-truncated" "frame.len"
        "The frame ends within its UDP header."
    UdpChecksum "udp-checksum" "udp.sum"
        "The UDP checksum is wrong; the capture may predate checksum offload."
    EncapsulatedUdp "encapsulated-udp" ""
        "The device says encapsulated, and no tunnel takes the datagram."
    UdpNotAskedFor "udp-not-asked-for" "udp.dest"
        "Nobody asked for UDP GRO: set UDP_GRO on the socket, or rx-udp-gro-forwarding."
    UdpZeroChecksum "udp-zero-checksum" ""
        "UDP without checksum is never coalesced; let the sender compute it."
    UdpLength "udp-length" "udp.len"
        "The UDP length is not what the packet holds, or there is no payload."
    NoPayload "no-payload" ""
        "A pure acknowledgement: nothing to coalesce."
    Syn "syn" "tcp.syn"
        "SYN is never coalesced."
    Rst "rst" "tcp.rst"
        "RST is never coalesced."
    Urg "urg" "tcp.urg"
        "Urgent data is never coalesced."
    // Between the packet and the head that it should have joined.
    OtherHeaders "other-headers" ""
        "A packet of the same connection came with other headers in front: flow label, extensions, tunnel."
    ListMode "list-mode" "list"
        "One is to be chained whole, the other is not."
    Cwr "cwr" "tcp.cwr"
        "A packet with CWR joins no head, and none joins it without CWR."
    TcpHeaderLength "tcp-header-length" "tcp.doff"
        "The TCP headers differ in length."
    Ece "ece" "tcp.ece"
        "The ECN echo differs."
    AckFlag "ack-flag" "tcp.ack"
        "The ACK flag differs."
    AccurateEcn "accurate-ecn" "tcp.ae"
        "The AE flag differs."
    TcpReserved "tcp-reserved" "tcp.reserved"
        "The reserved TCP bits differ."
    Window "window" "tcp.window"
        "The receive window moved."
    AckNumber "ack-number" "tcp.ack_seq"
        "The acknowledgement moved: data flows both ways."
    TcpOptions "tcp-options" "tcp.options"
        "The TCP options differ, most often the timestamp; the first four differing bytes."
    TrafficClass "traffic-class" "ipv6.traffic_class"
        "The IPv6 traffic class differs: DSCP or ECN, such as a congestion mark."
    HopLimit "hop-limit" "ipv6.hop_limit"
        "The hop limit differs: the path changed."
    Ttl "ttl" "ip.ttl"
        "The TTL differs: the path changed."
    Tos "tos" "ip.tos"
        "The TOS byte differs: DSCP or ECN, such as a congestion mark."
    Df "df" "ip.df"
        "Don't fragment differs."
    IpId "ip-id" "ip.id"
        "The IPv4 identification neither counts up by one nor stays the same; the value due."
    UrgentPointer "urgent-pointer" "tcp.urg_ptr"
        "The urgent pointer differs, without URG; segmentation would write the first everywhere."
    GsoSize "gso-size" "gso.size"
        "A super-packet came whose segments have another size."
    LongerSegment "longer-segment" "payload.len"
        "The packet is longer than the segments before it."
    SequenceGap "sequence-gap" "tcp.seq"
        "Bytes are missing in front: loss or reordering; the value due."
    SequenceOverlap "sequence-overlap" "tcp.seq"
        "Bytes came again: retransmission or reordering; the value due."
    ListFlags "list-flags" "tcp.flags"
        "PSH or FIN differs, which chained packets do not allow."
    ChecksumState "checksum-state" "csum"
        "Chained packets must agree in what is known of their checksums."
    CountCap "count-cap" "segs"
        "The head holds as many segments as it can count."
    Source "source" ""
        "The packets came from different devices, sockets or buffer pools."
    SizeLimit "size-limit" "len"
        "The super-packet is as large as it may be; raise gro_max_size or gro_ipv4_max_size."
    Refused "refused" ""
        "The packet type took no more: no room, or shared headers."
    // Ends of a super-packet.
    ShortSegment "short-segment" "payload.len"
        "A segment shorter than the others came: it is the last."
    GsoTail "gso-tail" "payload.len"
        "A super-packet came whose segments are not all full: it is the last."
    Psh "psh" "tcp.psh"
        "PSH: the sender's write ended."
    Fin "fin" "tcp.fin"
        "FIN: the stream ended."
    UdpCap "udp-cap" ""
        "A UDP super-packet of 64 datagrams is complete."
    Evicted "evicted" ""
        "A flow came for which its bucket had no room; let the device give a receive hash."
    Age "age" "age_ns"
        "Held for the whole flush timeout."
    PollEnd "poll-end" ""
        "The poll ended; more packets a poll, or a flush timeout, merge more."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_kebab() {
        for (i, reason) in Reason::ALL.iter().enumerate() {
            let name = reason.name();
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            );
            assert!(Reason::ALL[..i].iter().all(|other| other.name() != name), "{name}");
            assert!(reason.describe().ends_with('.'));
        }
    }
}
