//! `grilse gro`: captures through devices, polls and GRO, and what came out of it.

mod delivered;
mod explain;
mod flow;
mod json;
mod members;
mod observer;
mod output;
mod refused;

use std::path::Path;
use std::time::Instant;

use grilse::{Config, Ctx, Gro, Memory, Offloads, Port, Replay, ReplayPool, Role, Tunnel, Worker};

use crate::args::{GroArgs, Vlan};
use crate::failure::{Failure, Gravest};
use crate::{outlets, source, stdout};
use explain::Report;
use json::Json;
use observer::{Observer, Outlets};
use output::Output;
use refused::Refused;

/// Packets under way at any time: a poll's, and those that a long frame or a long super-packet is
/// chained of.
const SKBS: u32 = 4096;

/// Runs the command.
///
/// # Errors
/// The gravest of what befell, by exit code; the others have been printed.
pub(crate) fn run(args: &GroArgs) -> Result<(), Failure> {
    let config = config(args)?;
    let memory = Buffers {
        skbs: Memory::new(SKBS, None).map_err(no_memory)?,
        frames: ReplayPool::new().map_err(no_memory)?,
    };
    let mut outlets = outlets(args)?;
    let mut gravest = Gravest::default();
    for file in &args.paths.files {
        gravest.add(one_file(args, &config, &memory, file, &mut outlets));
        // The next file may be better; but without an outlet there is nothing left to do.
        if outlets.broken() {
            return gravest.result();
        }
    }
    for ended in outlets.finish(!args.paths.json_to_stdout()) {
        gravest.add(ended);
    }
    gravest.result()
}

/// What packets of all files are made of.
struct Buffers {
    skbs: &'static Memory,
    frames: ReplayPool,
}

fn no_memory(error: impl std::fmt::Display) -> Failure {
    Failure::System(format!("{error}: free some memory"))
}

fn outlets(args: &GroArgs) -> Result<Outlets, Failure> {
    let outlets::Outlets { lines, capture } = outlets::Outlets::create(&args.paths)?;
    Ok(Outlets {
        report: Report::new(args.explain),
        lines: lines.map(Json::new),
        output: capture.map(Output::new),
    })
}

fn config(args: &GroArgs) -> Result<Config, Failure> {
    let mut config = Config::default();
    config.rules = args.profile;
    config.gro = !args.no_gro;
    config.vlan = args.vlan == Vlan::Sw;
    config.udp_fwd = args.udp_fwd;
    config.gro_list = args.gro_list;
    config.udp_gro_ports = args.udp_gro_port.clone().into();
    let vxlan = args.vxlan_port.iter().map(|port| (*port, Tunnel::Vxlan));
    let geneve = args.geneve_port.iter().map(|port| (*port, Tunnel::Geneve));
    config.tunnel_ports = vxlan.chain(geneve).collect();
    let usage = |error: grilse::BadConfig| Failure::Usage(error.to_string());
    if let Some(bytes) = args.gro_max_size {
        config.set_gro_max_size(bytes).map_err(usage)?;
    }
    if let Some(bytes) = args.gro_ipv4_max_size {
        config.set_gro_ipv4_max_size(bytes).map_err(usage)?;
    }
    Ok(config)
}

fn one_file(
    args: &GroArgs,
    config: &Config,
    memory: &Buffers,
    file: &Path,
    outlets: &mut Outlets,
) -> Result<(), Failure> {
    // Lines and a bar on one terminal would write over each other.
    let hidden = args.paths.json_to_stdout() && stdout::is_terminal();
    let (reader, bar) = source::open(file, hidden)?;
    let offloads =
        Offloads { hash: !args.no_hash, csum: args.rx_csum.into(), vlan: args.vlan == Vlan::Hw };
    let mut device = Replay::on(&memory.frames, &source::name(file), reader, offloads);
    outlets.begin(&file.display().to_string(), args.paths.files.len() > 1, &mut device);

    let refused = Refused::default();
    let mut ctx = Ctx::new(memory.skbs.seat(Role::Worker))
        .map_err(|error| Failure::System(error.to_string()))?;
    ctx.on_drop(refused.hook());
    let port = Port::new(Box::new(device), Gro::new(config.clone()));
    let mut worker = Worker::new(ctx, vec![port], Observer::new(outlets, refused, args.batch));
    let result = poll_to_end(&mut worker, args.batch.get());
    let drops = worker.ctx().drops();
    let ended = worker.stop().end(drops);
    bar.finish_and_clear();
    result.and(ended)
}

fn poll_to_end(worker: &mut Worker<Observer<'_>>, batch: usize) -> Result<(), Failure> {
    let start = Instant::now();
    let mut left = batch;
    let mut idle = 0;
    loop {
        let poll = worker.poll(0, start.elapsed().as_nanos() as u64, left)?;
        worker.handler_mut().polled()?;
        if poll.ended {
            return Ok(());
        }
        left = if poll.taken == left { batch } else { left - poll.taken };
        // A long record may have to wait until the packets before it are gone: one poll.
        idle = if poll.taken == 0 { idle + 1 } else { 0 };
        if idle > 1 {
            let text = "a frame needs more packet memory than there is: report this as a fault";
            return Err(Failure::System(text.to_owned()));
        }
    }
}
