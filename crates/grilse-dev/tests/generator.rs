//! The generator makes what it is asked for: frames that others find right, in the order and at the
//! pace that its options say.

use grilse_dev::{Device, Opener, Spec, Wanted};
use grilse_mem::Role;
use grilse_packet::{Batch, Ctx, Memory};
use grilse_wire::Packet;

fn queues(spec: &str, queues: usize) -> Vec<Box<dyn Device>> {
    let spec: Spec = spec.parse().unwrap();
    Opener::default().open(&spec, Wanted { rx: true, tx: false, queues }).unwrap()
}

fn ctx() -> Ctx {
    Ctx::new(Memory::new(1024, None).unwrap().seat(Role::Worker)).unwrap()
}

/// All frames that come up to the time `now_ns`.
fn frames(device: &mut dyn Device, ctx: &mut Ctx, now_ns: u64) -> (Vec<Vec<u8>>, bool) {
    let (mut out, mut frames) = (Batch::new(), Vec::new());
    loop {
        ctx.begin(now_ns);
        let received = device.rx(ctx, &mut out, 64).unwrap();
        while let Some(skb) = out.pop() {
            frames.push(skb.pieces(0..skb.len()).flatten().copied().collect());
            ctx.consume(skb);
        }
        ctx.end();
        if received.taken == 0 || received.ended {
            return (frames, received.ended);
        }
    }
}

fn number(frame: &[u8], network: usize) -> u64 {
    u64::from_be_bytes(*frame[14 + network + 8..].first_chunk().unwrap())
}

#[test]
fn frames_are_right() {
    for (proto, ip) in [("udp", "4"), ("udp", "6"), ("tcp", "4"), ("tcp", "6")] {
        let spec = format!("gen:,proto={proto},ip={ip},size=74..9018,count=200,flows=3");
        let (frames, ended) = frames(&mut *queues(&spec, 1)[0], &mut ctx(), 0);
        assert_eq!((frames.len(), ended), (200, true), "{spec}");
        let mut lens: Vec<_> = frames.iter().map(Vec::len).collect();
        lens.sort_unstable();
        lens.dedup();
        assert!(lens.len() > 100 && lens[0] >= 74, "sizes are drawn: {spec}");
        let same = format!("gen:,proto={proto},ip={ip},size=100,count=70000");
        let (same, _) = self::frames(&mut *queues(&same, 1)[0], &mut ctx(), 0);
        // Frames that differ in their numbers only, and where those wrap.
        for frame in frames.iter().chain(&same[..300]).chain(&same[65_400..65_600]) {
            let packet = etherparse::PacketHeaders::from_ethernet_slice(frame).unwrap();
            let payload = packet.payload.slice();
            let (net, transport) = (packet.net.unwrap(), packet.transport.unwrap());
            let (found, right) = match (&net, &transport) {
                (etherparse::NetHeaders::Ipv4(ip, _), etherparse::TransportHeader::Udp(udp)) => {
                    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                    (udp.checksum, udp.calc_checksum_ipv4(ip, payload).unwrap())
                }
                (etherparse::NetHeaders::Ipv6(ip, _), etherparse::TransportHeader::Udp(udp)) => {
                    (udp.checksum, udp.calc_checksum_ipv6(ip, payload).unwrap())
                }
                (etherparse::NetHeaders::Ipv4(ip, _), etherparse::TransportHeader::Tcp(tcp)) => {
                    (tcp.checksum, tcp.calc_checksum_ipv4(ip, payload).unwrap())
                }
                (etherparse::NetHeaders::Ipv6(ip, _), etherparse::TransportHeader::Tcp(tcp)) => {
                    (tcp.checksum, tcp.calc_checksum_ipv6(ip, payload).unwrap())
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(found, right, "{spec}");
        }
    }
}

#[test]
fn a_rate_is_kept_in_whole_bursts() {
    let mut queue = queues("gen:,rate=1_000_000,burst=32", 1);
    let mut ctx = ctx();
    let mut at = |now_ns| frames(&mut *queue[0], &mut ctx, now_ns).0.len();
    assert_eq!(at(5_000), 32, "the first burst comes at once");
    assert_eq!(at(36_000), 0);
    assert_eq!(at(37_000), 32);
    assert_eq!(at(1_005_000), 1024 - 64, "what is late comes all together");
}

#[test]
fn queues_share_what_was_asked_for() {
    let mut ctx = ctx();
    let mut seen = Vec::new();
    for mut queue in queues("gen:,count=1000,flows=10", 3) {
        let (frames, ended) = frames(&mut *queue, &mut ctx, 0);
        assert!(ended);
        seen.extend(frames.iter().map(|frame| (frame[34..36].to_vec(), number(frame, 20))));
    }
    assert_eq!(seen.len(), 1000);
    seen.sort_unstable();
    let all = seen.len();
    seen.dedup();
    assert_eq!(seen.len(), all, "no flow is made by two queues");
}

#[test]
fn reordered_packets_come_behind_their_successor_and_none_is_lost() {
    let mut ctx = ctx();
    let mut numbers = |spec: &str| {
        let (frames, _) = frames(&mut *queues(spec, 1)[0], &mut ctx, 0);
        frames.iter().map(|frame| number(frame, 20)).collect::<Vec<_>>()
    };
    let spec = "gen:,count=10000,reorder=100000,seed=7";
    let mixed = numbers(spec);
    assert_eq!(mixed, numbers(spec), "the seed decides");
    let late = mixed.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!((800..1200).contains(&late), "{late} of 10,000");
    let mut sorted = mixed;
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..10_000));
}

#[test]
fn what_it_cannot_make_is_refused() {
    let refused = |spec: &str| {
        let spec: Spec = spec.parse().unwrap();
        let wanted = Wanted { rx: true, tx: false, queues: 1 };
        Opener::default().open(&spec, wanted).err().expect("refused").to_string()
    };
    assert!(refused("gen:,size=20").contains("50..=9018"));
    assert!(refused("gen:,size=64..60").contains("N..M"));
    assert!(refused("gen:,proto=sctp").contains("udp or tcp"));
    assert!(refused("gen:,flow=3").contains("\"flows\""));
    assert!(refused("gen:x").contains("no target"));
}
