//! The table of kernels, row by row: what each profile makes of the traffic that a row is about. Of
//! these only `kernel-6.18` was laid beside a running kernel; the others follow the kernel's source.

use grilse_offload::{Config, Gro, Outcome, Rules, Sink, Why};
use grilse_wire::build::Ext;
use grilse_wire::tcp::flag;
use grilse_wire::{Csum, Gso, GsoType, Meta, Packet};

mod support;
use support::frame::{Parts, packets, tcp4, tcp6, udp4};
use support::{Frame, Kept, Out, Split, run};

const LOSSLESS: [&str; 2] = ["exact", "relaxed"];

fn config(rules: &Rules) -> Config {
    let mut config = Config::default();
    (config.rules, config.udp_fwd) = (*rules, true);
    config
}

/// How many segments each delivered packet stands for.
fn sizes(out: &[Out<Split>]) -> Vec<usize> {
    out.iter().map(|out| out.members.len()).collect()
}

/// Checks a row: `send` under each profile gives packets of so many segments.
fn row(
    what: &str,
    send: impl Fn() -> Vec<Split>,
    expected: impl Fn(&Rules) -> &'static [usize],
) -> Vec<(&'static str, Vec<Out<Split>>)> {
    let check = |rules: &Rules| {
        let out = run(&config(rules), send(), 2000);
        assert_eq!(sizes(&out), expected(rules), "{what}: {}", rules.name);
        (rules.name, out)
    };
    Rules::ALL.iter().map(check).collect()
}

fn tcp_pair(edit: impl Fn(u32, &mut Parts)) -> Vec<Split> {
    packets((0..2).map(|n| tcp4(n, |p| edit(n, p))))
}

/// Until 6.9 a head with DF that is no single packet must keep its identification.
#[test]
fn l3_is_tested_per_candidate_or_against_the_head() {
    row("TTL", || tcp_pair(|n, p| p.v4.ttl = 64 - n as u8), |_| &[1, 1]);
    row("IDs that count", || tcp_pair(|_, _| ()), |_| &[2]);
    let train = |id| {
        move || {
            let mut packets = packets([tcp4(0, |p| p.resize(300)), tcp4(3, |p| p.v4.id = id)]);
            packets[0].meta_mut().gso = Gso { size: 100, segs: 3, kind: GsoType::TCPV4 };
            packets
        }
    };
    row("a train, then the next", train(3), |rules| match rules.name {
        "kernel-6.9" => &[1, 1],
        _ => &[2],
    });
    row("a train, then the same", train(0), |rules| match rules.name {
        "kernel-6.9" => &[2],
        _ => &[1, 1],
    });
}

#[test]
fn udp_obeys_the_test_of_ip_since_6_10() {
    let send = || packets((0..2).map(|n| udp4(n, |p| p.v4.ttl = 64 - n as u8)));
    row("UDP with two TTLs", send, |rules| match rules.name {
        "kernel-6.9" => &[2],
        _ => &[1, 1],
    });
}

#[test]
fn a_fixed_id_needs_df_until_6_17() {
    let fixed = |df| move || tcp_pair(|_, p| (p.v4.id, p.v4.df) = (8, df));
    row("fixed, with DF", fixed(true), |_| &[2]);
    row("fixed, without DF", fixed(false), |rules| match rules.name {
        "kernel-6.9" | "kernel-6.14" | "kernel-6.17" => &[1, 1],
        _ => &[2],
    });
    let ids =
        |ids: [u16; 3]| move || packets((0..3).map(|n| tcp4(n, |p| p.v4.id = ids[n as usize])));
    row("fixed, then counting", ids([8, 8, 9]), |_| &[2, 1]);
    row("counting, then fixed", ids([8, 9, 9]), |_| &[2, 1]);
    row("a gap", ids([8, 10, 11]), |_| &[1, 2]);
}

#[test]
fn cwr_leads_a_train_or_stands_alone_or_runs() {
    let send = || {
        let cwr = |n| if n == 1 || n == 2 { flag::CWR } else { 0 };
        packets((0..5).map(|n| tcp4(n, |p| p.tcp.flags |= cwr(n))))
    };
    let out = row("CWR", send, |rules| match rules.name {
        "kernel-6.9" | "kernel-6.14" => &[1, 1, 3],
        "kernel-7.0" => &[1, 2, 2],
        _ => &[1, 1, 1, 2],
    });
    for (name, out) in out {
        let cwr =
            out.iter().find(|out| out.members.len() > 1 && out.packet.front()[47] & 0x80 != 0);
        let kind = cwr.map(|out| out.packet.meta().gso.kind);
        let due = match name {
            "kernel-6.9" | "kernel-6.14" => Some(GsoType::TCPV4 | GsoType::TCP_ECN),
            "kernel-7.0" => Some(GsoType::TCPV4 | GsoType::TCP_ACCECN),
            _ => None,
        };
        assert_eq!(kind, due, "{name}");
    }
}

