//! Devices by name: what kinds there are, and how one is opened.
//!
//! Every kind is one line in [`DRIVERS`], and all that anybody knows of a kind before it is open.

use std::{fmt, io};

use crate::device::Device;
use crate::fault::Fault;
use crate::files::Files;
use crate::layer::{self, Layers};
use crate::spec::{Spec, nearest};
use crate::{generator, null, pair, playback};

/// Opens devices. Ends of one pair find each other here, and files that are in use are known.
#[derive(Debug, Default)]
pub struct Opener {
    pub(crate) pairs: pair::Pairs,
    pub(crate) files: Files,
}

/// What a device is opened for. It may be able to do more, and says so ([`Caps`](crate::Caps)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Packets must be received from it.
    pub rx: bool,
    /// Packets must be sent to it.
    pub tx: bool,
    /// Queues: one for each worker that works with it.
    pub queues: usize,
}

/// One kind of device.
#[derive(Debug)]
pub struct Driver {
    /// What stands in front of the colon.
    pub kind: &'static str,
    /// What stands behind it, for help texts.
    pub target: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Its options: name, value and meaning.
    pub options: &'static [(&'static str, &'static str, &'static str)],
    open: fn(&mut Opener, &Spec, Wanted) -> Result<Queues, OpenError>,
}

/// An open device: one queue for each worker, in order.
pub type Queues = Vec<Box<dyn Device>>;

/// The options that every kind has, layer by layer: name, value and meaning.
pub const LAYERS: &[&[(&str, &str, &str)]] = &layer::OPTIONS;

/// All kinds, in the order of help texts.
pub const DRIVERS: &[Driver] = &[
    Driver {
        kind: "gen",
        target: "",
        about: "makes up packets",
        options: generator::OPTIONS,
        open: generator::open,
    },
    Driver {
        kind: "null",
        target: "",
        about: "takes everything, and yields nothing",
        options: &[],
        open: null::open,
    },
    Driver {
        kind: "pair",
        target: "NAME",
        about: "one end of a cable within the process: whoever opens NAME second has the other",
        options: pair::OPTIONS,
        open: pair::open,
    },
    Driver {
        kind: "pcap",
        target: "FILE",
        about: "a capture, played for --rx, written for --tx; .pcap or .pcapng",
        options: playback::OPTIONS,
        open: playback::open,
    },
];

impl Opener {
    /// Opens a device, with as many queues as are wanted.
    ///
    /// # Errors
    /// [`OpenError`]; nothing is left open.
    pub fn open(&mut self, spec: &Spec, wanted: Wanted) -> Result<Queues, OpenError> {
        let Some(driver) = DRIVERS.iter().find(|driver| driver.kind == spec.kind()) else {
            return Err(OpenError::UnknownKind {
                given: spec.kind().to_owned(),
                nearest: nearest(spec.kind(), DRIVERS.iter().map(|driver| driver.kind)),
            });
        };
        let known = driver.options.iter().chain(LAYERS.iter().copied().flatten());
        spec.only(&known.map(|(name, ..)| *name).collect::<Vec<_>>())?;
        let layers = Layers::of(self, spec)?;
        let queues = (driver.open)(self, spec, wanted)?;
        Ok(layers.wrap(queues))
    }
}

/// Why a device could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no colon in it.
    NoKind {
        /// What was given.
        given: String,
    },
    /// There is no such kind.
    UnknownKind {
        /// What was given.
        given: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
    },
    /// Nothing stands behind the colon, where something must.
    NoTarget {
        /// The kind of device.
        kind: String,
        /// What it wants there.
        what: &'static str,
    },
    /// The kind has no such option.
    UnknownOption {
        /// Name of the device.
        device: String,
        /// What was given.
        given: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
    },
    /// An option is given twice.
    Twice {
        /// Name of the device.
        device: String,
        /// The option.
        option: String,
    },
    /// An option cannot have this value.
    BadOption {
        /// Name of the device.
        device: String,
        /// The option.
        option: &'static str,
        /// What was given.
        given: String,
        /// What can be given.
        allowed: String,
    },
    /// The device cannot do what it was opened for.
    Cannot {
        /// Name of the device.
        device: String,
        /// What it cannot, and what can.
        what: String,
    },
    /// The device faulted as it was opened.
    Fault(Fault),
    /// The system refused.
    System {
        /// Name of the device.
        device: String,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
        /// What to do about it.
        mend: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meant = |f: &mut fmt::Formatter<'_>, nearest: &Option<&str>| match nearest {
            Some(nearest) => write!(f, ": did you mean \"{nearest}\"?"),
            None => Ok(()),
        };
        match self {
            Self::NoKind { given } => write!(
                f,
                "\"{given}\" is no device: write its kind, a colon and its name, such as {}",
                DRIVERS
                    .iter()
                    .map(|driver| format!("{}:", driver.kind))
                    .collect::<Vec<_>>()
                    .join(" ")
            ),
            Self::UnknownKind { given, nearest } => {
                write!(f, "there are no devices of kind \"{given}\"")?;
                meant(f, nearest)
            }
            Self::NoTarget { kind, what } => write!(f, "{kind}: needs {what} behind the colon"),
            Self::UnknownOption { device, given, nearest } => {
                write!(f, "{device} has no option \"{given}\"")?;
                meant(f, nearest)
            }
            Self::Twice { device, option } => write!(f, "{device}: \"{option}\" is given twice"),
            Self::BadOption { device, option, given, allowed } => {
                write!(f, "{device}: {option}={given}: write {allowed}")
            }
            Self::Cannot { device, what } => write!(f, "{device} {what}"),
            Self::Fault(fault) => fault.fmt(f),
            Self::System { device, doing, source, mend } => {
                write!(f, "{device}: {doing}: {source}: {mend}")
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            Self::Fault(fault) => fault.source(),
            _ => None,
        }
    }
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
