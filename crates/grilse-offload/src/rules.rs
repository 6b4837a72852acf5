//! The rules of GRO as data: in what one kernel differs from another, and in what ours go beyond.
//!
//! A [`Rules`] is a column of the table of kernels, and each of its fields a row. All code that a
//! kernel's version decides asks a field, never the name. Only 6.18 was laid beside a running
//! kernel; the others follow the kernel's source.

/// The rules of one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Name of the profile.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// The nested receive callback at which parsing stops (`GRO_RECURSION_LIMIT`): each VLAN tag,
    /// Ethernet header, IP header and UDP segment test descends once.
    pub recursion_limit: u8,
    /// Segments at which a UDP super-packet is complete (`UDP_GRO_CNT_MAX`).
    pub udp_max_segs: u16,
    /// Segments at which a TCP frag list takes no more.
    pub list_max_segs: u16,
    /// Binary logarithm of the number of buckets, at most 16; a packet's bucket is its hash cut to
    /// as many bits (`GRO_HASH_BUCKETS`).
    pub bucket_bits: u8,
    /// Packets that a bucket holds (`MAX_GRO_SKBS`), at least 1.
    pub bucket_depth: u16,
    /// Where TTL, TOS and identification are tested, and against whom.
    pub l3_test: L3Test,
    /// Whether UDP obeys that test (since 5babae777c61).
    pub udp_obeys_l3: bool,
    /// Whether an identification that stays the same is accepted without DF.
    pub fixed_id_without_df: bool,
    /// What is asked of the identification of an outer IPv4 header.
    pub outer_id: OuterId,
    /// Which segments with CWR merge.
    pub cwr: Cwr,
    /// How an IPv6 header tells a length beyond 65,535 bytes.
    pub big_tcp: BigTcp,
    /// Whether TCP can be chained whole (`tcp4_check_fraglist_gro`).
    pub tcp_lists: bool,
    /// How it is decided that a header is read in place (knob `gro.frag0`); no result depends on it.
    pub frag0: Frag0,
    /// Whether merges that segmentation cannot undo are refused, and what it would have to guess is
    /// kept: the checksum in the frame is summed whatever the device says, and fixed
    /// identifications are told level by level ([`IDS_PER_LEVEL`]).
    ///
    /// [`IDS_PER_LEVEL`]: grilse_wire::GsoType::IDS_PER_LEVEL
    pub lossless: bool,
    /// Whether a packet that would overtake the held ones of its flow completes them first.
    pub ordered: bool,
    /// Whether Ethernet padding is cut off, where the packet type can; else it keeps a packet from
    /// merging.
    pub trims_padding: bool,
}

/// Where the fields of IP are tested that may change within a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L3Test {
    /// In the IP layer, against every candidate (`flush`, `flush_id`, `is_atomic`). A head with DF
    /// keeps its identification unless the second packet counts up by one: also one that came as a
    /// super-packet, and so is never followed by a second packet.
    Candidates,
    /// In layer 4, against the head that matched (`gro_receive_network_flush`).
    Head,
}

/// What is asked of the identification of an outer IPv4 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OuterId {
    /// Nothing where DF is set, else that it counts up. Where layer 4 tests, both levels share one
    /// bit for "stays the same", so an inner one that stays forbids an outer one to count.
    IgnoredUnderDf,
    /// The same as of the inner one, with a bit of its own (since 6.18).
    Own,
}

/// Which segments with CWR merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cwr {
    /// One joins no head, but segments without may join its head: CWR is on the first alone.
    First,
    /// None, with anything (since 6.15).
    Alone,
    /// Those that follow each other, with each other (since 7.0).
    Runs,
}

/// How an IPv6 header tells a length beyond 65,535 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BigTcp {
    /// By a jumbo payload option in a Hop-by-Hop header that is put in (RFC 2675).
    HopByHop,
    /// Not at all: the payload length is 0, as the total length of IPv4 is.
    ZeroLength,
}

/// How it is decided that a header is read in place (the kernel's frag0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frag0 {
    /// Never: each header is looked for anew, and each look forgets a place that nobody knew, a
    /// store that the next one loads again (before 6.9, wherever a packet had linear bytes).
    ResetAlways,
    /// By whether the contiguous bytes reach far enough (since 6.9).
    LengthChecked,
}

impl Rules {
    /// Linux 6.9 as released. Its own stable releases have UDP obey the test of IP since mid-2024.
    pub const KERNEL_6_9: Self = Self {
        name: "kernel-6.9",
        about: "Linux 6.9, from its source",
        l3_test: L3Test::Candidates,
        udp_obeys_l3: false,
        tcp_lists: false,
        ..Self::KERNEL_6_14
    };

    /// Linux 6.10 to 6.14.
    pub const KERNEL_6_14: Self = Self {
        name: "kernel-6.14",
        about: "Linux 6.10 to 6.14, from their source",
        cwr: Cwr::First,
        ..Self::KERNEL_6_17
    };

    /// Linux 6.15 to 6.17.
    pub const KERNEL_6_17: Self = Self {
        name: "kernel-6.17",
        about: "Linux 6.15 to 6.17, from their source",
        fixed_id_without_df: false,
        outer_id: OuterId::IgnoredUnderDf,
        ..Self::KERNEL_6_18
    };

    /// Linux 6.18 and 6.19.
    pub const KERNEL_6_18: Self = Self {
        name: "kernel-6.18",
        about: "Linux 6.18 and 6.19, equal to the running kernel",
        recursion_limit: 15,
        udp_max_segs: 64,
        list_max_segs: 64,
        bucket_bits: 3,
        bucket_depth: 8,
        l3_test: L3Test::Head,
        udp_obeys_l3: true,
        fixed_id_without_df: true,
        outer_id: OuterId::Own,
        cwr: Cwr::Alone,
        big_tcp: BigTcp::HopByHop,
        tcp_lists: true,
        frag0: Frag0::LengthChecked,
        lossless: false,
        ordered: false,
        trims_padding: false,
    };

    /// Linux 7.0.
    pub const KERNEL_7_0: Self = Self {
        name: "kernel-7.0",
        about: "Linux 7.0, from its source",
        cwr: Cwr::Runs,
        big_tcp: BigTcp::ZeroLength,
        ..Self::KERNEL_6_18
    };

    /// The rules of 6.18, less every merge that segmentation cannot undo, and no overtaking.
    pub const EXACT: Self = Self {
        name: "exact",
        about: "kernel-6.18, but nothing is lost and nothing overtakes",
        lossless: true,
        ordered: true,
        ..Self::KERNEL_6_18
    };

    /// The same for 1,024 flows, whatever their hashes; what is lost is Ethernet padding.
    pub const RELAXED: Self = Self {
        name: "relaxed",
        about: "exact for 1024 flows at a time, and without Ethernet padding",
        bucket_bits: 0,
        bucket_depth: 1024,
        trims_padding: true,
        ..Self::EXACT
    };

    /// All profiles.
    pub const ALL: &[Self] = &[
        Self::KERNEL_6_9,
        Self::KERNEL_6_14,
        Self::KERNEL_6_17,
        Self::KERNEL_6_18,
        Self::KERNEL_7_0,
        Self::EXACT,
        Self::RELAXED,
    ];

    /// The profile of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|rules| rules.name == name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_profiles() {
        for rules in Rules::ALL {
            assert_eq!(Rules::named(rules.name), Some(*rules));
        }
        assert_eq!(Rules::named("kernel-6.1"), None);
    }
}
