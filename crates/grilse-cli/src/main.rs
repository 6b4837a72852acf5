//! The program `grilse`.
#![forbid(unsafe_code)]

mod args;
mod capture_file;
mod digest;
mod failure;
mod gro;
mod gso;
mod lines;
mod outlets;
mod probe;
mod run;
mod source;
mod stdout;
mod table;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use failure::Failure;

fn main() -> ExitCode {
    let Args { command } = Args::parse();
    let result = match command {
        Command::Gro(args) => gro::run(&args),
        Command::Gso(args) => gso::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Run(args) => run::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("grilse: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
