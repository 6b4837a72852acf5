//! Writing a capture into a file that stays readable when the disk fills.

use std::fs::File;
use std::io;
use std::path::Path;

use super::{Format, Interface, Packet, WriteError, Writer};

/// A [`Writer`] into a file. When the file system refuses, the file is cut behind its last whole
/// record, so it ends as a capture ends.
#[derive(Debug)]
pub struct FileWriter(Writer<File>);

impl FileWriter {
    /// Creates the file, or empties one that is there.
    ///
    /// # Errors
    /// Those of [`File::create`].
    pub fn create(path: &Path, format: Format) -> io::Result<Self> {
        Ok(Self(Writer::new(File::create(path)?, format)))
    }

    /// As [`Writer::interface`].
    pub fn interface(&mut self, interface: &Interface) -> u32 {
        self.0.interface(interface)
    }

    /// As [`Writer::interfaces`].
    pub fn interfaces(&self) -> &[Interface] {
        self.0.interfaces()
    }

    /// As [`Writer::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&mut self, packet: &Packet<'_>) -> Result<(), WriteError> {
        let result = self.0.write(packet);
        self.cut_on_failure(result)
    }

    /// As [`Writer::records`].
    pub fn records(&self) -> u64 {
        self.0.records()
    }

    /// As [`Writer::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(&mut self) -> Result<u64, WriteError> {
        let result = self.0.finish();
        self.cut_on_failure(result)
    }

    fn cut_on_failure<T>(&mut self, result: Result<T, WriteError>) -> Result<T, WriteError> {
        if let Err(WriteError::Io { .. }) = result {
            let whole = self.0.whole_bytes();
            // A device or a pipe cannot be cut; what it took is gone either way, and the write's
            // own error says more than this one would.
            let _ = self.0.sink().set_len(whole);
        }
        result
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        let result = self.0.flush();
        let _ = self.cut_on_failure(result);
    }
}
