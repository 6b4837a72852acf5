//! The part of a byte stream that is in memory: a buffer that slides over it and grows only as
//! bytes arrive, so that a length field alone never makes it allocate.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

/// First size of the buffer in bytes: two pipes full.
const INITIAL: usize = 128 << 10;

#[derive(Debug)]
pub(super) struct Window<R> {
    source: R,
    buf: Vec<u8>,
    /// `buf[start..end]` is read and not taken yet.
    start: usize,
    end: usize,
    /// Offset in the stream of `buf[start]`.
    offset: u64,
}

impl<R: Read> Window<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buf: vec![0; INITIAL], start: 0, end: 0, offset: 0 }
    }

    /// Offset in the stream of the first byte that is not taken.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes that are read and not taken.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// Reads until `want` bytes are there, and says how many are: fewer only at the stream's end.
    /// Ranges that were taken before lose their meaning.
    #[inline]
    pub(super) fn fill(&mut self, want: usize) -> io::Result<usize> {
        if self.end - self.start < want {
            self.refill(want)?;
        }
        Ok(self.end - self.start)
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self, want: usize) -> io::Result<()> {
        self.buf.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < want {
            if self.end == self.buf.len() {
                self.buf.resize(self.buf.len() * 2, 0);
            }
            match self.source.read(&mut self.buf[self.end..]) {
                Ok(0) => break,
                Ok(n) => self.end += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes the next `len` bytes, which [`fill`](Self::fill) has brought; they stay readable by
    /// [`slice`](Self::slice) until the next fill.
    pub(super) fn take(&mut self, len: usize) -> Range<usize> {
        let taken = self.start..self.start + len;
        self.start = taken.end;
        self.offset += len as u64;
        taken
    }

    /// The bytes of a range that was taken.
    pub(super) fn slice(&self, taken: Range<usize>) -> &[u8] {
        &self.buf[taken]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_the_bytes_that_arrive() {
        let mut window = Window::new(&[7; 10][..]);
        assert_eq!(window.fill(usize::MAX).expect("a slice cannot fail"), 10);
        assert_eq!(window.buf.len(), INITIAL);
        let long = vec![7; 3 * INITIAL];
        let mut window = Window::new(&long[..]);
        assert_eq!(window.fill(usize::MAX).expect("a slice cannot fail"), long.len());
        assert!(window.buf.len() <= 2 * long.len());
    }

    #[test]
    fn what_is_taken_stays_until_the_next_fill() {
        let bytes: Vec<u8> = (0..=255).cycle().take(2 * INITIAL).collect();
        let mut window = Window::new(&bytes[..]);
        for want in bytes.chunks(1000) {
            assert!(window.fill(want.len()).expect("a slice cannot fail") >= want.len());
            let taken = window.take(want.len());
            assert_eq!(window.slice(taken), want);
        }
        assert_eq!(window.offset(), bytes.len() as u64);
        assert_eq!(window.fill(1).expect("a slice cannot fail"), 0);
    }
}
