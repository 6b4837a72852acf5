//! From the command line to workers that can start.

use std::sync::Arc;
use std::time::Duration;

use grilse::{
    Caps, Config, Forward, Gro, Limit, Memory, Opener, Plan, Port, Queues, Role, Skb, Spec, Wanted,
};

use crate::args::{OnOff, RunArgs, RunMode};
use crate::failure::Failure;

/// Packets under way in one worker: its queues for sending, those that GRO holds, and those that
/// devices have.
const SKBS: u32 = 16 << 10;
/// How long a worker polls on in vain before it sleeps.
const BUSY: Duration = Duration::from_micros(50);

/// A worker for each CPU that was named, with a queue of each device.
pub(super) fn plans(args: &RunArgs) -> Result<Vec<Plan<Forward>>, Failure> {
    if let Some(cpu) = args.workers.iter().find(|cpu| !grilse::can_run_on(**cpu)) {
        let text =
            format!("--workers {cpu}: no CPU that this program may run on: see nproc, taskset -p");
        return Err(Failure::Usage(text));
    }
    let workers = args.workers.len().max(1);
    let memory = Memory::new(SKBS * workers as u32, None)
        .map_err(|error| Failure::System(format!("{error}: free some memory")))?;
    memory.set_policy(args.policy).map_err(|error| Failure::Usage(error.to_string()))?;
    let limit = args.count.map(|count| Arc::new(Limit::new(count.get())));
    let ports = ports(args, workers)?;
    let plans = ports.into_iter().enumerate().map(|(number, ports)| Plan {
        seat: memory.seat(Role::Worker),
        cpu: args.workers.get(number).copied(),
        // What the first port receives leaves by the last, and the other way round.
        handler: Forward::new(args.mode.into(), if ports.len() == 1 { &[0] } else { &[1, 0] }),
        ports,
        busy: BUSY,
        limit: limit.clone(),
    });
    Ok(plans.collect())
}

/// The ports of each worker: a queue of the device that receives, and one of that which sends where
/// that is another.
fn ports(args: &RunArgs, workers: usize) -> Result<Vec<Vec<Port>>, Failure> {
    let mut opener = Opener::default();
    if args.mode == RunMode::RxOnly || args.tx.as_ref() == Some(&args.rx) {
        let sends = args.mode != RunMode::RxOnly;
        let queues = open(&mut opener, &args.rx, Wanted { rx: true, tx: sends, queues: workers })?;
        return Ok(queues.into_iter().map(|queue| vec![Port::new(queue, gro(args))]).collect());
    }
    let null = Spec::null();
    let tx = args.tx.as_ref().unwrap_or(&null);
    let rx = open(&mut opener, &args.rx, Wanted { rx: true, tx: false, queues: workers })?;
    let tx = open(&mut opener, tx, Wanted { rx: false, tx: true, queues: workers })?;
    let pairs = rx.into_iter().zip(tx).map(|(rx, tx)| {
        // Packets go the other way too, where both devices can.
        let both_ways = rx.caps().tx && tx.caps().rx;
        let back = if both_ways { Port::new(tx, gro(args)) } else { Port::sending(tx) };
        vec![Port::new(rx, gro(args)), back]
    });
    Ok(pairs.collect())
}

fn open(opener: &mut Opener, spec: &Spec, wanted: Wanted) -> Result<Queues, Failure> {
    let queues = opener.open(spec, wanted)?;
    let caps = queues.first().map(|queue| queue.caps());
    let lacks = |can: fn(&Caps) -> bool| caps.is_some_and(|caps| !can(caps));
    if wanted.rx && lacks(|caps| caps.rx) {
        return Err(Failure::Usage(format!("{spec} does not receive: give it to --tx")));
    }
    if wanted.tx && lacks(|caps| caps.tx) {
        return Err(Failure::Usage(format!("{spec} does not send: give it to --rx")));
    }
    Ok(queues)
}

fn gro(args: &RunArgs) -> Gro<Skb> {
    let mut config = Config::default();
    config.gro = args.gro == OnOff::On;
    Gro::new(config)
}
