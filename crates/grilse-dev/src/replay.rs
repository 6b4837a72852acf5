//! A capture as a device that receives.
//!
//! The file is the wire: what it holds is written to frames of a page pool as a NIC would do it,
//! and the packets built on those frames are like any other device's. Memory is that of the pool,
//! however long the file is.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard};

use grilse_mem::{FrameLedger, FramePool, PoolError};
use grilse_packet::{Batch, Ctx, DropReason, HEADROOM, MAX_FRAGS, Skb};
use grilse_wire::dissect::{self, Flow, Fragment};
use grilse_wire::eth::ethertype;
use grilse_wire::{Csum, GsoType, Meta, VlanTag, link, tcp, toeplitz, udp};

use crate::device::{Caps, Device, Received, RxCsum};
use crate::fault::Fault;
use crate::pcap::{self, Interface, Record};

/// Bytes in a frame of the pool: one page, so that 64 KiB fit head and fragments.
const FRAME_SIZE: u32 = 4096;
/// Frames in the pool: twice what the longest record takes, [`pcap::MAX_BLOCK`].
const FRAMES: u32 = 2 * pcap::MAX_BLOCK / FRAME_SIZE;
/// Bytes of a packet in its head frame. What is left at the frame's end is never used.
const HEAD_BYTES: usize = FRAME_SIZE as usize - HEADROOM;

/// What the device does to frames as it receives them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offloads {
    /// Hash the flow, as a NIC with RSS does.
    pub hash: bool,
    /// Say this of checksums.
    pub csum: RxCsum,
    /// Take the outer VLAN tag out of the frame.
    pub vlan: bool,
}

/// Frames to receive captures into, several of them in turn: memory is that of one pool, however
/// many captures there are. Handles to it are clones of each other.
#[derive(Clone, Debug)]
pub struct ReplayPool(Arc<Mutex<FramePool>>);

impl ReplayPool {
    /// Frames for two records of the longest kind ([`pcap::MAX_BLOCK`]); their memory is touched as
    /// it is first needed.
    ///
    /// # Errors
    /// Where there is no memory for them.
    pub fn new() -> Result<Self, PoolError> {
        Ok(Self(Arc::new(Mutex::new(FramePool::new(FRAMES, FRAME_SIZE, None)?))))
    }

    /// Where the frames are.
    pub fn ledger(&self) -> FrameLedger {
        self.lock().ledger()
    }

    fn lock(&self) -> MutexGuard<'_, FramePool> {
        // A pool is whole at every step: one that panicked elsewhere took frames and no more.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A capture that is received.
#[derive(Debug)]
pub struct Replay<R> {
    caps: Caps,
    reader: pcap::Reader<R>,
    offloads: Offloads,
    pool: ReplayPool,
    seq: u64,
    /// A record that found no frames, and waits for some to come back.
    waiting: Option<Waiting>,
    fault: Option<Fault>,
    notes: Option<Notes>,
}

/// What packets cannot carry of the records that they came from, kept for whoever writes them
/// again.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<NoteTable>>);

/// The contents of [`Notes`].
#[derive(Debug, Default)]
pub struct NoteTable {
    /// The interfaces described so far.
    pub interfaces: Vec<Interface>,
    /// One note for each packet under way, by [`Meta::seq`]; whoever is done with a packet removes
    /// its note.
    pub records: HashMap<u64, Note>,
}

/// One record's note.
#[derive(Clone, Debug)]
pub struct Note {
    /// Time in ticks of the interface.
    pub ticks: u64,
    /// Length on the wire in bytes, as the record states it.
    pub orig_len: u32,
    /// Comments, as they are.
    pub comments: Vec<Vec<u8>>,
}

impl Notes {
    /// The table, for as long as the guard lives.
    pub fn lock(&self) -> MutexGuard<'_, NoteTable> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[derive(Debug)]
struct Waiting {
    meta: Meta,
    bytes: Box<[u8]>,
}

impl<R: Read> Replay<R> {
    /// Receives from `reader`, into frames of its own; `name` stands in messages.
    ///
    /// # Errors
    /// Where there is no memory for frames.
    pub fn new(name: &str, reader: pcap::Reader<R>, offloads: Offloads) -> Result<Self, PoolError> {
        Ok(Self::on(&ReplayPool::new()?, name, reader, offloads))
    }

