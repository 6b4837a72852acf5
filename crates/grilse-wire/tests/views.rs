//! Views lie over any bytes: they exist exactly where the bytes suffice, show each field where the
//! RFC puts it, and their claimed lengths stay within what the field can hold.

use grilse_wire::zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};
use grilse_wire::{eth, geneve, gre, gue, ipv4, ipv6, mpls, nsh, tcp, udp, vlan, vxlan};
use proptest::prelude::*;

fn view<T: FromBytes + KnownLayout + Immutable + Unaligned>(bytes: &[u8]) -> Option<&T> {
    let view = T::ref_from_prefix(bytes).ok().map(|(view, _)| view);
    assert_eq!(view.is_some(), bytes.len() >= size_of::<T>());
    view
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

proptest! {
    #[test]
    fn views_of_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let at = |from: usize, to: usize| number(&bytes[from..to]);
        if let Some(eth) = view::<eth::Header>(&bytes) {
            prop_assert_eq!([eth.dst, eth.src].concat(), bytes[..12].to_vec());
            prop_assert_eq!(u32::from(eth.ethertype.get()), at(12, eth::LEN));
        }
        if let Some(tag) = view::<vlan::Header>(&bytes) {
            prop_assert_eq!(u32::from(tag.tci.get()), at(0, 2));
            prop_assert_eq!(u32::from(tag.ethertype.get()), at(2, vlan::LEN));
        }
        if let Some(ip) = view::<ipv4::Header>(&bytes) {
            prop_assert_eq!(u32::from(ip.total_len.get()), at(2, 4));
            prop_assert_eq!(u32::from(ip.flags_offset.get()), at(6, 8));
            prop_assert_eq!(u32::from(ip.check.get()), at(ipv4::CHECK, ipv4::CHECK + 2));
            prop_assert_eq!([ip.src, ip.dst].concat(), bytes[12..ipv4::MIN_LEN].to_vec());
            prop_assert!(ip.header_len() <= 60);
        }
        if let Some(ip) = view::<ipv6::Header>(&bytes) {
            prop_assert_eq!(ip.version_class_label.get(), at(0, 4));
            prop_assert_eq!((ip.next_header, ip.hop_limit), (bytes[6], bytes[7]));
            prop_assert_eq!([ip.src, ip.dst].concat(), bytes[8..ipv6::LEN].to_vec());
        }
        if let Some(ext) = view::<ipv6::ExtHeader>(&bytes) {
            prop_assert_eq!(ext.header_len(), 8 * (usize::from(bytes[1]) + 1));
        }
        if let Some(fragment) = view::<ipv6::FragmentHeader>(&bytes) {
            prop_assert_eq!(u32::from(fragment.offset_more.get()), at(2, 4));
            prop_assert_eq!(fragment.id.get(), at(4, 8));
        }
        if let Some(tcp) = view::<tcp::Header>(&bytes) {
            prop_assert_eq!((tcp.seq.get(), tcp.ack.get()), (at(4, 8), at(8, 12)));
            prop_assert_eq!(u32::from(tcp.offset_flags.get()), at(12, 14));
            prop_assert_eq!(u32::from(tcp.check.get()), at(tcp::CHECK, tcp::CHECK + 2));
            prop_assert!(tcp.header_len() <= 60);
        }
        if let Some(udp) = view::<udp::Header>(&bytes) {
            prop_assert_eq!(u32::from(udp.len.get()), at(udp::LENGTH, udp::LENGTH + 2));
            prop_assert_eq!(u32::from(udp.check.get()), at(udp::CHECK, udp::LEN));
        }
    }

    #[test]
    fn tunnel_views_of_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        let at = |from: usize, to: usize| number(&bytes[from..to]);
        if let Some(gre) = view::<gre::Header>(&bytes) {
            prop_assert_eq!(u32::from(gre.protocol.get()), at(2, gre::MIN_LEN));
            let fields = [7, 5, 4].iter().filter(|bit| bytes[0] >> **bit & 1 != 0).count();
            prop_assert_eq!(gre.header_len(), 4 + 4 * fields);
        }
        if let Some(vxlan) = view::<vxlan::Header>(&bytes) {
            prop_assert_eq!((vxlan.flags.get(), vxlan.vni.get()), (at(0, 4), at(4, vxlan::LEN)));
        }
        if let Some(geneve) = view::<geneve::Header>(&bytes) {
            prop_assert_eq!(u32::from(geneve.protocol.get()), at(2, 4));
            prop_assert_eq!(number(&geneve.vni), at(4, 7));
            prop_assert_eq!(geneve.version(), bytes[0] / 64);
            prop_assert_eq!(geneve.header_len(), 8 + 4 * usize::from(bytes[0] % 64));
        }
        if let Some(gue) = view::<gue::Header>(&bytes) {
            prop_assert_eq!((u32::from(gue.flags.get()), gue.protocol), (at(2, 4), bytes[1]));
            prop_assert_eq!(gue.version(), bytes[0] / 64);
            prop_assert_eq!(gue.header_len(), 4 + 4 * usize::from(bytes[0] % 32));
        }
        if let Some(entry) = view::<mpls::Entry>(&bytes) {
            prop_assert_eq!(entry.label(), at(0, 3) / 16);
            prop_assert_eq!(entry.word.get() & mpls::Entry::BOTTOM != 0, bytes[2] & 1 != 0);
        }
        if let Some(nsh) = view::<nsh::Header>(&bytes) {
            prop_assert_eq!((nsh.md_type, nsh.next_protocol), (bytes[2], bytes[3]));
            prop_assert_eq!(nsh.path_index.get(), at(4, nsh::MIN_LEN));
            prop_assert_eq!(nsh.header_len(), 4 * usize::from(bytes[1] % 64));
        }
    }
}
