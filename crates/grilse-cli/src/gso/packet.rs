//! A packet of the input, and the frames that it becomes.

use grilse::gso::{self, Checksums, Invalid, Segments};
use grilse::pcap::{self, Grilse1, Interface, Member};
use grilse::wire::{Gso, Linear, Meta, Packet as _, link};

use super::metadata::{self, Contradiction};

/// Bytes of the longest segment: headers and payload have offsets of 16 bits.
pub(super) const LONGEST: usize = 1 << 17;

/// What a capture says of a packet, kept beyond the next record.
pub(super) struct Record {
    /// Its number.
    pub(super) from: u64,
    interface: u32,
    ticks: u64,
    orig_len: u32,
    data: Vec<u8>,
    comments: Vec<Vec<u8>>,
}

/// A packet, with what is left of it.
pub(super) struct Packet {
    from: u64,
    interface: u32,
    ticks: u64,
    orig_len: u32,
    gso: Gso,
    body: Body,
    outcome: Outcome,
    /// The frames that it stands for; none where nobody said.
    members: Vec<Member>,
    comments: Vec<Vec<u8>>,
    /// Comments, in front of all, that belong to the packet and so go with its first frame.
    own_comments: usize,
    segs: usize,
    made: usize,
    /// Comments that went with the frames made.
    noted: usize,
}

enum Body {
    Whole(Linear),
    Cut(Box<Segments<Linear>>),
}

/// What became of a packet.
pub(super) enum Outcome {
    /// Its frames are again what its comment says.
    Restored,
    /// It was longer than the MTU, and was cut.
    Cut,
    /// It is short enough.
    Whole,
    /// It should be cut, and cannot be.
    Uncut(Invalid),
    /// What its comment says cannot be.
    Contradicted(Contradiction),
}

impl Outcome {
    /// Its name in the JSON and in the report.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Cut => "cut",
            Self::Whole => "whole",
            Self::Uncut(_) | Self::Contradicted(_) => "refused",
        }
    }

    /// Why a packet was not cut: the reason's name, and all that is to be said.
    pub(super) fn refusal(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Uncut(why) => Some((why.name(), why.to_string())),
            Self::Contradicted(wrong) => Some(("bad-comment", wrong.to_string())),
            Self::Restored | Self::Cut | Self::Whole => None,
        }
    }
}

/// One frame, lent.
pub(super) struct Frame<'a> {
    /// The packet that it comes of.
    pub(super) packet: &'a Packet,
    /// Which of the packet's frames it is, from 0.
    pub(super) segment: usize,
    /// Its number in the capture that was coalesced, if that is known.
    pub(super) number: Option<u64>,
    pub(super) interface: u32,
    pub(super) ticks: u64,
    pub(super) orig_len: u32,
    pub(super) data: &'a [u8],
    pub(super) comments: &'a [Vec<u8>],
}

impl Record {
    pub(super) fn of(record: &pcap::Record<'_>) -> Self {
        Self {
            from: record.index,
            interface: record.interface,
            ticks: record.time.ticks,
            orig_len: record.orig_len,
            data: record.data.to_vec(),
            comments: record.comments.clone().map(<[u8]>::to_vec).collect(),
        }
    }

    /// Its metadata as far as the record tells; `None`: it ends within its link header.
    fn meta(&self, link: link::Type) -> Option<Meta> {
        let (network, protocol) = link.network(&self.data).ok()?;
        let wire_len = if self.orig_len as usize > self.data.len() { self.orig_len } else { 0 };
        Some(Meta { network, protocol, wire_len, ..Meta::default() })
    }
}

impl Packet {
    /// Looks at a record of a capture with these interfaces, and makes ready to cut it: by its
    /// comment, or at `mtu` bytes of IP.
    pub(super) fn open(
        record: Record,
        link: link::Type,
        interfaces: &[Interface],
        mtu: u16,
    ) -> Self {
        let (ours, foreign) = Grilse1::split(record.comments.iter().map(Vec::as_slice));
        let known = metadata::read(&ours, record.interface, interfaces, foreign.len());
        let foreign: Vec<Vec<u8>> = foreign.into_iter().map(<[u8]>::to_vec).collect();
        match (known, record.meta(link)) {
            (Ok(Some(value)), Some(meta)) if value.gso.size != 0 => {
                Self::restored(record, foreign, value, meta)
            }
            (Ok(Some(value)), _) => {
                let mut packet = Self::whole(record, Meta::default(), Outcome::Restored);
                packet.give(foreign, value.members);
                packet
            }
            (Ok(None), Some(meta)) => Self::cut_at(record, meta, mtu),
            (Ok(None), None) => Self::whole(record, Meta::default(), Outcome::Whole),
            (Err(wrong), _) => Self::whole(record, Meta::default(), Outcome::Contradicted(wrong)),
        }
    }

    /// A packet that stays as it is.
    fn whole(mut record: Record, meta: Meta, outcome: Outcome) -> Self {
        let body = Linear::new(std::mem::take(&mut record.data), meta);
        Self::of(record, Body::Whole(body), outcome)
    }

