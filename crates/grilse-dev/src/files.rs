//! The files that the devices of one opener read and write: none is both, and none is written twice,
//! as a file that is created is empty.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::open::OpenError;

/// Regular files in use, by device and inode.
#[derive(Debug, Default)]
pub(crate) struct Files(Vec<(u64, u64)>);

impl Files {
    /// Notes a file that is read.
    pub(crate) fn read(&mut self, file: &File) {
        self.0.extend(file.metadata().ok().as_ref().and_then(id));
    }

    /// Creates what `device` writes, by `create`, unless it is in use.
    pub(crate) fn write<T, E: Into<OpenError>>(
        &mut self,
        device: &str,
        path: &Path,
        create: impl FnOnce(&Path) -> Result<T, E>,
    ) -> Result<T, OpenError> {
        let known = fs::metadata(path).ok().as_ref().and_then(id);
        if known.is_some_and(|known| self.0.contains(&known)) {
            let what = format!("cannot write {}: it is in use: write another", path.display());
            return Err(OpenError::Cannot { device: device.to_owned(), what });
        }
        let created = create(path).map_err(Into::into)?;
        self.0.extend(fs::metadata(path).ok().as_ref().and_then(id));
        Ok(created)
    }
}

fn id(file: &fs::Metadata) -> Option<(u64, u64)> {
    file.is_file().then(|| (file.dev(), file.ino()))
}
