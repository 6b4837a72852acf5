//! Figures from rounds: medians, spread, and an interval for a ratio that is paired round by round.

/// What the rounds of one contestant say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// A median, and where it lies in 95 of 100 repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Of at least one figure.
    pub(crate) fn of(figures: &[f64]) -> Self {
        let sorted = sorted(figures);
        Self { median: middle(&sorted), min: sorted[0], max: sorted[sorted.len() - 1] }
    }
}

impl Interval {
    /// The median of `ours[i] / theirs[i]`, with the order statistics that bound it in 95 of 100
    /// cases: no assumption on how figures scatter, which on a shared machine nobody knows.
    pub(crate) fn of_ratio(ours: &[f64], theirs: &[f64]) -> Self {
        let ratios: Vec<f64> =
            ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        let sorted = sorted(&ratios);
        let rank = lower_rank(sorted.len());
        Self { low: sorted[rank], median: middle(&sorted), high: sorted[sorted.len() - 1 - rank] }
    }
}

fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> f64 {
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

/// The highest rank `k`, counted from 0, that the true median lies below with at most 2.5 %: the
/// chance of `k` heads or fewer in `n` tosses. 0 where there are too few figures for that.
fn lower_rank(n: usize) -> usize {
    let (mut term, mut below, mut k) = (0.5f64.powi(n as i32), 0.0, 0);
    while k < n / 2 {
        below += term;
        if below > 0.025 {
            break;
        }
        term *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    k.saturating_sub(1)
}

/// The published ranks for a 95 % interval of the median (counted from 1 there): 6 and 16 of 21,
/// 2 and 9 of 10; and a ratio that never varies. Part of `--check`, as a benchmark has no tests.
pub(crate) fn check() {
    assert_eq!((lower_rank(21), lower_rank(10), lower_rank(3)), (5, 1, 0));
    let steady = Interval::of_ratio(&[4.0, 6.0, 2.0], &[2.0, 3.0, 1.0]);
    assert_eq!(steady, Interval { low: 2.0, median: 2.0, high: 2.0 });
    assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
}