#[test]
fn big_tcp_has_a_jumbo_option_until_6_19() {
    let send = || {
        packets((0..10).map(|n| {
            tcp6(n, |p| {
                p.tcp.seq = 8000 * n;
                p.resize(8000);
            })
        }))
    };
    for rules in Rules::ALL {
        let mut config = config(rules);
        config.set_gro_max_size(180_000).unwrap();
        let out = run(&config, send(), 64);
        assert_eq!(sizes(&out), [10], "{}", rules.name);
        let (frame, plain) = (out[0].packet.frame(), rules.name == "kernel-7.0");
        assert_eq!((&frame[18..20], frame[20]), (&[0, 0][..], if plain { 6 } else { 0 }));
        assert_eq!(frame.len(), 74 + 80_000 + if plain { 0 } else { 8 });
        assert_eq!(out[0].packet.meta().transport, if plain { 54 } else { 62 });
        let bare = send().into_iter().map(Split::without_headroom).collect();
        assert_eq!(run(&config, bare, 64).len(), if plain { 1 } else { 2 }, "{}", rules.name);
    }
}

#[test]
fn tcp_is_chained_since_6_10() {
    for rules in Rules::ALL {
        let mut config = config(rules);
        config.gro_list = true;
        let out = run(&config, tcp_pair(|_, _| ()), 64);
        let chained = out[0].packet.meta().gso.kind.contains(GsoType::FRAGLIST);
        assert_eq!((sizes(&out), chained), (vec![2], rules.name != "kernel-6.9"), "{}", rules.name);
    }
}

#[test]
fn identifications_are_kept_for_udp_and_lists() {
    for (list, rules) in
        [false, true].into_iter().flat_map(|list| Rules::ALL.iter().map(move |r| (list, r)))
    {
        let mut config = config(rules);
        config.gro_list = list;
        let out = run(&config, packets((0..2).map(|n| udp4(n, |p| p.v4.id = 8))), 64);
        let kind = out[0].packet.meta().gso.kind;
        let kept = GsoType::TCP_FIXEDID | GsoType::IDS_PER_LEVEL;
        assert_eq!(kind.contains(kept), LOSSLESS.contains(&rules.name), "{}", rules.name);
        assert_eq!(kind.intersects(kept), LOSSLESS.contains(&rules.name), "{}", rules.name);
    }
}

/// A list of the kernel takes Ethernet padding, and segmentation would count it as payload.
#[test]
fn lists_take_no_padding_where_nothing_is_lost() {
    for rules in Rules::ALL {
        let mut config = config(rules);
        config.gro_list = true;
        let mut padded = tcp_pair(|n, p| {
            if n == 1 {
                p.resize(97);
                p.eth.padding = 3;
            }
        });
        for packet in &mut padded {
            packet.meta_mut().csum = Csum::Unnecessary { level: 0 };
        }
        let out = run(&config, padded, 64);
        let expected: &[usize] = match rules.name {
            // By its bytes, and then the padding counts against it.
            "kernel-6.9" | "exact" => &[1, 1],
            _ => &[2],
        };
        assert_eq!(sizes(&out), expected, "{}", rules.name);
    }
}

#[test]
fn what_would_overtake_completes_its_flow_first() {
    type Edit = fn(&mut Parts);
    let of_the_flow: [Edit; 3] = [
        |p| p.v4.options = &[1, 1, 1, 1],
        |p| p.tcp.check = grilse_wire::build::Check::Flipped(1),
        |p| p.tcp.data_offset = Some(4),
    ];
    let without_ports: [Edit; 2] = [|p| p.v4.mf = true, |p| p.v4.protocol = Some(50)];
    for rules in Rules::ALL {
        let ordered = LOSSLESS.contains(&rules.name);
        let order = |edit: Edit| {
            // A flow, another one of the same addresses, and one of others.
            let other = tcp4(0, |p| p.tcp.src_port += 1);
            let far = tcp4(0, |p| p.v4.src[3] += 1);
            let sent = packets([tcp4(0, |_| ()), other, far, tcp4(1, edit)]);
            let out = run(&config(rules), sent, 64);
            out.iter().map(|out| out.members[0]).collect::<Vec<_>>()
        };
        for edit in of_the_flow {
            assert_eq!(order(edit), if ordered { [0, 3, 1, 2] } else { [3, 0, 1, 2] });
        }
        for edit in without_ports {
            assert_eq!(order(edit), if ordered { [0, 1, 3, 2] } else { [3, 0, 1, 2] });
        }
    }
}

