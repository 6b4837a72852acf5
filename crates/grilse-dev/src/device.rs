//! What a device is to a worker: bursts of packets in, bursts of packets out.

use std::os::fd::BorrowedFd;

use grilse_packet::{Batch, Ctx};
use grilse_wire::GsoType;

use crate::fault::Fault;

/// A source and sink of packets. One call moves a burst, so a virtual call per burst costs nothing
/// that can be measured, and layers are devices around devices. One value is one queue: it belongs to
/// the worker that polls it.
///
/// A packet that a device takes is either handed on, or dropped through the context with a reason.
pub trait Device: Send {
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

    /// Packets that were sent and not taken back: the device may still read them.
    fn in_flight(&self) -> u32 {
        0
    }

    /// Asks to be told of work, before its worker sleeps; says how it will be told, or that there is
    /// work already (`napi_complete_done`, which lets interrupts through again). `sending`: a packet
    /// waits for room to be sent, and that room is work too.
    fn arm(&mut self, _sending: bool) -> Armed<'_> {
        Armed::Ready
    }

    /// When it has work by itself, of which [`arm`](Self::arm) does not tell: in nanoseconds of the
    /// engine's clock.
    fn due_ns(&self) -> Option<u64> {
        None
    }

    /// Completes what it has begun: sends what it was given and holds back, and writes what it
    /// gathers. Nothing is asked of the device after that.
    ///
    /// # Errors
    /// [`Fault`]: some of it is lost.
    fn finish(&mut self, _ctx: &mut Ctx) -> Result<(), Fault> {
        Ok(())
    }

    /// What the device has counted.
    fn counters(&self) -> Counters {
        Counters::default()
    }
}

/// How a worker that sleeps learns that a device has work.
#[derive(Debug)]
pub enum Armed<'a> {
    /// There is work, or may be at any time.
    Ready,
    /// By this descriptor, which becomes readable for any work.
    Event(BorrowedFd<'a>),
    /// By this one, which becomes readable when packets have come, and writable when there is room
    /// for one that waits.
    Socket(BorrowedFd<'a>),
    /// There is none before [`Device::due_ns`], or ever.
    Never,
}

/// What a device has counted since it was opened. A packet that stands for several frames is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Packets handed on.
    pub rx_packets: u64,
    /// Their bytes, link headers included.
    pub rx_bytes: u64,
    /// Packets that were lost before they reached the program, as far as the system tells: its queue
    /// was full.
    pub rx_missed: u64,
    /// Packets taken for sending.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Times that there was no room to send.
    pub tx_full: u64,
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
    /// It completes partial checksums of what it sends.
    pub tx_csum: bool,
    /// Longest frame that it sends, in bytes with the link header but without a tag that stands
    /// beside it; super-packets that it takes may be longer.
    pub max_frame: usize,
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
