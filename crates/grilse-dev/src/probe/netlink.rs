//! As much of rtnetlink (RFC 3549) as two devices need: up, and an address.

use std::io;
use std::net::IpAddr;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socket_with};

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
/// Request, with an answer, that creates (`NLM_F_REQUEST`, `NLM_F_ACK`, `NLM_F_CREATE`).
const FLAGS: u16 = 0x1 | 0x4 | 0x400;
const IFF_UP: u32 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// Use the address at once: nobody else is there to have it (`IFA_F_NODAD`).
const IFA_F_NODAD: u8 = 2;

/// Brings a device up.
pub(super) fn up(index: u32) -> io::Result<()> {
    let mut body = vec![0; 4];
    for word in [index, IFF_UP, IFF_UP] {
        body.extend_from_slice(&word.to_ne_bytes());
    }
    request(RTM_NEWLINK, &body)
}

/// Gives a device an address, and with it a route to its network.
pub(super) fn address(index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
    let (family, bytes) = match address {
        IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
    };
    let mut body = vec![family.as_raw() as u8, prefix, IFA_F_NODAD, 0];
    body.extend_from_slice(&index.to_ne_bytes());
    for kind in [IFA_LOCAL, IFA_ADDRESS] {
        body.extend_from_slice(&(4 + bytes.len() as u16).to_ne_bytes());
        body.extend_from_slice(&kind.to_ne_bytes());
        body.extend_from_slice(&bytes);
    }
    request(RTM_NEWADDR, &body)
}

/// Sends one request, and waits for the kernel's answer.
fn request(kind: u16, body: &[u8]) -> io::Result<()> {
    // No protocol is 0, which is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let len = 16 + body.len() as u32;
    let mut message = len.to_ne_bytes().to_vec();
    for word in [kind, FLAGS] {
        message.extend_from_slice(&word.to_ne_bytes());
    }
    // The sequence number and our port: there is one request.
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(body);
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (len, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    // `struct nlmsghdr`, and the error, negative, at the front of `struct nlmsgerr`.
    let code = answer[..len].get(16..20).ok_or(io::ErrorKind::UnexpectedEof)?;
    match i32::from_ne_bytes([code[0], code[1], code[2], code[3]]) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}
