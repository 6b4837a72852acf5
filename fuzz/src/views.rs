//! Views over any bytes: each exists exactly where the bytes suffice for it, and the length that it
//! claims is one that its field can hold.

use grilse_wire::zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};
use grilse_wire::{eth, geneve, gre, gue, ipv4, ipv6, link, mpls, nsh, tcp, udp, vlan, vxlan};

/// Lays every view over the input.
///
/// # Panics
/// Where one exists that should not, or claims an impossible length; where the options of TCP do
/// not lie one behind another; or where a link header leads out of the frame.
pub fn views(bytes: &[u8]) {
    link_types(bytes);
    view::<eth::Header>(bytes);
    view::<vlan::Header>(bytes);
    view::<udp::Header>(bytes);
    view::<ipv6::Header>(bytes);
    view::<ipv6::FragmentHeader>(bytes);
    claims(view::<ipv4::Header>(bytes).map(ipv4::Header::header_len), 0..=60, 4);
    claims(view::<ipv6::ExtHeader>(bytes).map(ipv6::ExtHeader::header_len), 8..=2048, 8);
    claims(view::<tcp::Header>(bytes).map(tcp::Header::header_len), 0..=60, 4);
    options(bytes);
    claims(view::<gre::Header>(bytes).map(gre::Header::header_len), 4..=16, 4);
    claims(view::<geneve::Header>(bytes).map(geneve::Header::header_len), 8..=260, 4);
    claims(view::<gue::Header>(bytes).map(gue::Header::header_len), 4..=128, 4);
    claims(view::<nsh::Header>(bytes).map(nsh::Header::header_len), 0..=252, 4);
    if let Some(vxlan) = view::<vxlan::Header>(bytes) {
        assert_eq!(vxlan.vni.get() >> 8, u32::from_be_bytes([0, bytes[4], bytes[5], bytes[6]]));
    }
    if let Some(entry) = view::<mpls::Entry>(bytes) {
        assert_eq!(entry.label() >> 4, u32::from_be_bytes([0, 0, bytes[0], bytes[1]]));
    }
}

fn view<T: FromBytes + KnownLayout + Immutable + Unaligned>(bytes: &[u8]) -> Option<&T> {
    let view = T::ref_from_prefix(bytes).ok().map(|(view, _)| view);
    assert_eq!(view.is_some(), bytes.len() >= size_of::<T>());
    view
}

fn claims(len: Option<usize>, possible: std::ops::RangeInclusive<usize>, unit: usize) {
    if let Some(len) = len {
        assert!(possible.contains(&len) && len.is_multiple_of(unit), "a header of {len} bytes");
    }
}

/// The options of TCP, if the bytes were some: each lies behind the one before it.
fn options(bytes: &[u8]) {
    let mut left = bytes.len();
    for option in tcp::options(bytes) {
        let Ok(option) = option else { break };
        let at = option.data.as_ptr_range().end as usize - bytes.as_ptr() as usize;
        assert!(option.data.len() + 2 <= left && at <= bytes.len());
        left = bytes.len() - at;
        assert!(!matches!(option.kind, tcp::option::END | tcp::option::NOP));
    }
}

fn link_types(frame: &[u8]) {
    for number in [1, 101, 113, 276] {
        let link = link::Type::from_pcap(number).expect("one of those that are read");
        let need = usize::from(link.header_len()).max(1);
        match link.network(frame) {
            Ok((network, _)) => assert!(usize::from(network) <= frame.len()),
            Err(short) => assert!(frame.len() < need && usize::from(short.need) == need),
        }
    }
}
