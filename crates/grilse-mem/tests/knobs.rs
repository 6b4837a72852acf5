//! Policies by name: what is refused, and that a refusal changes nothing.

#![cfg(not(any(loom, shuttle)))]

use grilse_mem::{BadPolicy, Policy, Snapshot, Switch};

/// Values that no knob takes, or that only a wide one does.
const WRONG: [&str; 7] = ["", "-1", "4294967296", "1.5", "0x10", "On", "no such word"];

#[test]
fn what_is_refused_changes_nothing_and_says_what_is_allowed() {
    for (name, profile) in Policy::PROFILES {
        for knob in Policy::KNOBS {
            for value in WRONG {
                let mut policy = *profile;
                let refused = policy.set(knob, value).unwrap_err();
                assert_eq!(policy, *profile, "{name}");
                let BadPolicy::Value { knob: said, value: wrong, allowed } = &refused else {
                    panic!("{refused:?}");
                };
                assert_eq!((said, wrong.as_str()), (knob, value));
                assert!(!allowed.is_empty());
                assert!(refused.to_string().ends_with(allowed.as_str()), "{refused}");
            }
        }
        let mut policy = *profile;
        let refused = policy.set("shell.sise", "1").unwrap_err();
        assert_eq!(refused, BadPolicy::Knob { name: "shell.sise".to_owned() });
        assert!(Policy::KNOBS.iter().all(|knob| refused.to_string().contains(knob)));
        assert_eq!(policy, *profile);
    }
    let refused = "kernel-2023".parse::<Policy>().unwrap_err();
    assert!(Policy::PROFILES.iter().all(|(name, _)| refused.to_string().contains(name)));
}

#[test]
fn the_edges_of_a_range_are_in_it() {
    let ranges = [
        ("shell.size", 0, 1024),
        ("shell.bulk", 1, 1024),
        ("shell.flush", 1, 1024),
        ("slab.cpu_partial", 0, 1024),
        ("slab.min_partial", 0, 64),
        ("defer.max", 0, 4095),
        ("defer.kick_at", 0, 100),
        ("defer.outbox", 0, 60),
        ("defer.bytes_max", 0, u32::MAX),
        ("pp.cache", 1, 4096),
        ("pp.refill", 1, 4096),
        ("idle.flush_us", 0, 60_000_000),
    ];
    let numbers = Policy::GRILSE.knobs();
    let numbers = numbers.iter().filter(|(_, value)| value.parse::<u32>().is_ok());
    assert!(numbers.map(|(knob, _)| *knob).eq(ranges.map(|(knob, ..)| knob)), "all are listed");
    for (knob, least, most) in ranges {
        let mut policy = Policy::GRILSE;
        for edge in [least, most] {
            policy.set(knob, &edge.to_string()).unwrap();
            assert!(policy.knobs().contains(&(knob, edge.to_string())));
        }
        for beyond in [least.checked_sub(1), most.checked_add(1)].into_iter().flatten() {
            let said = policy.set(knob, &beyond.to_string()).unwrap_err().to_string();
            assert_eq!(said, format!("{knob} cannot be {beyond}: allowed is {least} to {most}"));
        }
    }
}

/// What a policy says of itself makes it again, and every profile is found by its name.
#[test]
fn a_policy_is_its_knobs() {
    for (name, profile) in Policy::PROFILES {
        assert_eq!(name.parse::<Policy>().as_ref(), Ok(profile));
        assert_eq!(profile.check(), Ok(()), "{name}");
        let mut policy = Policy::KERNEL_2016;
        profile.knobs().iter().for_each(|(knob, value)| policy.set(knob, value).unwrap());
        assert_eq!(policy, *profile);
    }
}

/// A policy whose fields were set by hand is checked before it counts.
#[test]
fn the_switch_refuses_and_keeps_what_it_had() {
    let switch = Switch::new();
    let mut snapshot = Snapshot::default();
    switch.set(Policy::KERNEL_2022).unwrap();
    let wrong = Policy { defer_outbox: 61, ..Policy::GRILSE };
    let said = switch.set(wrong).unwrap_err().to_string();
    assert_eq!(said, "defer.outbox cannot be 61: allowed is 0 to 60");
    assert!(switch.look(&mut snapshot));
    assert_eq!(snapshot.policy, Policy::KERNEL_2022);
    assert!(!switch.look(&mut snapshot));
}
