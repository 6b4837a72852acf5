//! `pcap:FILE`: a capture by name. Received from, it is played, at its own pace and as often as is
//! asked for; sent to, it is written.
//!
//! Every packet keeps the time that its record states, also when the capture is played again; the
//! numbers of packets go on. The pace is that of the records' times, and the first record of each turn
//! is due with the last of the turn before. A capture is one queue: who shares it out among
//! workers would have to look into packets, which steering does.

use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::Path;

use grilse_packet::{Batch, Ctx, Skb};

use crate::device::{Armed, Caps, Counters, Device, Received, RxCsum};
use crate::fault::Fault;
use crate::open::{OpenError, Opener, Queues, Wanted};
use crate::pcap::{self, Format, Reader};
use crate::recorder::Recorder;
use crate::replay::{Offloads, Replay, ReplayPool};
use crate::spec::Spec;

pub(crate) const OPTIONS: &[(&str, &str, &str)] = &[
    ("speed", "max | real", "play as fast as it is taken, or by the times in the file (max)"),
    ("loop", "N", "play it so often; 0: again and again (1)"),
];

/// A NIC with RSS, which takes VLAN tags out and says nothing of checksums.
const OFFLOADS: Offloads = Offloads { hash: true, csum: RxCsum::None, vlan: true };

/// A capture that is played.
#[derive(Debug)]
struct Playback {
    file: File,
    pool: ReplayPool,
    replay: Replay<BufReader<File>>,
    /// Turns after this one; `None`: without end.
    turns: Option<u64>,
    /// Whether this turn has brought anything: without that there is no next.
    brought: bool,
    pace: Option<Pace>,
    /// A packet before its time, and that.
    early: Option<(u64, Skb)>,
    ended: bool,
    /// Number of the next packet.
    seq: u64,
    counters: Counters,
}

/// When packets are due: as long after each other as the file says.
#[derive(Debug, Default)]
struct Pace {
    /// Time in the file, and on the engine's clock, of the first record of this turn.
    since: Option<(u64, u64)>,
    /// When the packet before was due.
    last_ns: Option<u64>,
}

impl Pace {
    /// When the next packet is due, which has this time.
    fn due_ns(&mut self, time_ns: u64, now_ns: u64) -> u64 {
        let begin_ns = self.last_ns.unwrap_or(now_ns);
        let (first_ns, since_ns) = *self.since.get_or_insert((time_ns, begin_ns));
        // A record older than the first is due with it.
        let due_ns = since_ns + time_ns.saturating_sub(first_ns);
        *self.last_ns.insert(due_ns)
    }
}

pub(crate) fn open(opener: &mut Opener, spec: &Spec, wanted: Wanted) -> Result<Queues, OpenError> {
    let path = Path::new(spec.need_target("the name of a file")?);
    let cannot = |what: &str| OpenError::Cannot { device: spec.to_string(), what: what.to_owned() };
    if wanted.queues != 1 {
        return Err(cannot("has one queue: let one worker have it"));
    }
    match wanted {
        Wanted { rx: true, tx: true, .. } => {
            Err(cannot("is either read or written: name two files"))
        }
        Wanted { tx: true, .. } => {
            if let Some((option, ..)) = OPTIONS.iter().find(|(name, ..)| spec.text(name).is_some())
            {
                return Err(cannot(&format!("is written: {option} is for what is read")));
            }
            let Some(format) = Format::of_path(path) else {
                return Err(cannot("has no suffix that tells the format: use .pcap or .pcapng"));
            };
            let name = spec.to_string();
            let create = |path: &Path| Recorder::create(&name, path, format);
            Ok(vec![Box::new(opener.files.write(&name, path, create)?)])
        }
        _ => {
            let playback = Playback::open(spec, path)?;
            opener.files.read(&playback.file);
            Ok(vec![Box::new(playback)])
        }
    }
}

