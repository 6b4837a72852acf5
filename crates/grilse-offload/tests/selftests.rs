//! The cases of the kernel's own `tools/testing/selftests/.../gro.c`, with the results of 6.18.
//!
//! As there: TTL 8, DF set, identification 0 throughout (a fixed one), 100 bytes of payload, and an
//! empty FIN at the end of each case. Results are payload lengths in order of delivery.

use grilse_offload::Config;
use grilse_wire::Packet;
use grilse_wire::build::{Check, Eth, Ext, Ipv4, Transport, ethernet, packet};
use grilse_wire::tcp::flag;

mod support;
use support::frame::{LEN, Parts, packets, tcp4, tcp6};
use support::{Split, run};

const NOP_NOP_TS_0: &[u8] = &[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
const NOP_NOP_TS: &[u8] = &[1, 1, 8, 10, 0, 0, 0, 100, 0, 0, 0, 0];
const NOP_TS_NOP: &[u8] = &[1, 8, 10, 0, 0, 0, 100, 0, 0, 0, 0, 1];
const TS_NOP_NOP: &[u8] = &[8, 10, 0, 0, 0, 100, 0, 0, 0, 0, 1, 1];
const WINDOW_SCALE: &[u8] = &[3, 3, 7, 1, 0, 0, 0, 0, 0, 0, 0, 0];
const IP_TIMESTAMP: &[u8] = &[68, 12, 13, 0, 0, 0, 0, 0, 0, 0, 0, 0];

type Edit = Box<dyn Fn(&mut Parts)>;

/// What one case sends: the payload bytes that precede in the stream, and the edit of the frame.
struct Case {
    name: &'static str,
    sent: Vec<(u32, Edit)>,
    v4: Option<Vec<usize>>,
    v6: Option<Vec<usize>>,
    /// IPv4 in IPv4; the outer header has the same TTL and fixed identification throughout.
    ipip: Option<Vec<usize>>,
}

/// A packet of `len` bytes behind `at` bytes of its stream.
fn data(at: u32, len: usize, edit: impl Fn(&mut Parts) + 'static) -> (u32, Edit) {
    let edit = move |p: &mut Parts| {
        p.resize(len);
        edit(p);
    };
    (at, Box::new(edit))
}

fn same(at: u32) -> (u32, Edit) {
    data(at, LEN, |_| ())
}

fn both(name: &'static str, sent: Vec<(u32, Edit)>, expected: &[usize]) -> Case {
    let expected = Some(Vec::from(expected));
    Case { name, sent, v4: expected.clone(), v6: expected.clone(), ipip: expected }
}

fn v4(name: &'static str, sent: Vec<(u32, Edit)>, expected: &[usize]) -> Case {
    let expected = Some(Vec::from(expected));
    Case { name, sent, v4: expected.clone(), v6: None, ipip: expected }
}

fn v6(name: &'static str, sent: Vec<(u32, Edit)>, expected: &[usize]) -> Case {
    Case { name, sent, v4: None, v6: Some(expected.into()), ipip: None }
}

/// Of those whose headers are 20 bytes longer.
fn longer(name: &'static str, sent: Vec<(u32, Edit)>, expected: &[usize]) -> Case {
    Case { v4: None, ..both(name, sent, expected) }
}

fn flagged(name: &'static str, bit: u16) -> Case {
    let empty = data(200, 0, move |p| p.tcp.flags |= bit);
    both(name, vec![same(0), same(100), empty, same(200), same(300)], &[200, 0, 200])
}

fn ids(name: &'static str, df: bool, ids: &[u16], expected: &[usize]) -> Case {
    let sent = ids.iter().zip(0..).map(|(id, n)| {
        let id = *id;
        data(n * 100, LEN, move |p| (p.v4.id, p.v4.df) = (id, df))
    });
    v4(name, sent.collect(), expected)
}

/// Segments of 4036 bytes up to `full`, then two of `rest`, where full segments would stand.
fn large(full: usize, rest: usize) -> Vec<(u32, Edit)> {
    let mut sent: Vec<_> = (0..full / 4036).map(|n| data(n as u32 * 4036, 4036, |_| ())).collect();
    let at = (full / 4036 * 4036) as u32;
    sent.push(data(at, rest, |_| ()));
    sent.push(data(at + 4036, rest, |_| ()));
    sent
}

fn data_cases() -> Vec<Case> {
    vec![
        both("data_same", vec![same(0), same(100)], &[200]),
        both("data_lrg_sml", vec![same(0), data(100, 50, |_| ())], &[150]),
        both("data_sml_lrg", vec![data(0, 50, |_| ()), same(50)], &[50, 100]),
        both("data_lrg_1byte", vec![same(0), data(100, 1, |_| ())], &[101]),
        both("single", vec![same(0)], &[100]),
        Case { ipip: None, ..v4("large_max", large(65_495, 919), &[65_495, 919]) },
        longer("large_max", large(65_475, 899), &[65_475, 899]),
        Case { ipip: None, ..v4("large_rem", large(65_495, 920), &[64_576, 920, 920]) },
        longer("large_rem", large(65_475, 900), &[64_576, 900, 900]),
        Case { ipip: None, ..v4("capacity", capacity(), &[200; 8]) },
    ]
}

fn capacity() -> Vec<(u32, Edit)> {
    let packet = |at: u32, flow: u16| {
        data(at, LEN, move |p| {
            p.tcp.src_port += flow;
            p.tcp.flags |= if at == 0 { 0 } else { flag::PSH };
        })
    };
    [0, 100].into_iter().flat_map(|at| (0..8).map(move |flow| packet(at, flow))).collect()
}

fn tcp_cases() -> Vec<Case> {
    let ack = |n: u32| data(0, 0, move |p| p.tcp.ack += n);
    let psh = data(200, LEN, |p| p.tcp.flags |= flag::PSH);
    let cwr = |at| data(at, LEN, |p| p.tcp.flags |= flag::CWR);
    let bad = data(100, LEN, |p| p.tcp.check = Check::Flipped(1));
    let with = |at, options| data(at, LEN, move |p| p.tcp.options = options);
    vec![
        both("ack", vec![ack(0), ack(0), ack(1)], &[0, 0, 0]),
        both("flags_psh", vec![same(0), same(100), psh, same(300), same(400)], &[300, 200]),
        flagged("flags_syn", flag::SYN),
        flagged("flags_rst", flag::RST),
        flagged("flags_urg", flag::URG),
        both(
            "flags_cwr",
            vec![same(0), cwr(100), cwr(200), same(300), same(400)],
            &[100, 100, 100, 200],
        ),
        both("tcp_csum", vec![same(0), bad], &[100, 100]),
        both("tcp_seq", vec![same(0), same(101)], &[100, 100]),
        both(
            "tcp_ts",
            vec![
                with(0, NOP_NOP_TS_0),
                with(100, NOP_NOP_TS_0),
                with(200, NOP_NOP_TS),
                with(300, NOP_TS_NOP),
                with(400, TS_NOP_NOP),
            ],
            &[200, 100, 100, 100],
        ),
        both(
            "tcp_opt",
            vec![with(0, NOP_NOP_TS), with(100, NOP_NOP_TS), with(200, WINDOW_SCALE)],
            &[200, 100],
        ),
    ]
}

fn ip_cases() -> Vec<Case> {
    let tos = |bits: u8| data(100, LEN, move |p| (p.v4.tos, p.v6.class) = (bits, bits));
    let ext = |at, options: &'static [Ext<'static>]| data(at, LEN, move |p| p.v6.ext = options);
    let fragment = &[Ext::Fragment { offset: 0, more: false, id: 1 }];
    let (a, b) = (&[Ext::HopByHop(&[1, 4, 1, 2, 3, 4])], &[Ext::HopByHop(&[1, 4, 1, 2, 3, 5])]);
    vec![
        both("ip_ecn", vec![same(0), tos(2)], &[100, 100]),
        both("ip_tos", vec![same(0), tos(0x10)], &[100, 100]),
        v4("ip_ttl", vec![same(0), data(100, LEN, |p| p.v4.ttl = 7)], &[100, 100]),
        v4(
            "ip_opt",
            vec![same(0), data(100, LEN, |p| p.v4.options = IP_TIMESTAMP), same(200)],
            &[100, 100, 100],
        ),
        v4("ip_frag4", vec![same(0), data(100, LEN, |p| p.v4.mf = true)], &[100, 100]),
        ids("ip_id_df1_inc", true, &[8, 9], &[200]),
        ids("ip_id_df1_fixed", true, &[8, 8], &[200]),
        ids("ip_id_df0_inc", false, &[8, 9], &[200]),
        ids("ip_id_df0_fixed", false, &[8, 8], &[200]),
        ids("ip_id_df1_inc_fixed", true, &[8, 9, 9], &[200, 100]),
        ids("ip_id_df1_fixed_inc", true, &[8, 8, 9], &[200, 100]),
        v6("ip_frag6", vec![same(0), same(100), ext(200, fragment), same(300)], &[100, 200, 100]),
        v6("ip_v6ext_same", vec![ext(0, a), ext(100, a)], &[200]),
        v6("ip_v6ext_diff", vec![ext(0, a), ext(100, b)], &[100, 100]),
    ]
}

