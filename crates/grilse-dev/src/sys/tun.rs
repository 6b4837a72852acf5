//! The TUN/TAP driver's own calls (the kernel's `Documentation/networking/tuntap.rst`).

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use rustix::ioctl::{self, IntegerSetter, Opcode, Updater, opcode};

/// The device carries IP packets.
pub(crate) const IFF_TUN: u16 = 0x0001;
/// No four bytes of flags and protocol in front of each packet.
pub(crate) const IFF_NO_PI: u16 = 0x1000;
/// A virtio-net header in front of each packet.
pub(crate) const IFF_VNET_HDR: u16 = 0x4000;

/// The reader finishes checksums (`TUN_F_CSUM`).
pub(crate) const F_CSUM: usize = 0x01;
/// It takes TCP super-packets over IPv4.
pub(crate) const F_TSO4: usize = 0x02;
/// It takes TCP super-packets over IPv6.
pub(crate) const F_TSO6: usize = 0x04;
/// It takes UDP super-packets over IPv4 (Linux 6.2).
pub(crate) const F_USO4: usize = 0x20;
/// It takes UDP super-packets over IPv6.
pub(crate) const F_USO6: usize = 0x40;

/// `struct ifreq`, of which the driver reads name and flags, and writes the name.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<Request>() == 40, "struct ifreq of 64-bit machines");

const TUNSETIFF: Opcode = opcode::write::<c_int>(b'T', 202);
const TUNSETOFFLOAD: Opcode = opcode::write::<u32>(b'T', 208);

/// Creates a device with these `IFF_*` flags in the namespace of the calling thread. Its name must
/// be shorter than 16 bytes. Reads and writes do not block.
pub(crate) fn open(name: &str, flags: u16) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let file = options.read(true).write(true).custom_flags(nonblocking).open("/dev/net/tun")?;
    let mut request = Request { name: [0; 16], flags, rest: [0; 22] };
    let room = request.name.get_mut(..name.len()).filter(|room| room.len() < 16);
    room.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, which `Request` is laid out as.
    let call = unsafe { Updater::<TUNSETIFF, Request>::new(&mut request) };
    // SAFETY: the request lives until the call returns, and every value that the driver may write to
    // it is a valid one.
    unsafe { ioctl::ioctl(&file, call) }?;
    Ok(file)
}

/// Says which `F_*` super-packets the reader takes.
///
/// # Errors
/// `EINVAL` where the driver does not know one of them.
pub(crate) fn set_offload(device: &File, offloads: usize) -> io::Result<()> {
    // SAFETY: the argument of TUNSETOFFLOAD is a number, not a pointer.
    let call = unsafe { IntegerSetter::<TUNSETOFFLOAD>::new_usize(offloads) };
    // SAFETY: the call reads no memory of ours, and changes what the device reports only.
    unsafe { ioctl::ioctl(device, call) }?;
    Ok(())
}
