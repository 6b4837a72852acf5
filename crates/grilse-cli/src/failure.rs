//! How a command can end other than well, and the exit code of each way.

use std::{fmt, io};

use grilse::{Fault, OpenError, pcap};

/// Why a command ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Asked for something that there is not; says what there is.
    Usage(String),
    /// An input is no capture.
    NotACapture(String),
    /// An input was damaged; its readable part was processed.
    Damaged(String),
    /// A law was broken: ours is the fault.
    Broken(String),
    /// The system refused; says what to do.
    System(String),
    /// Standard output was closed by its reader.
    ClosedPipe,
}

impl Failure {
    /// Exit code: 1 damaged input or a broken law, 2 wrong usage or no capture at all, 3 the system refused.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::ClosedPipe => 0,
            Self::Damaged(_) | Self::Broken(_) => 1,
            Self::Usage(_) | Self::NotACapture(_) => 2,
            Self::System(_) => 3,
        }
    }

    /// Output to `path` failed.
    pub(crate) fn output(path: &str, source: &io::Error) -> Self {
        let mend = match source.kind() {
            io::ErrorKind::BrokenPipe => return Self::ClosedPipe,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space, or write elsewhere"
            }
            io::ErrorKind::FileTooLarge => "raise the limit on file sizes (ulimit -f)",
            io::ErrorKind::NotFound => "create the folder first",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "write to a place that you own"
            }
            io::ErrorKind::IsADirectory => "name a file in it",
            _ => "write elsewhere",
        };
        Self::System(format!("{path}: {source}: {mend}"))
    }

    /// Input from `path` failed.
    pub(crate) fn input(path: &str, source: &io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::IsADirectory => {
                Self::NotACapture(format!("{path}: a directory, not a capture: name a file in it"))
            }
            io::ErrorKind::NotFound => {
                Self::System(format!("{path}: no such file: check the name"))
            }
            io::ErrorKind::PermissionDenied => {
                Self::System(format!("{path}: {source}: ask its owner for the right to read it"))
            }
            _ => Self::System(format!("{path}: {source}: copy the file elsewhere and try again")),
        }
    }

    /// Reading the capture at `path` ended early.
    pub(crate) fn capture(path: &str, error: &pcap::Error) -> Self {
        match error {
            pcap::Error::Io(source) => Self::input(path, source),
            pcap::Error::NotACapture => Self::NotACapture(format!(
                "{path}: {error}: capture with tcpdump -w or dumpcap, or convert with editcap"
            )),
            pcap::Error::Truncated { record, .. } => Self::Damaged(format!(
                "{path}: frame {record} is {error}; all frames before it were processed: capture \
                 anew, or copy the whole ones with editcap"
            )),
            pcap::Error::Damaged { record, .. } | pcap::Error::TooLong { record, .. } => {
                Self::Damaged(format!(
                    "{path}: frame {record} is {error}; all frames before it were processed: \
                     repair the file with pcapfix, or capture anew"
                ))
            }
        }
    }

    /// The packet that begins with frame `frame` was not written.
    pub(crate) fn unwritten(frame: u64, fault: Fault) -> Self {
        match fault {
            Fault::Write { source: pcap::WriteError::Io { .. }, .. } => fault.into(),
            Fault::Write { device, source } => {
                let mend = match source {
                    pcap::WriteError::TooLong { .. } => ": write a .pcap file, without comments",
                    _ => "",
                };
                Self::Usage(format!("{device}: frame {frame}: {source}{mend}"))
            }
            other => other.into(),
        }
    }
}

/// What befell a command that went on.
#[derive(Debug, Default)]
pub(crate) struct Gravest(Option<Failure>);

impl Gravest {
    /// Keeps the failure with the higher exit code for the end, and prints the other.
    pub(crate) fn add(&mut self, result: Result<(), Failure>) {
        let Err(new) = result else { return };
        let Some(known) = self.0.take() else {
            self.0 = Some(new);
            return;
        };
        let (keep, print) = match known.exit_code() >= new.exit_code() {
            true => (known, new),
            false => (new, known),
        };
        if !matches!(print, Failure::ClosedPipe) {
            eprintln!("grilse: {print}");
        }
        self.0 = Some(keep);
    }

    /// The gravest, if anything befell.
    pub(crate) fn result(self) -> Result<(), Failure> {
        self.0.map_or(Ok(()), Err)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match &fault {
            Fault::Read { device, source } => Self::capture(device, source),
            Fault::Write { device, source: pcap::WriteError::Io { source, records } } => {
                match Self::output(device, source) {
                    Self::System(text) if *records > 0 => {
                        Self::System(format!("{text}; {records} whole records were written"))
                    }
                    other => other,
                }
            }
            Fault::LinkType { record, .. } => {
                let text = format!("{fault}: keep the interfaces that are, with tshark -Y and -w");
                match record {
                    0 => Self::NotACapture(text),
                    _ => Self::Damaged(format!("{text}; all frames before it were processed")),
                }
            }
            Fault::Write { .. } => Self::Usage(fault.to_string()),
            Fault::Gone { .. } => {
                Self::System(format!("{fault}: see that there is somebody at its other end"))
            }
            _ => Self::System(fault.to_string()),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Fault(fault) => fault.into(),
            OpenError::System { .. } => Self::System(error.to_string()),
            _ => Self::Usage(error.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text)
            | Self::NotACapture(text)
            | Self::Damaged(text)
            | Self::Broken(text)
            | Self::System(text) => f.write_str(text),
            Self::ClosedPipe => f.write_str("standard output was closed"),
        }
    }
}
