//! Frames of one TCP or UDP flow, each edited by the test that sends it.

use grilse_wire::build::{Eth, Ipv4, Ipv6, Tcp, Udp, frame, payload};
use grilse_wire::tcp::flag;

use super::{Split, ethernet};

/// Payload of a segment that a test does not size itself.
pub const LEN: usize = 100;

/// All parts of a frame of TCP or UDP over IPv4 or IPv6.
#[derive(Clone, Debug)]
pub struct Parts {
    pub eth: Eth<'static>,
    pub v4: Ipv4<'static>,
    pub v6: Ipv6<'static>,
    pub tcp: Tcp<'static>,
    pub udp: Udp,
    pub payload: Vec<u8>,
}

/// The parts of segment `n`: sequence number and identification count up, and ACK is set.
fn parts(n: u32) -> Parts {
    let at = n as usize * LEN;
    Parts {
        eth: Eth::default(),
        v4: Ipv4 { id: n as u16, ..Ipv4::default() },
        v6: Ipv6::default(),
        tcp: Tcp { seq: 1000 + at as u32, flags: flag::ACK, ..Tcp::default() },
        udp: Udp::default(),
        payload: payload(at, LEN),
    }
}

impl Parts {
    /// Cuts or grows the payload to `len` bytes.
    pub fn resize(&mut self, len: usize) {
        self.payload = payload(0, len);
    }
}

pub fn tcp4(n: u32, edit: impl FnOnce(&mut Parts)) -> Vec<u8> {
    let mut p = parts(n);
    edit(&mut p);
    frame(p.eth, p.v4, p.tcp, &p.payload)
}

pub fn tcp6(n: u32, edit: impl FnOnce(&mut Parts)) -> Vec<u8> {
    let mut p = parts(n);
    edit(&mut p);
    frame(p.eth, p.v6, p.tcp, &p.payload)
}

pub fn udp4(n: u32, edit: impl FnOnce(&mut Parts)) -> Vec<u8> {
    let mut p = parts(n);
    edit(&mut p);
    frame(p.eth, p.v4, p.udp, &p.payload)
}

/// The frames as packets of a device without offloads, contiguous, numbered from 0.
pub fn packets(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Split> {
    let frames = frames.into_iter().zip(0..);
    frames.map(|(f, seq)| Split::new(f.clone(), f.len(), ethernet(&f, seq))).collect()
}
