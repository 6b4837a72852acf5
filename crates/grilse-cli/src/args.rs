//! The command line: what can be asked, and nothing of how it is done.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use grilse::{MAX_SIZE, Mode, Policy, Rules, RxCsum, Spec};

use crate::stdout;

/// A userspace packet engine: kernel-exact GRO and GSO, on captures, without root.
#[derive(Debug, Parser)]
#[command(name = "grilse", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  grilse gro trace.pcap --explain           why is my traffic not coalesced?
  grilse gro trace.pcap -o coalesced.pcap   write the super-packets
  grilse gro trace.pcap --json - | jq .     one object per delivered packet
  grilse gso coalesced.pcapng -o wire.pcap  cut super-packets to wire size again
  grilse probe                              does this kernel cut super-packets right?

Exit codes: 0 done; 1 an input was damaged and only its readable part was processed;
2 wrong usage, or not a capture; 3 the system refused, or the disk is full.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Coalesce captures as Linux would, and say what came out and why
    #[command(after_help = GRO_EXAMPLES)]
    Gro(GroArgs),
    /// Forward between devices, and account for every frame
    #[command(after_help = RUN_EXAMPLES, after_long_help = devices())]
    Run(RunArgs),

    /// Cut super-packets into the frames that they stand for
    #[command(after_help = GSO_EXAMPLES)]
    Gso(GsoArgs),

    /// Find out which super-packets this kernel takes, cuts and gives as it should
    #[command(after_help = PROBE_EXAMPLES)]
    Probe(ProbeArgs),
}

const PROBE_EXAMPLES: &str = "\
Examples:
  grilse probe
      as root: a table of protocols and tails, and what to do where one is not right
  unshare --map-root-user grilse probe
      without being root, where the system lets users have namespaces";

#[derive(Debug, clap::Args)]
pub(crate) struct ProbeArgs {
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

const GSO_EXAMPLES: &str = "\
Examples:
  grilse gro trace.pcap --profile exact -o coalesced.pcapng
  grilse gso coalesced.pcapng -o again.pcap
      there and back: the frames of trace.pcap with their bytes, times, lengths and order
  grilse gso server.pcap -o wire.pcap
      a capture taken with TSO or GRO on, its packets of up to 64 KB cut to 1500 bytes
  grilse gso jumbo.pcap --mtu 9000 --json - | jq 'select(.outcome == \"refused\")'
      what is longer than 9000 bytes, cannot be cut, and why

What grilse gro -o said of a packet in its comment is restored, whatever its size. Other packets are
cut where they are longer than the MTU, and their checksums finished; a UDP train too, although no
capture tells where its datagrams ended. What is not cut is not changed.";

#[derive(Debug, clap::Args)]
pub(crate) struct GsoArgs {
    #[command(flatten)]
    pub(crate) paths: Paths,

    /// Longest IP packet that is not cut, in bytes, where no comment says what it stands for
    #[arg(long, value_name = "N", default_value = "1500",
        value_parser = clap::value_parser!(u16).range(68..))]
    pub(crate) mtu: u16,
}

const GRO_EXAMPLES: &str = "\
Examples:
  grilse gro trace.pcap --explain
      per flow and in total: packets in and out, and what ended or refused each merge
  grilse gro trace.pcap --batch 8 --no-hash
      polls of 8 frames, all flows in one bucket, as on a slow TAP device
  grilse gro quic.pcap --udp-gro-port 443 --explain
      as if a socket with UDP_GRO were bound to port 443
  grilse gro trace.pcapng -o coalesced.pcapng --gro-max-size 180000
      BIG TCP for IPv6, into a file that keeps interfaces and comments";

#[derive(Debug, clap::Args)]
pub(crate) struct GroArgs {
    #[command(flatten)]
    pub(crate) paths: Paths,

    /// Print, per flow and in total, packets in and out and every reason that ended a merge
    #[arg(long)]
    pub(crate) explain: bool,

    /// Frames per poll; a poll takes 64 packets at most, as NAPI's does, so more are several polls
    #[arg(long, value_name = "N", default_value = "64")]
    pub(crate) batch: NonZeroUsize,

    /// Turn GRO off
    #[arg(long)]
    pub(crate) no_gro: bool,

    /// Rules of GRO: those of a kernel, or our own
    #[arg(long, value_name = "NAME", default_value = Rules::KERNEL_6_18.name,
        value_parser = profile())]
    pub(crate) profile: Rules,

    /// Put all flows in one bucket, as a TAP device does, which gives no hash
    #[arg(long)]
    pub(crate) no_hash: bool,

    /// What the device says of checksums
    #[arg(long, value_name = "STATE", default_value = "none")]
    pub(crate) rx_csum: RxCsumArg,

    /// What becomes of VLAN tags before GRO; they are always put back into the frame delivered
    #[arg(long, value_name = "MODE", default_value = "hw")]
    pub(crate) vlan: Vlan,

    /// Coalesce UDP that no local socket takes (rx-udp-gro-forwarding)
    #[arg(long)]
    pub(crate) udp_fwd: bool,

    /// Chain whole packets instead of merging (rx-gro-list)
    #[arg(long)]
    pub(crate) gro_list: bool,

    /// A local port with UDP_GRO set; may be given several times
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) udp_gro_port: Vec<u16>,

    /// A local port where VXLAN ends; may be given several times
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) vxlan_port: Vec<u16>,

    /// A local port where GENEVE ends; may be given several times
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) geneve_port: Vec<u16>,

    /// Size limit of IPv6 super-packets in bytes; up to 65536 it sets the IPv4 limit too
    #[arg(long, value_name = "N", value_parser = size())]
    pub(crate) gro_max_size: Option<u32>,

    /// Size limit of IPv4 super-packets in bytes
    #[arg(long, value_name = "N", value_parser = size())]
    pub(crate) gro_ipv4_max_size: Option<u32>,
}

