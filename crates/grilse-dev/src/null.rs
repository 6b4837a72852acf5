//! A device that takes everything and yields nothing.

use grilse_packet::{Batch, Ctx};
use grilse_wire::GsoType;

use crate::device::{Armed, Caps, Counters, Device, Received, RxCsum};
use crate::fault::Fault;
use crate::open::{OpenError, Opener, Queues, Wanted};
use crate::spec::Spec;

#[derive(Debug)]
struct Null {
    caps: Caps,
    counters: Counters,
}

pub(crate) fn open(_opener: &mut Opener, spec: &Spec, wanted: Wanted) -> Result<Queues, OpenError> {
    let caps = Caps {
        name: spec.to_string(),
        rx: true,
        tx: true,
        rx_hash: false,
        rx_csum: RxCsum::None,
        vlan_offload: true,
        tx_gso: GsoType(u32::MAX),
        tx_csum: true,
        max_frame: usize::MAX,
    };
    let queue = || Null { caps: caps.clone(), counters: Counters::default() };
    Ok((0..wanted.queues).map(|_| Box::new(queue()) as Box<dyn Device>).collect())
}

impl Device for Null {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn rx(&mut self, _ctx: &mut Ctx, _out: &mut Batch, _budget: usize) -> Result<Received, Fault> {
        Ok(Received { taken: 0, ended: false })
    }

    fn tx(&mut self, ctx: &mut Ctx, batch: &mut Batch) -> Result<usize, Fault> {
        let sent = batch.len();
        while let Some(skb) = batch.pop() {
            self.counters.tx_packets += 1;
            self.counters.tx_bytes += skb.len() as u64;
            ctx.consume(skb);
        }
        Ok(sent)
    }

    fn arm(&mut self, _sending: bool) -> Armed<'_> {
        Armed::Never
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
