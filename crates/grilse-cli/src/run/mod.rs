//! `grilse run`: devices, workers between them, and where every frame went.

mod report;
mod setup;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use grilse::{Account, Ended, Forward, Running, Stop};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::RunArgs;
use crate::failure::Failure;
use report::Report;

/// How often the workers are looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Runs the command.
///
/// # Errors
/// What kept it from starting, what ended it before it was asked, or frames that are not accounted
/// for.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let stop = Stop::new().map_err(|error| no_descriptors("make an eventfd", &error))?;
    let stop = Arc::new(stop);
    let plans = setup::plans(args)?;
    stop_on_signals(stop.clone())?;
    let epoch = Instant::now();
    let mut workers = Vec::new();
    for (number, plan) in plans.into_iter().enumerate() {
        match plan.start(&format!("worker-{number}"), epoch, stop.clone()) {
            Ok(running) => workers.push(running),
            Err(error) => {
                stop.ask();
                return Err(Failure::System(format!(
                    "start a thread: {error}: end other programs"
                )));
            }
        }
    }
    let mut report = Report::new(args, epoch);
    watch(args, &workers, &stop, epoch, &mut report)?;
    stop.ask();
    let ended = workers.into_iter().map(|worker| worker.join()).collect::<Result<Vec<_>, _>>();
    let ended = ended.map_err(|lost| Failure::System(lost.to_string()))?;
    report.last(&ended)?;
    outcome(ended)
}

fn no_descriptors(doing: &str, error: &std::io::Error) -> Failure {
    Failure::System(format!("{doing}: {error}: raise the limit on open files (ulimit -n)"))
}

/// The first signal asks to stop, which drains and reports; the second ends the program.
fn stop_on_signals(stop: Arc<Stop>) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| no_descriptors("watch for signals", &error))?;
    thread::spawn(move || {
        for signal in signals.forever() {
            if stop.is_asked() {
                std::process::exit(128 + signal);
            }
            stop.ask();
        }
    });
    Ok(())
}

/// Reports at every interval until it is time to stop: somebody asks, the time is over, all workers
/// have ended, or one has failed. Those that share what there is end one after the other.
fn watch(
    args: &RunArgs,
    workers: &[Running<Forward>],
    stop: &Stop,
    epoch: Instant,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut next = args.interval;
    while !stop.is_asked()
        && !workers.iter().all(Running::has_ended)
        && !workers.iter().any(Running::has_failed)
    {
        let elapsed = epoch.elapsed();
        if args.duration.is_some_and(|duration| elapsed >= duration) {
            break;
        }
        if let (Some(due), Some(interval)) = (next, args.interval)
            && elapsed >= due
        {
            report.line(&total(workers.iter().map(Running::account)))?;
            next = Some(due.saturating_add(interval));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

fn total(accounts: impl Iterator<Item = Account>) -> Account {
    accounts.fold(Account::default(), |sum, account| sum.plus(&account))
}

fn outcome(ended: Vec<Ended<Forward>>) -> Result<(), Failure> {
    let account = total(ended.iter().map(|ended| ended.account));
    if account.missing() != 0 {
        return Err(Failure::Broken(format!(
            "{} frames are not accounted for: report this as a fault",
            account.missing()
        )));
    }
    match ended.into_iter().find_map(|ended| ended.fault) {
        Some(fault) => Err(fault.into()),
        None => Ok(()),
    }
}
