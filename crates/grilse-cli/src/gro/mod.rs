//! `grilse gro`: captures through devices, polls and GRO, and what came out of it.

mod delivered;
mod explain;
mod flow;
mod json;
mod members;
mod observer;
mod output;
mod refused;
mod source;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Instant;

use grilse::pcap::Reader;
use grilse::{Config, Ctx, Gro, Memory, Offloads, Port, Replay, ReplayPool, Role, Tunnel, Worker};

use crate::args::{GroArgs, Vlan};
use crate::failure::Failure;
use explain::Report;
use json::{Lines, STDOUT};
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
    let mut gravest = Ok(());
    for file in &args.files {
        if let Err(failure) = one_file(args, &config, &memory, file, &mut outlets) {
            // The next file may be better; but without an outlet there is nothing left to do.
            let fatal = outlets.broken();
            gravest = graver(gravest, failure);
            if fatal {
                return gravest;
            }
        }
    }
    for ended in outlets.finish(!json_to_stdout(args)) {
        if let Err(failure) = ended {
            gravest = graver(gravest, failure);
        }
    }
    gravest
}

/// What packets of all files are made of.
struct Buffers {
    skbs: &'static Memory,
    frames: ReplayPool,
}

fn no_memory(error: impl std::fmt::Display) -> Failure {
    Failure::System(format!("{error}: free some memory"))
}

fn json_to_stdout(args: &GroArgs) -> bool {
    args.json.as_deref().is_some_and(|path| path == STDOUT)
}

/// Opens what is written to: nothing that is read, and no two of the same.
fn outlets(args: &GroArgs) -> Result<Outlets, Failure> {
    let json = args.json.as_deref().filter(|_| !json_to_stdout(args));
    let output = args.output.as_deref();
    let clash = |path: &Path, what: &str| {
        let path = path.display();
        Failure::Usage(format!("{path}: {what}, which writing would destroy: name another file"))
    };
    for path in json.iter().chain(&output) {
        if args.files.iter().any(|input| source::is_same_file(input, path)) {
            return Err(clash(path, "an input"));
        }
    }
    let lines = args.json.as_deref().map(Lines::create).transpose()?;
    if let (Some(json), Some(output)) = (json, output)
        && source::is_same_file(json, output)
    {
        return Err(clash(output, "where --json writes"));
    }
    let output = output.map(Output::create).transpose()?;
    Ok(Outlets { report: Report::new(args.explain), lines, output })
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
    let hidden = json_to_stdout(args) && io::stdout().is_terminal();
    let (source, bar) = source::open(file, hidden)?;
    let name = source::name(file);
    let reader = Reader::new(source).map_err(|error| Failure::capture(&name, &error))?;
    let offloads =
        Offloads { hash: !args.no_hash, csum: args.rx_csum.into(), vlan: args.vlan == Vlan::Hw };
    let mut device = Replay::on(&memory.frames, &name, reader, offloads);
    outlets.begin(&file.display().to_string(), args.files.len() > 1, &mut device);

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
