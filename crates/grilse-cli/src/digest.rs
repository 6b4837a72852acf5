//! A frame in the JSON: its first bytes, and a hash of all.

use sha2::Sha256;

/// Bytes of a frame that `hdr` shows.
const HDR: usize = 128;

/// What stands for a frame's bytes; kept from frame to frame for its memory.
#[derive(Debug, Default)]
pub(crate) struct Digest {
    /// The first bytes, in hexadecimal.
    pub(crate) hdr: String,
    /// SHA-256 of all bytes, in hexadecimal.
    pub(crate) sha256: String,
}

impl Digest {
    /// Walks a frame, piece by piece, once.
    pub(crate) fn read<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>) {
        use sha2::Digest as _;
        let mut hash = Sha256::new();
        self.hdr.clear();
        let mut room = HDR;
        for piece in pieces {
            hash.update(piece);
            let shown = piece.len().min(room);
            push_hex(&mut self.hdr, &piece[..shown]);
            room -= shown;
        }
        self.sha256.clear();
        push_hex(&mut self.sha256, &hash.finalize());
    }
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    // Formatting each byte takes longer than hashing it.
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    for byte in bytes {
        text.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}
