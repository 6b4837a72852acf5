//! What ends a device, and what keeps one from being opened.

use std::{fmt, io};

use crate::pcap;

/// A device that cannot go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The capture cannot be read any further.
    Read {
        /// Name of the device.
        device: String,
        /// What is wrong, and where.
        source: pcap::Error,
    },
    /// The capture cannot be written.
    Write {
        /// Name of the device.
        device: String,
        /// What the system said, and how much was written.
        source: pcap::WriteError,
    },
    /// A record's interface has a link type that is not read.
    LinkType {
        /// Name of the device.
        device: String,
        /// How many records stand before it.
        record: u64,
        /// `LINKTYPE_*` number.
        link_type: u16,
    },
    /// The system refused what the device needs to go on.
    System {
        /// Name of the device.
        device: String,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The interface, or whoever had the other end, is gone.
    Gone {
        /// Name of the device.
        device: String,
    },
    /// What was sent does not come back, for longer than a device may take.
    Stuck {
        /// Name of the device.
        device: String,
        /// Frames that the device still has.
        frames: u32,
    },
    /// The device does not receive, or does not send.
    Direction {
        /// Name of the device.
        device: String,
        /// What was asked of it.
        asked: &'static str,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { device, source } => write!(f, "{device}: {source}"),
            Self::Write { device, source } => write!(f, "{device}: {source}"),
            Self::LinkType { device, record, link_type } => write!(
                f,
                "{device}: frame {record}: link type {link_type} is not read; Ethernet (1), raw IP \
                 (101, 228, 229) and Linux cooked (113, 276) are"
            ),
            Self::System { device, doing, source } => write!(f, "{device}: {doing}: {source}"),
            Self::Gone { device } => write!(f, "{device} is gone"),
            Self::Stuck { device, frames } => {
                write!(f, "{device}: {frames} frames that were sent do not come back")
            }
            Self::Direction { device, asked } => write!(f, "{device} does not {asked}"),
        }
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Write { source, .. } => Some(source),
            Self::System { source, .. } => Some(source),
            Self::LinkType { .. }
            | Self::Gone { .. }
            | Self::Stuck { .. }
            | Self::Direction { .. } => None,
        }
    }
}
