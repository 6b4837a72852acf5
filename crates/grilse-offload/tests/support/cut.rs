//! Cutting super-packets in every way there is, and the oracle for it: the frame builder.

use std::ops::Range;

use grilse_offload::gso::{self, Checksums, Invalid};
use grilse_wire::build::{Eth, ethernet};
use grilse_wire::{Carve, Csum, Gso, GsoType, Heap, Linear, Meta, Packet, Place};

use super::Split;

/// Makes packets that are awkward on purpose, as long as it is told to.
#[derive(Debug)]
pub struct Splits {
    pub room: usize,
}

impl Carve<Split> for Splits {
    fn carve(
        &mut self,
        from: &Split,
        _: &mut Place,
        headers: usize,
        payload: Range<usize>,
    ) -> Option<Split> {
        self.room = self.room.checked_sub(1)?;
        let mut bytes = vec![0xee; headers];
        bytes.extend(from.pieces(payload).flatten());
        Some(Split::new(bytes, headers, *from.meta()))
    }
}

/// Metadata of a super-packet whose layer-4 sum is left at this place.
pub fn meta(frame: &[u8], size: u16, kind: GsoType, l4: usize, check: usize) -> Meta {
    Meta {
        protocol: u16::from_be_bytes([frame[12], frame[13]]),
        network: 14,
        transport: l4 as u16,
        csum: Csum::Partial { start: l4 as u16, offset: check as u16 },
        gso: Gso { size, segs: 0, kind },
        ..Meta::default()
    }
}

/// Cuts a super-packet into packets, into a buffer, and with stops; all must give the same.
pub fn cut(frame: &[u8], meta: Meta) -> Result<Vec<Vec<u8>>, Invalid> {
    let linear = || Linear::new(frame.to_vec(), meta);
    let mut segments = match gso::segment(linear(), Checksums::Finish) {
        Ok(segments) => segments,
        Err(rejected) => {
            assert_eq!(rejected.packet.bytes(), frame, "a refused packet comes back untouched");
            assert_eq!(*rejected.packet.meta(), meta);
            return Err(rejected.why);
        }
    };
    let count = segments.remaining();
    let packets: Vec<Linear> = segments.packets(&mut Heap).collect();
    let cut: Vec<Vec<u8>> = packets.iter().map(|packet| packet.bytes().to_vec()).collect();
    assert_eq!((cut.len(), segments.remaining()), (count, 0));
    for packet in &packets {
        let meta = packet.meta();
        assert_eq!((meta.gso, meta.csum), (Gso::default(), Csum::None));
    }

    // Into a buffer that is now and then too short.
    let mut segments = gso::segment(linear(), Checksums::Finish).unwrap();
    let mut out = vec![0xee; 70_000];
    for want in &cut {
        let short = segments.write(&mut out[..want.len() - 1]);
        assert_eq!(short, Err(gso::NoRoom { need: want.len() }));
        assert_eq!(segments.write(&mut out), Ok(Some(want.len())));
        assert_eq!(out[..want.len()], want[..]);
    }
    assert_eq!(segments.write(&mut out), Ok(None));

    // Out of pieces, with as little contiguous as can be, three packets at a time.
    let split = Split::new(frame.to_vec(), 0, meta);
    let mut segments = gso::segment(split, Checksums::Finish).unwrap();
    let (mut pieces, mut maker) = (Vec::new(), Splits { room: 0 });
    while segments.remaining() > 0 {
        assert!(segments.cut(&mut maker).is_err(), "there is no room");
        maker.room = 3;
        pieces.extend(segments.packets(&mut maker));
    }
    let pieces: Vec<Vec<u8>> =
        pieces.iter().map(|p| p.pieces(0..p.len()).flatten().copied().collect()).collect();
    assert_eq!(pieces, cut);
    Ok(cut)
}

/// The same with checksums left to a device, and finished afterwards.
pub fn leave(frame: &[u8], meta: Meta) -> Vec<Vec<u8>> {
    let packet = Linear::new(frame.to_vec(), meta);
    let mut segments = gso::segment(packet, Checksums::Leave).unwrap();
    let packets: Vec<Linear> = segments.packets(&mut Heap).collect();
    let finished = packets.into_iter().map(|mut packet| {
        assert!(matches!(packet.meta().csum, Csum::Partial { .. }));
        gso::finish(&mut packet).unwrap();
        packet.bytes().to_vec()
    });
    finished.collect()
}

/// An Ethernet frame with this packet.
pub fn eth(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    ethernet(Eth::default(), ethertype, packet)
}
