//! The virtio-net header: what is written is read again, and what [`Header::to_meta`] believes of a
//! header that may lie, segmentation can rely on.

use arbitrary::{Arbitrary, Unstructured};
use grilse_offload::gso::{self, Checksums};
use grilse_wire::vnet::{Endian, Form, Header, UDP_MAX_SEGS};
use grilse_wire::{Csum, Gso, GsoType, Heap, Linear, Meta, link};

/// What the input decides before its header and frame begin.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Input {
    big: bool,
    num_buffers: bool,
    raw: bool,
    /// Contiguous bytes of the frame.
    front: u16,
    csum: u8,
    gso: (u16, u16, u32),
    transport: u16,
}

/// Takes a frame with a header, as a device would give it; and writes any metadata as a header.
///
/// # Panics
/// Where a header is read that was not written, where a refusal leaves metadata changed, where what
/// is believed reaches beyond the frame, or where it does not come back the same.
pub fn vnet(data: &[u8]) {
    let mut rest = Unstructured::new(data);
    let Ok(input) = Input::arbitrary(&mut rest) else { return };
    let bytes = rest.take_rest();
    let endian = if input.big { Endian::Big } else { Endian::Little };
    let form = Form { endian, num_buffers: input.num_buffers };
    let Some(header) = Header::read(bytes, form) else {
        assert!(bytes.len() < form.header_len());
        return;
    };
    let mut written = [0xee; 12];
    assert_eq!(header.write(&mut written, form), Some(form.header_len()));
    assert_eq!(written[..form.header_len()], bytes[..form.header_len()]);
    let frame = &bytes[form.header_len()..];
    let link = if input.raw { link::Type::Raw } else { link::Type::Ethernet };
    let Ok((network, protocol)) = link.network(frame) else { return };
    let meta = Meta { network, protocol, ..Meta::default() };
    believed(&header, frame, usize::from(input.front).min(frame.len()), meta);
    input.any_metadata(frame, meta);
}

/// The first `front` bytes are contiguous.
fn believed(header: &Header, frame: &[u8], front: usize, before: Meta) {
    let (front, len) = (&frame[..front], frame.len());
    let mut meta = before;
    if header.to_meta(front, len, &mut meta).is_err() {
        assert_eq!(meta, before, "a refusal leaves the metadata alone");
        return;
    }
    if let Csum::Partial { start, offset } = meta.csum {
        assert!(usize::from(start) + usize::from(offset) + 2 <= front.len());
    }
    let Gso { size, segs, kind } = meta.gso;
    if size != 0 {
        assert!(kind.contains(GsoType::DODGY), "it is checked before use");
        assert!(usize::from(meta.transport) < front.len());
        assert!(usize::from(size) * usize::from(segs) < len + usize::from(size));
        assert!(segs > 1 && (segs <= UDP_MAX_SEGS || !kind.contains(GsoType::UDP_L4)));
        // Segmentation asks further questions, and never trusts `segs`.
        if let Ok(mut segments) = gso::segment(Linear::new(frame.to_vec(), meta), Checksums::Finish)
        {
            let count = segments.remaining();
            assert_eq!(count, usize::from(segs), "the segments that were announced");
            assert_eq!(segments.packets(&mut Heap).count(), count);
        }
    }
    let again = Header::from_meta(&meta, front).expect("what came in goes out");
    let mut back = before;
    again.to_meta(front, len, &mut back).expect("and in again");
    assert_eq!((back.csum, back.gso), (meta.csum, meta.gso));
}

impl Input {
    /// Metadata that nobody checked is written or refused.
    fn any_metadata(&self, frame: &[u8], meta: Meta) {
        let (size, segs, kind) = self.gso;
        let csum = match self.csum % 4 {
            0 => Csum::None,
            1 => Csum::Unnecessary { level: self.csum / 64 },
            2 => Csum::Complete { sum: kind },
            _ => Csum::Partial { start: self.transport, offset: (self.csum / 4).into() },
        };
        let gso = Gso { size, segs, kind: GsoType(kind) };
        let meta = Meta { csum, gso, transport: self.transport, ..meta };
        if let Ok(header) = Header::from_meta(&meta, frame) {
            let partial = matches!(csum, Csum::Partial { .. });
            assert_eq!(header.flags & 1 != 0, partial);
            assert_eq!(header.gso_size, size);
        }
    }
}
