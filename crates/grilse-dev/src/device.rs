//! What a device is to a worker: bursts of packets in, bursts of packets out.

use std::fmt;

use grilse_packet::{Batch, Ctx};
use grilse_wire::GsoType;

use crate::pcap;

/// A source and sink of packets. One call moves a burst, so a virtual call per burst costs nothing
/// that can be measured, and layers are devices around devices.
///
/// A packet that a device takes is either handed on, or dropped through the context with a reason.
pub trait Device {
    /// What the device can do.
    fn caps(&self) -> &Caps;

    /// Takes up to `budget` frames from the device, as long as `out` has room, and appends the
    /// packets to `out`; frames dropped on the way count too.
    ///
    /// # Errors
    /// [`Fault`], after which the device yields nothing more. What was received before it has been
    /// handed on.
    fn rx(&mut self, ctx: &mut Ctx, out: &mut Batch, budget: usize) -> Result<Received, Fault>;

    /// Sends packets from the front of `batch`, as many as the device takes now, and returns how
    /// many that were. The rest stays the caller's.
    ///
    /// # Errors
    /// [`Fault`]; the packet that met it is still in the batch.
    fn tx(&mut self, ctx: &mut Ctx, batch: &mut Batch) -> Result<usize, Fault>;

    /// Takes back what the device has sent, and returns how many packets that were.
    fn reap(&mut self, _ctx: &mut Ctx) -> usize {
        0
    }
}

/// What a poll of a device brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Frames taken from the device, those dropped included.
    pub taken: usize,
    /// Nothing will come any more.
    pub ended: bool,
}

/// What a device can do, and does to packets that it receives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Caps {
    /// Name in messages, such as `pcap:trace.pcap`.
    pub name: String,
    /// It receives.
    pub rx: bool,
    /// It sends.
    pub tx: bool,
    /// Received packets carry a hash of their flow.
    pub rx_hash: bool,
    /// What received packets say of their checksums.
    pub rx_csum: RxCsum,
    /// VLAN tags are taken out of received frames and put into those sent.
    pub vlan_offload: bool,
    /// Super-packets that it sends as they are, without segmentation before.
    pub tx_gso: GsoType,
}

/// What a device says of the checksums of the TCP and UDP packets that it receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RxCsum {
    /// Nothing (`CHECKSUM_NONE`): whoever needs to know sums.
    #[default]
    None,
    /// They are right (`CHECKSUM_UNNECESSARY`).
    Valid,
    /// They are still to be completed (`CHECKSUM_PARTIAL`), as between guests of one host.
    Partial,
}

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
            Self::Direction { device, asked } => write!(f, "{device} does not {asked}"),
        }
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Write { source, .. } => Some(source),
            Self::LinkType { .. } | Self::Direction { .. } => None,
        }
    }
}
