//! `grilse gro`: captures through devices, polls and GRO, and what came out of it.

mod explain;
mod flow;
mod json;
mod members;
mod observer;
mod output;
mod source;

use std::time::Instant;

use grilse::{Config, Ctx, Gro, Memory, Offloads, Port, Replay, Role, Worker, pcap::Reader};

use crate::args::{GroArgs, Vlan};
use crate::failure::Failure;
use explain::Report;
use json::Lines;
use observer::{Observer, Outlets, Refused};
use output::Output;

/// Packets under way at any time: a poll's, and those that a long frame or a long super-packet is
/// chained of.
const SKBS: u32 = 4096;

/// Runs the command.
///
/// # Errors
/// The gravest of what befell, by exit code; the others have been printed.
pub(crate) fn run(args: &GroArgs) -> Result<(), Failure> {
    let config = config(args)?;
    let memory = Memory::new(SKBS, None)
        .map_err(|error| Failure::System(format!("{error}: free some memory")))?;
    let mut outlets = Outlets {
        report: Report::new(args.explain),
        lines: args.json.as_deref().map(Lines::create).transpose()?,
        output: args.output.as_deref().map(|path| Output::create(path, &args.files)).transpose()?,
    };
    let mut gravest = Ok(());
    for file in &args.files {
        if let Err(failure) = one_file(args, &config, memory, file, &mut outlets) {
            // The next file may be better; but without an outlet there is nothing left to do.
            let fatal = outlets.broken();
            gravest = graver(gravest, failure);
            if fatal {
                return gravest;
            }
        }
    }
    let to_stdout = args.json.as_deref() != Some("-");
    for ended in outlets.finish(to_stdout) {
        if let Err(failure) = ended {
            gravest = graver(gravest, failure);
        }
    }
    gravest
}

/// Keeps the failure with the higher exit code for the end, and prints the other.
fn graver(known: Result<(), Failure>, new: Failure) -> Result<(), Failure> {
    let Err(known) = known else { return Err(new) };
    let (keep, print) = match known.exit_code() >= new.exit_code() {
        true => (known, new),
        false => (new, known),
    };
    if !matches!(print, Failure::ClosedPipe) {
        eprintln!("grilse: {print}");
    }
    Err(keep)
}

fn config(args: &GroArgs) -> Result<Config, Failure> {
    let mut config = Config::default();
    config.rules = args.profile.rules();
    config.gro = !args.no_gro;
    config.vlan = args.vlan == Vlan::Sw;
    config.udp_fwd = args.udp_fwd;
    config.gro_list = args.gro_list;
    config.udp_gro_ports = args.udp_gro_port.clone().into();
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
    memory: &'static Memory,
    file: &str,
    outlets: &mut Outlets,
) -> Result<(), Failure> {
    let (source, bar) = source::open(file)?;
    let reader = Reader::new(source).map_err(|error| Failure::capture(file, &error))?;
    let offloads =
        Offloads { hash: !args.no_hash, csum: args.rx_csum.into(), vlan: args.vlan == Vlan::Hw };
    let mut device = Replay::new(file, reader, offloads)
        .map_err(|error| Failure::System(format!("{error}: free some memory")))?;
    outlets.begin(file, args.files.len() > 1, &mut device);

    let refused = Refused::default();
    let mut ctx =
        Ctx::new(memory.seat(Role::Worker)).map_err(|error| Failure::System(error.to_string()))?;
    ctx.on_drop(refused.hook());
    let port = Port::new(Box::new(device), Gro::new(config.clone()));
    let mut worker = Worker::new(ctx, port, Observer::new(outlets, refused, args.batch));
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
        let poll = worker.poll(start.elapsed().as_nanos() as u64, left)?;
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