impl Playback {
    fn open(spec: &Spec, path: &Path) -> Result<Self, OpenError> {
        let device = spec.to_string();
        let real = spec.choice("speed", &[("max", false), ("real", true)])?.unwrap_or(false);
        let turns = spec.number("loop", 0..=u64::MAX)?.unwrap_or(1);
        let read = |source| Fault::Read { device: device.clone(), source };
        let opened = File::open(path).map_err(pcap::Error::Io);
        let mut file = opened.map_err(read)?;
        if turns != 1 && file.rewind().is_err() {
            let what = "is no file that can be read twice: leave loop out".to_owned();
            return Err(OpenError::Cannot { device, what });
        }
        let pool = ReplayPool::new().map_err(|error| OpenError::Cannot {
            device: device.clone(),
            what: format!("has {error}"),
        })?;
        let reader = reader(&file).map_err(read)?;
        Ok(Self {
            replay: Replay::on(&pool, &device, reader, OFFLOADS),
            file,
            pool,
            turns: turns.checked_sub(1),
            brought: false,
            pace: real.then(Pace::default),
            early: None,
            ended: false,
            seq: 0,
            counters: Counters::default(),
        })
    }

    /// Begins the next turn; false where there is none.
    fn again(&mut self) -> Result<bool, Fault> {
        let more = self.turns != Some(0) && self.brought;
        if !more {
            return Ok(false);
        }
        self.turns = self.turns.map(|turns| turns - 1);
        let device = &self.replay.caps().name;
        let rewound = self.file.rewind().map_err(pcap::Error::Io);
        let reader = rewound
            .and_then(|()| reader(&self.file))
            .map_err(|source| Fault::Read { device: device.clone(), source })?;
        self.replay = Replay::on(&self.pool, device, reader, OFFLOADS);
        self.brought = false;
        if let Some(pace) = &mut self.pace {
            pace.since = None;
        }
        Ok(true)
    }

    /// Reads on, no further than to the end of this turn. Says how many records that were.
    fn read(&mut self, ctx: &mut Ctx, to: &mut Batch, budget: usize) -> Result<usize, Fault> {
        let received = self.replay.rx(ctx, to, budget)?;
        self.brought |= received.taken > 0;
        self.ended = received.ended && !self.again()?;
        Ok(received.taken)
    }

    /// Brings what is due by now; the one that is not waits.
    fn paced(&mut self, ctx: &mut Ctx, out: &mut Batch, budget: usize) -> Result<usize, Fault> {
        let mut taken = 0;
        let mut one = Batch::new();
        while taken < budget && out.room() > 0 {
            if self.early.is_none() && !self.ended {
                let read = self.read(ctx, &mut one, 1)?;
                if let (Some(skb), Some(pace)) = (one.pop(), &mut self.pace) {
                    self.early = Some((pace.due_ns(skb.meta().time_ns, ctx.now_ns), skb));
                } else if read > 0 {
                    // A record that is no frame was dropped.
                    taken += 1;
                    continue;
                }
            }
            let due = self.early.take_if(|(due_ns, _)| *due_ns <= ctx.now_ns);
            let Some((_, skb)) = due else { break };
            let pushed = out.push(skb);
            debug_assert!(pushed.is_ok(), "there was room");
            taken += 1;
        }
        Ok(taken)
    }
}

/// Reads the file from where it stands.
fn reader(file: &File) -> Result<Reader<BufReader<File>>, pcap::Error> {
    Reader::new(BufReader::new(file.try_clone().map_err(pcap::Error::Io)?))
}

impl Device for Playback {
    fn caps(&self) -> &Caps {
        self.replay.caps()
    }

    fn rx(&mut self, ctx: &mut Ctx, out: &mut Batch, budget: usize) -> Result<Received, Fault> {
        let before = out.len();
        let received = match self.pace {
            Some(_) => self.paced(ctx, out, budget),
            None if self.ended => Ok(0),
            None => self.read(ctx, out, budget),
        };
        for skb in out.iter_mut().skip(before) {
            skb.meta_mut().seq = self.seq;
            self.seq += 1;
            self.counters.rx_packets += 1;
            self.counters.rx_bytes += skb.len() as u64;
        }
        Ok(Received { taken: received?, ended: self.ended && self.early.is_none() })
    }

    fn tx(&mut self, ctx: &mut Ctx, batch: &mut Batch) -> Result<usize, Fault> {
        self.replay.tx(ctx, batch)
    }

    fn arm(&mut self, _sending: bool) -> Armed<'_> {
        if self.early.is_some() { Armed::Never } else { Armed::Ready }
    }

    fn due_ns(&self) -> Option<u64> {
        self.early.as_ref().map(|(due_ns, _)| *due_ns)
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
