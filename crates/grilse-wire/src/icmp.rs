//! ICMP (RFC 792) and ICMPv6 (RFC 4443): what an answer to an echo request needs.

/// IP protocol number of ICMP.
pub const PROTOCOL: u8 = 1;
/// IP protocol number of ICMPv6.
pub const PROTOCOL_V6: u8 = 58;
/// Type of an echo request.
pub const ECHO_REQUEST: u8 = 8;
/// Type of an echo reply.
pub const ECHO_REPLY: u8 = 0;
/// Type of an echo request of ICMPv6.
pub const ECHO_REQUEST_V6: u8 = 128;
/// Type of an echo reply of ICMPv6.
pub const ECHO_REPLY_V6: u8 = 129;