/// What is read, and what is written.
#[derive(Debug, clap::Args)]
pub(crate) struct Paths {
    /// Captures to read, pcap or pcapng; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Write the packets that come out; the name's suffix, .pcap or .pcapng, tells the format
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Write one JSON object for each packet that comes out; - is standard output
    #[arg(long, value_name = "PATH")]
    pub(crate) json: Option<PathBuf>,
}

impl Paths {
    /// Whether standard output belongs to the JSON.
    pub(crate) fn json_to_stdout(&self) -> bool {
        self.json.as_deref().is_some_and(|path| path == stdout::PATH)
    }
}

fn size() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(MAX_SIZE))
}

fn profile() -> impl TypedValueParser<Value = Rules> {
    let names = Rules::ALL.iter().map(|rules| PossibleValue::new(rules.name).help(rules.about));
    PossibleValuesParser::new(names).map(|name| Rules::named(&name).unwrap_or(Rules::KERNEL_6_18))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RxCsumArg {
    /// Nothing: GRO verifies them
    None,
    /// That they are right
    Valid,
    /// That they are still to be completed, as between guests of one host
    Partial,
}

impl From<RxCsumArg> for RxCsum {
    fn from(arg: RxCsumArg) -> Self {
        match arg {
            RxCsumArg::None => Self::None,
            RxCsumArg::Valid => Self::Valid,
            RxCsumArg::Partial => Self::Partial,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Vlan {
    /// The device takes the outer tag out, as NICs do; a second one stops GRO
    Hw,
    /// Tags stay in the frame, and GRO looks through them
    Sw,
    /// Tags stay in the frame and stop GRO: a kernel without 8021q
    None,
}

const RUN_EXAMPLES: &str = "\
Examples:
  grilse run
      as fast as it goes, from the generator to nowhere, until Ctrl-C
  grilse run --rx gen:,size=64..1500,flows=16,rate=100000 --tx null: --duration 10
  grilse run --rx gen:,proto=tcp,flows=8,count=1000000 --tx null: --json
  grilse run --rx pcap:trace.pcap,speed=real --tx pcap:out.pcapng,fault.drop=10000
      play a capture at its own pace, and lose one packet in a hundred on the way out

Devices: see --help.";

/// What devices there are, from their table.
fn devices() -> String {
    let mut text = format!("{RUN_EXAMPLES}\n\n");
    for driver in grilse::DRIVERS {
        text.push_str(&format!("  {}:{:<8} {}\n", driver.kind, driver.target, driver.about));
        options(&mut text, driver.options);
    }
    text.push_str("\n  Any of them also loses packets, damages them, and tells of them:\n");
    grilse::LAYERS.iter().for_each(|layer| options(&mut text, layer));
    text
}

fn options(text: &mut String, options: &[(&str, &str, &str)]) {
    for (name, value, about) in options {
        text.push_str(&format!("      {name}={value}  {about}\n"));
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Device to receive from
    #[arg(long, value_name = "DEV", default_value = "gen:")]
    pub(crate) rx: Spec,

    /// Device to send by; the same as --rx sends packets back to where they came from
    #[arg(long, value_name = "DEV")]
    pub(crate) tx: Option<Spec>,

    /// What becomes of packets on their way
    #[arg(long, value_name = "MODE", default_value = "io")]
    pub(crate) mode: RunMode,

    /// CPUs to work on, one worker each, such as 0,2; one worker, where the system likes, by default
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) workers: Vec<usize>,

    /// Coalesce what is received
    #[arg(long, value_name = "on|off", default_value = "on")]
    pub(crate) gro: OnOff,

    /// How memory is recycled: a named policy
    #[arg(long, value_name = "NAME", default_value = "grilse")]
    pub(crate) policy: Policy,

    /// Stop when so many frames have been received
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<NonZeroU64>,

    /// Stop after so many seconds
    #[arg(long, value_name = "T", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,

    /// Print a line every so many seconds
    #[arg(long, value_name = "T", value_parser = seconds)]
    pub(crate) interval: Option<Duration>,

    /// Print JSON: an object for every interval, and one at the end
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text} is no number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time >= Duration::from_millis(1) => Ok(time),
        _ => Err("write a number of seconds, of 0.001 or more".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    /// Yes
    On,
    /// No
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunMode {
    /// Forward as they are
    Io,
    /// Write the link addresses of the sending port and of its peer
    Mac,
    /// Swap source and destination link address
    Macswap,
    /// Swap link addresses, IP addresses and ports
    #[value(name = "5tswap")]
    FiveTupleSwap,
    /// Receive only
    #[value(name = "rxonly")]
    RxOnly,
    /// Compute all checksums anew
    Csum,
    /// Answer ICMP echo requests and UDP where they came in
    Echo,
}

impl From<RunMode> for Mode {
    fn from(mode: RunMode) -> Self {
        match mode {
            RunMode::Io => Self::Io,
            RunMode::Mac => Self::Mac,
            RunMode::Macswap => Self::MacSwap,
            RunMode::FiveTupleSwap => Self::FiveTupleSwap,
            RunMode::RxOnly => Self::RxOnly,
            RunMode::Csum => Self::Csum,
            RunMode::Echo => Self::Echo,
        }
    }
}
