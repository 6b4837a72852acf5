//! Two TUN devices in a network namespace of their own, and the kernel's forwarding between them.
//!
//! What is written to the first, super-packets among it, comes out of the second, which takes none:
//! so the kernel has to cut them, and finish their checksums, in the code that every driver without
//! such offloads relies on.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

use super::case::{Case, NETWORKS, v4, v6};
use super::{Outcome, Refused, netlink};
use crate::sys::{namespace, tun};

/// How long the first packet may take, and how long no further one means that all have come.
/// Forwarding is done within the write, so that both are for a machine that is very busy.
const PATIENCE: Duration = Duration::from_millis(250);
const QUIET: Duration = Duration::from_millis(20);

/// The path; it goes when the thread that made it has ended.
#[derive(Debug)]
pub(super) struct Path {
    into: File,
    out: File,
    /// Whether this kernel forwards IPv6.
    pub(super) v6: bool,
}

impl Path {
    /// Moves the calling thread into a namespace, and builds the path there.
    pub(super) fn new() -> Result<Self, Refused> {
        namespace::enter_new().map_err(Refused::Namespace)?;
        let open = |name, flags| tun::open(name, tun::IFF_TUN | tun::IFF_NO_PI | flags);
        let into = open("into0", tun::IFF_VNET_HDR).map_err(Refused::Tun)?;
        let out = open("out0", 0).map_err(Refused::Tun)?;
        let mut path = Self { into, out, v6: false };
        path.configure().map_err(Refused::Path)?;
        path.v6 = path.configure_v6().is_ok();
        Ok(path)
    }

    fn configure(&self) -> io::Result<()> {
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        for (index, network) in indices()?.into_iter().zip(NETWORKS) {
            netlink::up(index)?;
            netlink::address(index, IpAddr::from(v4(network, 1)), 24)?;
        }
        Ok(())
    }

    fn configure_v6(&self) -> io::Result<()> {
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")?;
        for (index, network) in indices()?.into_iter().zip(NETWORKS) {
            netlink::address(index, IpAddr::from(v6(network, 1)), 64)?;
        }
        Ok(())
    }

    /// Whether the driver knows these `F_*` super-packets.
    pub(super) fn knows(&self, offloads: usize) -> bool {
        tun::set_offload(&self.into, tun::F_CSUM | offloads).is_ok()
    }

    /// Sends a super-packet along the path, and says what became of it.
    pub(super) fn send(&self, case: Case) -> Result<Outcome, Refused> {
        self.read(Duration::ZERO).map_err(Refused::Path)?;
        match (&self.into).write(&case.super_packet()) {
            Ok(_) => {}
            Err(source) if source.kind() == io::ErrorKind::InvalidInput => {
                return Ok(Outcome::Refused);
            }
            Err(source) => return Err(Refused::Path(source)),
        }
        Ok(case.judge(&self.read(PATIENCE).map_err(Refused::Path)?))
    }

    /// What comes out, until nothing more does.
    fn read(&self, mut wait: Duration) -> io::Result<Vec<Vec<u8>>> {
        let mut packets = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let mut ready = [PollFd::new(&self.out, PollFlags::IN)];
            let limit = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
            if poll(&mut ready, Some(&limit))? == 0 {
                return Ok(packets);
            }
            let len = (&self.out).read(&mut buffer)?;
            packets.push(buffer[..len].to_vec());
            wait = wait.min(QUIET);
        }
    }
}

/// The interface numbers of the two devices.
fn indices() -> io::Result<[u32; 2]> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok([name_to_index(&socket, "into0")?, name_to_index(&socket, "out0")?])
}