    /// Receives from `reader`, into frames of `pool`.
    pub fn on(pool: &ReplayPool, name: &str, reader: pcap::Reader<R>, offloads: Offloads) -> Self {
        Self {
            caps: Caps {
                name: name.to_owned(),
                rx: true,
                tx: false,
                rx_hash: offloads.hash,
                rx_csum: offloads.csum,
                vlan_offload: offloads.vlan,
                tx_gso: GsoType::default(),
                tx_csum: false,
                max_frame: 0,
            },
            reader,
            offloads,
            pool: pool.clone(),
            seq: 0,
            waiting: None,
            fault: None,
            notes: None,
        }
    }

    /// Keeps notes from now on.
    pub fn notes(&mut self) -> Notes {
        self.notes.get_or_insert_default().clone()
    }

    /// Where the frames are.
    pub fn frames(&self) -> FrameLedger {
        self.pool.ledger()
    }

    /// Brings one record into `out`, which has room.
    fn receive(
        &mut self,
        ctx: &mut Ctx,
        pool: &mut FramePool,
        out: &mut Batch,
    ) -> Result<Step, Fault> {
        let Self { caps, reader, offloads, seq, waiting, notes, .. } = self;
        if let Some(Waiting { meta, bytes }) = waiting {
            let built = build(ctx, pool, *meta, bytes);
            return Ok(match built {
                Some(skb) => {
                    self.waiting = None;
                    hand_on(out, skb)
                }
                None => Step::Short,
            });
        }
        let record = match reader.next() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(Step::Ended),
            Err(source) => return Err(Fault::Read { device: caps.name.clone(), source }),
        };
        let Some(link) = link::Type::from_pcap(record.described.link_type) else {
            return Err(Fault::LinkType {
                device: caps.name.clone(),
                record: record.index,
                link_type: record.described.link_type,
            });
        };
        let mut meta = Meta {
            seq: *seq,
            time_ns: u64::try_from(record.time.ns()).unwrap_or(0),
            interface: record.interface,
            ..Meta::default()
        };
        *seq += 1;
        if (record.orig_len as usize) > record.data.len() {
            meta.wire_len = record.orig_len;
        }
        if link.network(record.data).is_err() {
            ctx.drop_unborn(&meta, record.data.len(), DropReason::LinkTruncated);
            return Ok(Step::Taken);
        }
        describe(&mut meta, link, record.data, offloads);
        let built = build(ctx, pool, meta, record.data);
        if built.is_none() {
            *waiting = Some(Waiting { meta, bytes: record.data.into() });
        }
        if let Some(notes) = notes {
            let mut table = notes.lock();
            table.records.insert(meta.seq, Note::of(&record));
            let known = table.interfaces.len();
            table.interfaces.extend_from_slice(&reader.interfaces()[known..]);
        }
        Ok(built.map_or(Step::Short, |skb| hand_on(out, skb)))
    }
}

enum Step {
    Taken,
    /// Frames or shells are short: the record waits.
    Short,
    Ended,
}

fn hand_on(out: &mut Batch, skb: Skb) -> Step {
    let pushed = out.push(skb);
    debug_assert!(pushed.is_ok(), "the caller has checked for room");
    Step::Taken
}

impl<R: Read + Send> Device for Replay<R> {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn rx(&mut self, ctx: &mut Ctx, out: &mut Batch, budget: usize) -> Result<Received, Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let pool = self.pool.clone();
        let mut pool = pool.lock();
        let mut taken = 0;
        while taken < budget && out.room() > 0 {
            match self.receive(ctx, &mut pool, out) {
                Ok(Step::Taken) => taken += 1,
                Ok(Step::Short) => break,
                Ok(Step::Ended) => return Ok(Received { taken, ended: true }),
                // What came before the fault is handed on first.
                Err(fault) if taken > 0 => {
                    self.fault = Some(fault);
                    break;
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(Received { taken, ended: false })
    }

    fn tx(&mut self, _ctx: &mut Ctx, _batch: &mut Batch) -> Result<usize, Fault> {
        Err(Fault::Direction { device: self.caps.name.clone(), asked: "send" })
    }
}

impl Note {
    fn of(record: &Record<'_>) -> Self {
        Self {
            ticks: record.time.ticks,
            orig_len: record.orig_len,
            comments: record.comments.clone().map(<[u8]>::to_vec).collect(),
        }
    }
}

/// Says beside the frame what a device with these offloads says of it.
fn describe(meta: &mut Meta, link: link::Type, frame: &[u8], offloads: &Offloads) {
    let Ok((network, protocol)) = link.network(frame) else { return };
    (meta.network, meta.protocol) = (network, protocol);
    let reads_flow = offloads.hash || offloads.csum != RxCsum::None;
    if reads_flow && let Ok(flow) = dissect::dissect(frame, usize::from(network), protocol) {
        if offloads.hash {
            meta.hash = flow.hash(&toeplitz::MICROSOFT);
        }
        meta.csum = csum_of(&flow, offloads.csum);
    }
    strip(meta, link, frame, offloads);
}

/// What a device that says `csum` of whole TCP and UDP packets says of this one.
fn csum_of(flow: &Flow, csum: RxCsum) -> Csum {
    let field = match flow.protocol {
        tcp::PROTOCOL => tcp::CHECK,
        udp::PROTOCOL => udp::CHECK,
        _ => return Csum::None,
    };
    let (Some(transport), Fragment::No) = (flow.transport, flow.fragment) else {
        return Csum::None;
    };
    match csum {
        RxCsum::None => Csum::None,
        RxCsum::Valid => Csum::Unnecessary { level: 0 },
        RxCsum::Partial => Csum::Partial { start: transport as u16, offset: field as u16 },
    }
}

/// Notes the tag that [`build`] leaves out of the frame.
fn strip(meta: &mut Meta, link: link::Type, frame: &[u8], offloads: &Offloads) {
    let tagged = matches!(meta.protocol, ethertype::VLAN | ethertype::QINQ);
    if !offloads.vlan || link != link::Type::Ethernet || !tagged || frame.len() < 18 {
        return;
    }
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    meta.vlan = Some(VlanTag { tpid: meta.protocol, tci: word(14) });
    meta.protocol = word(16);
    if let Csum::Partial { start, .. } = &mut meta.csum {
        *start -= 4;
    }
}

/// Writes a frame to the pool and builds a packet on it; `None` where frames or shells are short.
fn build(ctx: &mut Ctx, pool: &mut FramePool, meta: Meta, frame: &[u8]) -> Option<Skb> {
    // A tag that was taken out stood behind the addresses.
    let (front, mut rest) = match meta.vlan {
        Some(_) => (&frame[..12], &frame[16..]),
        None => (&frame[..0], frame),
    };
    let frames = (frame.len() / HEAD_BYTES) as u32 + 1;
    if frames > ctx.available_frames(pool) {
        return None;
    }
    let mut skb = build_one(ctx, pool, front, &mut rest)?;
    while !rest.is_empty() {
        let more = build_one(ctx, pool, &[], &mut rest)?;
        skb.chain(more).ok()?;
    }
    *skb.meta_mut() = meta;
    Some(skb)
}

/// Builds a packet of `front` and as much of `rest` as head and fragments hold, and takes that off
/// `rest`.
fn build_one(ctx: &mut Ctx, pool: &mut FramePool, front: &[u8], rest: &mut &[u8]) -> Option<Skb> {
    let mut head = ctx.take_frame(pool)?;
    let room = &mut head.bytes_mut()?[HEADROOM..];
    room[..front.len()].copy_from_slice(front);
    let len = front.len() + fill(&mut room[front.len()..], rest);
    let mut skb = ctx.build(head, HEADROOM, len).ok()?;
    for _ in 0..MAX_FRAGS {
        if rest.is_empty() {
            break;
        }
        let mut frag = ctx.take_frame(pool)?;
        let len = fill(frag.bytes_mut()?, rest);
        frag.set_range(0..len);
        skb.add_frag(frag).ok()?;
    }
    Some(skb)
}

/// Moves what fits from the front of `from` to `to`, and returns how much that was.
fn fill(to: &mut [u8], from: &mut &[u8]) -> usize {
    let (now, later) = from.split_at(to.len().min(from.len()));
    to[..now.len()].copy_from_slice(now);
    *from = later;
    now.len()
}
