//! What a command writes to besides its report.

use std::path::Path;

use crate::args::Paths;
use crate::capture_file::CaptureFile;
use crate::failure::Failure;
use crate::lines::Lines;
use crate::source;

/// The lines of `--json` and the capture of `-o`, where they are asked for.
pub(crate) struct Outlets {
    pub(crate) lines: Option<Lines>,
    pub(crate) capture: Option<CaptureFile>,
}

impl Outlets {
    /// Opens them: nothing that is read, and no two of the same.
    pub(crate) fn create(paths: &Paths) -> Result<Self, Failure> {
        let json = paths.json.as_deref().filter(|_| !paths.json_to_stdout());
        let output = paths.output.as_deref();
        let clash = |path: &Path, what: &str| {
            let path = path.display();
            Failure::Usage(format!(
                "{path}: {what}, which writing would destroy: name another file"
            ))
        };
        for path in json.iter().chain(&output) {
            if paths.files.iter().any(|input| source::is_same_file(input, path)) {
                return Err(clash(path, "an input"));
            }
        }
        let lines = paths.json.as_deref().map(Lines::create).transpose()?;
        if let (Some(json), Some(output)) = (json, output)
            && source::is_same_file(json, output)
        {
            return Err(clash(output, "where --json writes"));
        }
        Ok(Self { lines, capture: output.map(CaptureFile::create).transpose()? })
    }
}
