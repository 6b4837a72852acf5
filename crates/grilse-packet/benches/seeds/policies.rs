//! Who is compared with whom: the opponents of the `grilse` profile, and what the seeds claim of one
//! kernel against another.

use grilse_mem::{Alien, Policy, ShellCache, SlabModel};

use crate::verdict::Sign;
use crate::work::Work;

/// A policy and what the table calls it.
pub(crate) type Named = (&'static str, Policy);

/// The profile that is judged.
pub(crate) const JUDGED: Named = ("grilse", Policy::GRILSE);

/// Whom it must not lose to: every other named policy; and itself with each of its ways fixed, as a
/// choice that is right costs no more than to have no choice. The last is the same in another memory:
/// where that row is off 1, where the pages happen to lie makes a difference of that size.
pub(crate) fn opponents() -> Vec<Named> {
    let named = Policy::PROFILES.iter().copied().filter(|(name, _)| *name != JUDGED.0);
    let fixed = [
        ("grilse, home", Alien::Home),
        ("grilse, adopt", Alien::Adopt),
        ("grilse, slab", Alien::Slab),
    ];
    let fixed = fixed.map(|(name, way)| {
        (name, Policy { free_tx_alien: way, free_rx_socket: way, ..Policy::GRILSE })
    });
    named.chain(fixed).chain([("grilse, again", JUDGED.1)]).collect()
}

/// One of a seed's measurements: what came of `b` after `a`.
pub(crate) struct Claim {
    /// Its number in the list of the seeds' figures.
    pub(crate) seed: &'static str,
    pub(crate) a: Named,
    pub(crate) b: Named,
    /// The sign of the change in throughput.
    pub(crate) expected: Sign,
    /// The figure that was published.
    pub(crate) published: &'static str,
}

const K2016: Named = ("kernel-2016", Policy::KERNEL_2016);
const K2021: Named = ("kernel-2021", Policy::KERNEL_2021);
const K2022: Named = ("kernel-2022", Policy::KERNEL_2022);
const K2024: Named = ("kernel-2024", Policy::KERNEL_2024);
const HOME: Named = ("kernel-2025-11-home", Policy::KERNEL_2025_11_HOME);
const TASK: Named = ("kernel-2025-11-task", Policy::KERNEL_2025_11_TASK);

/// Before February 2016: every take and free goes to the slab.
const UNCACHED: Named =
    ("uncached", Policy { shell_cache: ShellCache::Off, ..Policy::KERNEL_2016 });
const UNCACHED_SLAB: Named =
    ("uncached, SLAB", Policy { slab_model: SlabModel::Slab, ..UNCACHED.1 });
const K2016_SLAB: Named =
    ("kernel-2016, SLAB", Policy { slab_model: SlabModel::Slab, ..Policy::KERNEL_2016 });
/// Home-going as of November 2025, with the bound that it had before.
const HOME_64: Named =
    ("2025-11-home, max 64", Policy { defer_max: 64, ..Policy::KERNEL_2025_11_HOME });
/// The process-context cache without home-going.
const TASK_ADOPT: Named =
    ("2025-11-task, adopt", Policy { free_tx_alien: Alien::Adopt, ..Policy::KERNEL_2025_11_TASK });

/// What the seeds say of this workload.
pub(crate) fn claims(work: Work) -> Vec<Claim> {
    use Sign::{Gain, Loss, Nothing};
    let claim = |seed, a, b, expected, published| Claim { seed, a, b, expected, published };
    match work {
        Work::Forward => vec![
            claim("N1", UNCACHED, K2016, Gain, "+0.9 %"),
            claim("N2", UNCACHED_SLAB, K2016_SLAB, Nothing, "-0.1 %"),
            claim("2021", K2016, K2021, Gain, "none in the seeds"),
        ],
        Work::Echo => vec![claim("N3", K2022, K2024, Gain, "+1 %")],
        Work::RxSocket => vec![claim("2022", K2021, K2022, Gain, "+47 %")],
        // The figure is of pages: 30 of 32 shells never leave.
        Work::RxGro => vec![claim("N6", K2021, K2022, Nothing, "an argument, no figure")],
        Work::UdpTx => vec![
            claim("N7", K2024, HOME, Gain, "+50 %"),
            claim("N8", HOME_64, HOME, Gain, "part of N7"),
            claim("N9", HOME, TASK, Gain, "+8 %"),
        ],
        Work::UdpBoth => vec![claim("N7", K2024, HOME, Gain, "+50 %")],
        Work::XdpTx => vec![
            claim("N10", K2024, HOME, Loss, "-26.3 %"),
            claim("N11", HOME, TASK, Gain, "+12.9 %"),
            claim("N11", TASK, TASK_ADOPT, Gain, "above 1.9 M against 1.73 M"),
        ],
    }
}