/// What the kernel takes for two flows may be one connection, whose packets a flush would reorder.
#[test]
fn no_two_heads_are_of_one_connection() {
    let edits: [fn(&mut Parts); 2] =
        [|p| p.v6.ext = &[Ext::HopByHop(&[1, 4, 0, 0, 0, 0])], |p| p.v6.label = 5];
    for rules in Rules::ALL {
        for edit in edits {
            let sent = packets([tcp6(0, edit), tcp6(1, |_| ()), tcp6(3, |_| ()), tcp6(2, edit)]);
            let out = run(&config(rules), sent, 64);
            let firsts: Vec<_> = out.iter().map(|out| out.members[0]).collect();
            let ordered = LOSSLESS.contains(&rules.name);
            assert_eq!(firsts.is_sorted(), ordered, "{}: {firsts:?}", rules.name);
        }
        // Other connections between the same hosts, and copies on another link, are left alone.
        let other = tcp6(1, |p| p.tcp.src_port += 1);
        let copy = tcp6(1, |p| p.eth.src[5] += 1);
        let sent = packets([tcp6(0, |_| ()), other, copy, tcp6(1, |_| ())]);
        assert_eq!(sizes(&run(&config(rules), sent, 64)), [2, 1, 1], "{}", rules.name);
    }
}

/// Eight heads a bucket, and one bucket where the device gives no hash; 1,024 under `relaxed`.
#[test]
fn relaxed_holds_a_thousand_flows() {
    for hash in [|_| 0, |flow: u32| flow.wrapping_mul(0x9e37_79b9)] {
        let send = || {
            let sent = (0..3000_u32).map(|n| (n % 1000, n / 1000));
            let frames = sent.clone().map(|(flow, n)| tcp4(n, |p| p.tcp.src_port = flow as u16));
            let mut packets = packets(frames);
            for (packet, (flow, _)) in packets.iter_mut().zip(sent) {
                packet.meta_mut().hash = hash(flow);
            }
            packets
        };
        let out = run(&config(&Rules::RELAXED), send(), 3000);
        assert_eq!(sizes(&out), [3; 1000]);
        let firsts: Vec<_> = out.iter().map(|out| out.members[0]).collect();
        assert!(firsts.is_sorted());
        assert_eq!(sizes(&run(&config(&Rules::EXACT), send(), 3000)), [1; 3000]);
    }
    // One flow more than there is room for.
    let flows = |n: u16| packets((0..n).chain(0..n).map(|f| tcp4(0, |p| p.tcp.src_port = f)));
    let out = run(&config(&Rules::RELAXED), flows(1025), 5000);
    assert_eq!(out.iter().filter(|out| out.why.reason.name() == "evicted").count(), 1025 + 1);
}

/// A sink that counts padding.
#[derive(Default)]
struct Trimmed {
    kept: Kept<Split>,
    bytes: Vec<usize>,
}

impl Sink<Split> for Trimmed {
    fn merged(&mut self, head: &Meta, packet: &Meta) {
        self.kept.merged(head, packet);
    }

    fn trimmed(&mut self, _: &Meta, bytes: usize) {
        self.bytes.push(bytes);
    }

    fn deliver(&mut self, packet: Split, why: Why) {
        self.kept.deliver(packet, why);
    }
}

#[test]
fn relaxed_trims_padding_and_counts_it() {
    let segment = |n: u32, padding, v6: bool| {
        let edit = |p: &mut Parts| {
            p.resize(100);
            p.eth.padding = padding;
        };
        if v6 { tcp6(n, edit) } else { tcp4(n, edit) }
    };
    for v6 in [false, true] {
        for rules in Rules::ALL {
            let mut gro = Gro::new(config(rules));
            let mut sink = Trimmed::default();
            for packet in packets([segment(0, 0, v6), segment(1, 6, v6)]) {
                let outcome = gro.push(packet, 0, &mut sink);
                assert!(!matches!(outcome, Outcome::Merged(None)));
            }
            gro.flush(&mut sink);
            let out = sink.kept.out;
            if rules.name == "relaxed" {
                assert_eq!((sizes(&out), sink.bytes), (vec![2], vec![6]));
                assert_eq!(out[0].packet.len(), segment(0, 0, v6).len() + 100);
            } else {
                assert_eq!((sizes(&out), sink.bytes), (vec![1, 1], vec![]), "{}", rules.name);
                assert_eq!(out[1].packet.frame(), segment(1, 6, v6));
            }
        }
    }
}