    fn of(record: Record, body: Body, outcome: Outcome) -> Self {
        let Record { from, interface, ticks, orig_len, comments, .. } = record;
        Self {
            from,
            interface,
            ticks,
            orig_len,
            gso: Gso::default(),
            body,
            outcome,
            members: Vec::new(),
            own_comments: comments.len(),
            comments,
            segs: 1,
            made: 0,
            noted: 0,
        }
    }

    /// Shares out comments among members. Those that a person wrote on the packet since are more
    /// than the members had.
    fn give(&mut self, mut comments: Vec<Vec<u8>>, members: Vec<Member>) {
        let theirs: usize = members.iter().map(|member| member.comments as usize).sum();
        self.own_comments = comments.len() - theirs;
        comments.rotate_right(self.own_comments);
        (self.comments, self.members) = (comments, members);
    }

    /// A super-packet of which the comment says what it is.
    fn restored(mut record: Record, foreign: Vec<Vec<u8>>, value: Grilse1, mut meta: Meta) -> Self {
        (meta.gso, meta.csum, meta.inner_network) = (value.gso, value.csum, value.inner_network);
        let (wire_len, len) = (meta.wire_len as usize, record.data.len());
        if wire_len > len {
            let why = Invalid::Truncated { end: wire_len, len };
            return Self::whole(record, meta, Outcome::Uncut(why));
        }
        let data = Linear::new(std::mem::take(&mut record.data), meta);
        let members = value.members.len();
        let (data, wrong) = match gso::segment(data, Checksums::Finish) {
            Ok(segments) if segments.remaining() == members => {
                let body = Body::Cut(Box::new(segments));
                let mut packet = Self::of(record, body, Outcome::Restored);
                (packet.segs, packet.gso) = (members, value.gso);
                packet.give(foreign, value.members);
                return packet;
            }
            Ok(segments) => {
                let cut = segments.remaining();
                (segments.into_packet(), Contradiction::Cut { cut, members })
            }
            Err(rejected) => (rejected.packet, Contradiction::Invalid(rejected.why)),
        };
        Self::of(record, Body::Whole(data), Outcome::Contradicted(wrong))
    }

    /// A packet of which nothing is said.
    fn cut_at(mut record: Record, meta: Meta, mtu: u16) -> Self {
        let mut data = Linear::new(std::mem::take(&mut record.data), meta);
        let outcome = match gso::plan(&mut data, mtu.into()) {
            Ok(false) => Outcome::Whole,
            Err(why) => Outcome::Uncut(why),
            Ok(true) => match gso::segment(data, Checksums::Finish) {
                Ok(segments) => {
                    let (gso, segs) = (segments.packet().meta().gso, segments.remaining());
                    let body = Body::Cut(Box::new(segments));
                    return Self { gso, segs, ..Self::of(record, body, Outcome::Cut) };
                }
                Err(rejected) => {
                    data = rejected.packet;
                    Outcome::Uncut(rejected.why)
                }
            },
        };
        Self::of(record, Body::Whole(data), outcome)
    }

    /// Number of the packet in its capture.
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    /// How it was cut; all zero where it was not.
    pub(super) fn gso(&self) -> Gso {
        self.gso
    }

    pub(super) fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// What is wrong with its comment.
    pub(super) fn contradiction(&self) -> Option<&Contradiction> {
        match &self.outcome {
            Outcome::Contradicted(wrong) => Some(wrong),
            _ => None,
        }
    }

    /// How many frames it becomes in all.
    pub(super) fn segs(&self) -> usize {
        self.segs
    }

    /// How many of them are still to be made.
    pub(super) fn left(&self) -> usize {
        self.segs - self.made
    }

    /// Number, in the capture that was coalesced, of the frame that it makes next.
    pub(super) fn next(&self) -> Option<u64> {
        self.members.get(self.made).map(|member| member.frame)
    }

    /// Bytes of memory that its data takes.
    pub(super) fn bytes(&self) -> usize {
        match &self.body {
            Body::Whole(packet) => packet.len(),
            Body::Cut(segments) => segments.packet().len(),
        }
    }

    /// Makes the next of the frames that are [left](Self::left), of which there is one; what has to be
    /// written for it is written to `buffer`, of [`LONGEST`] bytes.
    pub(super) fn frame<'a>(&'a mut self, buffer: &'a mut [u8]) -> Frame<'a> {
        let written = match &mut self.body {
            Body::Whole(_) => None,
            Body::Cut(segments) => segments.write(buffer).expect("no segment is longer"),
        };
        let segment = self.made;
        self.made += 1;
        let own = if segment == 0 { self.own_comments } else { 0 };
        let member = self.members.get(segment);
        let first = self.noted;
        self.noted += own + member.map_or(0, |member| member.comments as usize);
        let data = match &self.body {
            Body::Whole(packet) => packet.bytes(),
            Body::Cut(_) => &buffer[..written.unwrap_or(0)],
        };
        let (number, interface, ticks, orig_len) = match member {
            Some(member) => (Some(member.frame), member.interface, member.ticks, member.orig_len),
            None if written.is_some() => (None, self.interface, self.ticks, data.len() as u32),
            None => (None, self.interface, self.ticks, self.orig_len),
        };
        let comments = &self.comments[first..self.noted];
        Frame { packet: self, segment, number, interface, ticks, orig_len, data, comments }
    }
}
