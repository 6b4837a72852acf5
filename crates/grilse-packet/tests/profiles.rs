//! Every named profile, through packets: built here, freed there, cloned, and the profile turned
//! between any two rounds.

use grilse_mem::{Policy, Role};
use grilse_packet::{Ctx, Memory};

/// Rounds of one seat taking and the other freeing, each in its role; afterwards all are free.
fn rounds(profiles: &[Policy]) {
    for roles in [[Role::Worker, Role::Foreign], [Role::Foreign, Role::Worker]] {
        let memory = Memory::new(1024, None).unwrap();
        let [mut here, mut away] = roles.map(|role| Ctx::new(memory.seat(role)).unwrap());
        for round in 0..60u64 {
            memory.set_policy(profiles[round as usize % profiles.len()]).unwrap();
            here.begin(round);
            let mut bulk: [_; 70] = std::array::from_fn(|_| None);
            assert_eq!(here.take_bulk(&mut bulk[..40]), 40);
            let mut skbs: Vec<_> = (0..100).map(|_| here.take().unwrap()).collect();
            skbs.extend(bulk.iter_mut().filter_map(Option::take));
            for (number, skb) in skbs.iter_mut().enumerate() {
                skb.put(64).unwrap().fill(number as u8);
            }
            let clone = skbs[0].try_clone(&mut here).unwrap();
            let last = skbs.len();
            skbs.push(clone);
            here.end();
            away.begin(round);
            for (number, skb) in skbs.drain(..70).enumerate() {
                let byte = number as u8;
                assert!(skb.linear().iter().all(|is| *is == byte), "its own bytes");
                bulk[number] = Some(skb);
            }
            // Own and others' in turn, and holes between them.
            here.consume_bulk(&mut bulk[..20]);
            away.consume_bulk(&mut bulk);
            assert!(bulk.iter().all(Option::is_none));
            for (number, skb) in (70..).zip(skbs) {
                let byte = if number == last { 0 } else { number as u8 };
                assert!(skb.linear().iter().all(|is| *is == byte), "its own bytes");
                if number % 3 == 0 { here.consume(skb) } else { away.consume(skb) }
            }
            away.end();
            here.end();
            let ledger = memory.ledgers().shells;
            let all = ledger.depot + ledger.cached + ledger.travelling;
            assert_eq!((ledger.in_use, all), (0, ledger.made), "round {round}");
        }
        here.flush();
        away.flush();
        drop((here, away));
        assert_eq!(memory.ledgers().shells.depot, memory.ledgers().shells.made);
    }
}

#[test]
fn each_profile_gets_all_packets_back() {
    for (name, profile) in Policy::PROFILES {
        println!("{name}");
        rounds(&[*profile]);
    }
}

#[test]
fn profiles_may_turn_every_round() {
    let all: Vec<_> = Policy::PROFILES.iter().map(|(_, profile)| *profile).collect();
    rounds(&all);
    for (_, first) in Policy::PROFILES {
        for (_, second) in Policy::PROFILES {
            rounds(&[*first, *second]);
        }
    }
}

/// Without a cache of heads a shell that is freed has none: what was the packet's is free for the
/// next, which need not be of the same shell.
#[test]
fn a_freed_shell_gives_up_its_head() {
    let memory = Memory::new(64, None).unwrap();
    memory.set_policy(Policy { head_cache: false, ..Policy::KERNEL_2024 }).unwrap();
    let mut ctx = Ctx::new(memory.seat(Role::Worker)).unwrap();
    for _ in 0..3 {
        ctx.begin(0);
        let skbs: Vec<_> = (0..40).map(|_| ctx.take().unwrap()).collect();
        ctx.end();
        assert_eq!((memory.ledgers().shells.in_use, memory.ledgers().data.in_use), (40, 40));
        skbs.into_iter().for_each(|skb| ctx.consume(skb));
        ctx.end();
        assert_eq!((memory.ledgers().shells.in_use, memory.ledgers().data.in_use), (0, 0));
    }
}
