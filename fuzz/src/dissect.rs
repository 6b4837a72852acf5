//! The dissector: every offset it gives lies within the frame, and what the parts of a packet are
//! said to be covers it in order.

use grilse_wire::{Gso, Linear, Meta, Packet, Parts, dissect as dissector, link, toeplitz};

/// Dissects the input as a frame of every link type.
///
/// # Panics
/// Where an offset leads out of the frame, or parts overlap.
pub fn dissect(frame: &[u8]) {
    for number in [1, 101, 113, 276] {
        let link = link::Type::from_pcap(number).expect("one of those that are read");
        let Ok((network, protocol)) = link.network(frame) else { continue };
        let flow = dissector::dissect(frame, network.into(), protocol);
        let hash = dissector::hash(frame, network.into(), protocol, &toeplitz::MICROSOFT);
        assert_eq!(hash, flow.as_ref().map_or(0, |flow| flow.hash(&toeplitz::MICROSOFT)));
        if let Ok(flow) = flow {
            assert!(flow.network >= network.into() && flow.network < frame.len());
            let transport = flow.transport.unwrap_or(frame.len());
            assert!(flow.network < transport && transport <= frame.len());
            assert!(flow.ports.is_none() || transport + 4 <= frame.len());
        }
        let meta = Meta { network, protocol, ..Meta::default() };
        parts(&Linear::new(frame.to_vec(), meta));
    }
}

fn parts(packet: &Linear) {
    let Some(parts) = Parts::of(packet) else { return };
    assert!(parts.network < parts.transport && parts.transport < parts.payload.start);
    assert!(parts.payload.end <= packet.len());
    for size in [0, 1, 1000] {
        let gso = Gso { size, ..Gso::default() };
        let mut at = parts.payload.start;
        for segment in parts.segments(gso) {
            assert_eq!(segment.start, at, "segments lie one behind another");
            at = segment.end;
        }
        assert_eq!(at, parts.payload.end);
    }
}
