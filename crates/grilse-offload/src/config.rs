//! What a device and its host ask of GRO, and the rules it follows.
//!
//! Sizes are checked as they are set, so a [`Config`] is always valid. It says nothing about packets;
//! sockets appear only as the ports that asked for UDP GRO, or where tunnels end.

use alloc::boxed::Box;

use crate::Rules;

/// Largest size limit that can be set (`GRO_MAX_SIZE`, 8 * 65,535 bytes).
pub const MAX_SIZE: u32 = 8 * 65_535;

/// Largest super-packet before BIG TCP (`GRO_LEGACY_MAX_SIZE`); at this size only TCP grows on.
pub(crate) const LEGACY_MAX_SIZE: usize = 65_536;

/// How GRO is set up. The default is what Linux gives a device: GRO on, 65,536 bytes, UDP left
/// alone; and a kernel with 802.1Q.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Rules of the kernel to equal.
    pub rules: Rules,
    /// Whether GRO works at all; off, every packet is delivered as it comes.
    pub gro: bool,
    /// Whether tags inside the frame are looked through, as a kernel with 8021q does.
    pub vlan: bool,
    /// Merge UDP that no local socket takes (`rx-udp-gro-forwarding`).
    pub udp_fwd: bool,
    /// Chain whole packets of UDP without a UDP_GRO socket, and of TCP (`rx-gro-list`).
    pub gro_list: bool,
    /// Local ports of sockets with UDP_GRO, bound to any address.
    pub udp_gro_ports: Box<[u16]>,
    /// Local UDP ports where tunnels end, at any address.
    pub tunnel_ports: Box<[(u16, Tunnel)]>,
    gro_max_size: u32,
    gro_ipv4_max_size: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rules: Rules::KERNEL_6_18,
            gro: true,
            vlan: true,
            udp_fwd: false,
            gro_list: false,
            udp_gro_ports: Box::default(),
            tunnel_ports: Box::default(),
            gro_max_size: LEGACY_MAX_SIZE as u32,
            gro_ipv4_max_size: LEGACY_MAX_SIZE as u32,
        }
    }
}

impl Config {
    /// Size limit in bytes of IPv6 super-packets, counted from the network header, exclusive.
    pub fn gro_max_size(&self) -> u32 {
        self.gro_max_size
    }

    /// Sets the IPv6 limit, and the IPv4 limit with it where `bytes` is at most 65,536: so do
    /// writes to the kernel's `gro_max_size`.
    ///
    /// # Errors
    /// Where `bytes` is above [`MAX_SIZE`].
    pub fn set_gro_max_size(&mut self, bytes: u32) -> Result<(), BadConfig> {
        self.gro_max_size = limited(bytes)?;
        if bytes as usize <= LEGACY_MAX_SIZE {
            self.gro_ipv4_max_size = bytes;
        }
        Ok(())
    }

    /// Size limit in bytes of all other super-packets, counted as for IPv6.
    pub fn gro_ipv4_max_size(&self) -> u32 {
        self.gro_ipv4_max_size
    }

    /// Sets the IPv4 limit alone.
    ///
    /// # Errors
    /// Where `bytes` is above [`MAX_SIZE`].
    pub fn set_gro_ipv4_max_size(&mut self, bytes: u32) -> Result<(), BadConfig> {
        self.gro_ipv4_max_size = limited(bytes)?;
        Ok(())
    }
}

/// A tunnel that UDP carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// VXLAN.
    Vxlan,
    /// VXLAN with the generic protocol extension, which each packet must use.
    VxlanGpe,
    /// GENEVE.
    Geneve,
    /// Foo over UDP: the port alone says what each datagram carries.
    Fou(FouPayload),
    /// Generic UDP Encapsulation of versions 0 and 1.
    Gue,
}

/// What a port of foo over UDP carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FouPayload {
    /// IPv4 packets.
    Ipv4,
    /// IPv6 packets.
    Ipv6,
    /// GRE.
    Gre,
}

fn limited(bytes: u32) -> Result<u32, BadConfig> {
    if bytes > MAX_SIZE { Err(BadConfig::Size { bytes }) } else { Ok(bytes) }
}

/// A setting that GRO cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadConfig {
    /// The size limit is above [`MAX_SIZE`].
    Size {
        /// The limit asked for.
        bytes: u32,
    },
}

impl core::fmt::Display for BadConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Size { bytes } => write!(f, "a GRO size of {bytes} bytes is above {MAX_SIZE}"),
        }
    }
}

impl core::error::Error for BadConfig {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_ipv6_limit_is_the_ipv4_limit_too() {
        let mut config = Config::default();
        config.set_gro_max_size(4000).unwrap();
        assert_eq!(config.gro_ipv4_max_size(), 4000);
        config.set_gro_max_size(180_000).unwrap();
        assert_eq!(config.gro_ipv4_max_size(), 4000);
        config.set_gro_ipv4_max_size(5000).unwrap();
        assert_eq!(config.gro_max_size(), 180_000);
    }

    #[test]
    fn limits_end_where_the_kernels_do() {
        let mut config = Config::default();
        config.set_gro_max_size(MAX_SIZE).unwrap();
        let bytes = MAX_SIZE + 1;
        assert_eq!(config.set_gro_max_size(bytes), Err(BadConfig::Size { bytes }));
        assert_eq!(config.set_gro_ipv4_max_size(bytes), Err(BadConfig::Size { bytes }));
        assert_eq!(config.gro_max_size(), MAX_SIZE);
    }
}