/// The payload's length, by the headers of the packet that came out.
fn payload_len(packet: &Split) -> usize {
    let frame = if packet.front()[23] == 4 { &packet.front()[20..] } else { packet.front() };
    let (l4, end) = match (frame[14] >> 4, frame[20]) {
        (4, _) => {
            (14 + usize::from(frame[14] & 15) * 4, u16::from_be_bytes([frame[16], frame[17]]))
        }
        (_, 6) => (54, u16::from_be_bytes([frame[18], frame[19]]) + 40),
        (_, _) => (62, u16::from_be_bytes([frame[18], frame[19]]) + 40),
    };
    14 + usize::from(end) - l4 - usize::from(frame[l4 + 12] >> 4) * 4
}

/// A frame's packet in IPv4.
fn in_ip(frame: &[u8]) -> Vec<u8> {
    let outer = Ipv4 { ttl: 8, ..Ipv4::default() };
    ethernet(Eth::default(), 0x0800, &packet(outer, Transport::Raw(4), &frame[14..]))
}

fn check(case: &Case, build: impl Fn(u32, &dyn Fn(&mut Parts)) -> Vec<u8>, expected: &[usize]) {
    let prepare = |at: u32, p: &mut Parts| {
        (p.v4.ttl, p.v6.hop_limit, p.v4.id, p.tcp.window) = (8, 8, 0, 0xffff);
        p.tcp.seq = 100 + at;
    };
    let mut frames: Vec<_> = case
        .sent
        .iter()
        .map(|(at, edit)| {
            build(0, &|p| {
                prepare(*at, p);
                edit(p);
            })
        })
        .collect();
    frames.push(build(0, &|p| {
        prepare(0, p);
        p.resize(0);
        p.tcp.flags |= flag::FIN;
    }));
    let out = run(&Config::default(), packets(frames), 64);
    let mut lens: Vec<_> = out.iter().map(|out| payload_len(&out.packet)).collect();
    // A FIN of a flow that was evicted or flushed in the same round may not be the last.
    let fin = out.iter().position(|out| *out.members.last().unwrap() == case.sent.len() as u64);
    assert_eq!(lens.remove(fin.unwrap()), 0, "{}", case.name);
    assert_eq!(lens, expected, "{}", case.name);
}

#[test]
fn equal_the_kernels_table() {
    let mut checked = 0;
    for case in data_cases().into_iter().chain(tcp_cases()).chain(ip_cases()) {
        if let Some(expected) = &case.v4 {
            check(&case, |n, edit| tcp4(n, edit), expected);
            checked += 1;
        }
        if let Some(expected) = &case.v6 {
            check(&case, |n, edit| tcp6(n, edit), expected);
            checked += 1;
        }
        if let Some(expected) = &case.ipip {
            check(&case, |n, edit| in_ip(&tcp4(n, edit)), expected);
            checked += 1;
        }
    }
    assert_eq!(checked, 79);
}

#[test]
fn a_pause_flushes() {
    let burst = |n| tcp4(n, |p| p.v4.id = 0);
    let out = run(&Config::default(), packets((0..4).map(burst)), 2);
    let lens: Vec<_> = out.iter().map(|out| payload_len(&out.packet)).collect();
    assert_eq!(lens, [200, 200]);
}
