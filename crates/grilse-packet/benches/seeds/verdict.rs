//! Judgement: what an interval of paired ratios says.

use std::fmt;

use crate::summary::Interval;

/// What DESIGN asks: the whole interval above this.
const NOT_LOST: f64 = 0.97;

/// How the judged policy stands against an opponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Surely faster.
    Won,
    /// Surely not slower by three of a hundred.
    NotLost,
    /// Surely slower by that.
    Lost,
    /// The interval straddles.
    NotDecided,
}

/// Which way a change went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Gain,
    Loss,
    /// Neither way by more than three of a hundred, for sure; expected: of no matter.
    Nothing,
    /// Seen only: the interval holds 1, and more.
    Unclear,
}

impl Verdict {
    /// Of the throughput by the opponent's.
    pub(crate) fn of(ratio: Interval) -> Self {
        match ratio {
            Interval { low, .. } if low > 1.0 => Self::Won,
            Interval { low, .. } if low > NOT_LOST => Self::NotLost,
            Interval { high, .. } if high < NOT_LOST => Self::Lost,
            _ => Self::NotDecided,
        }
    }
}

impl Sign {
    /// Of the throughput by that before the change.
    pub(crate) fn of(ratio: Interval) -> Self {
        match ratio {
            Interval { low, high, .. } if low > NOT_LOST && high < 1.0 / NOT_LOST => Self::Nothing,
            Interval { low, .. } if low > 1.0 => Self::Gain,
            Interval { high, .. } if high < 1.0 => Self::Loss,
            _ => Self::Unclear,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Won => "won",
            Self::NotLost => "not lost",
            Self::Lost => "LOST",
            Self::NotDecided => "not decided",
        })
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Gain => "+",
            Self::Loss => "-",
            Self::Nothing => "0",
            Self::Unclear => "?",
        })
    }
}

/// Intervals on either side of each border, and one from figures: part of `--check`, as a benchmark
/// has no tests.
pub(crate) fn check() {
    let interval = |low, high| Interval { low, median: (low + high) / 2.0, high };
    for (low, high, verdict, sign) in [
        (1.01, 1.20, Verdict::Won, Sign::Gain),
        (1.01, 1.02, Verdict::Won, Sign::Nothing),
        (0.98, 1.01, Verdict::NotLost, Sign::Nothing),
        (0.98, 1.20, Verdict::NotLost, Sign::Unclear),
        (0.80, 0.96, Verdict::Lost, Sign::Loss),
        (0.96, 0.99, Verdict::NotDecided, Sign::Loss),
        (0.90, 1.10, Verdict::NotDecided, Sign::Unclear),
    ] {
        assert_eq!(Verdict::of(interval(low, high)), verdict, "{low}..{high}");
        assert_eq!(Sign::of(interval(low, high)), sign, "{low}..{high}");
    }
    // Ten pairs: ratios 1.1 to 2.0, of which the second and the ninth bound the median.
    let theirs: Vec<f64> = (11..=20).map(f64::from).collect();
    let ratio = Interval::of_ratio(&theirs, &[10.0; 10]);
    assert_eq!((ratio.low, ratio.median, ratio.high), (1.2, 1.55, 1.9));
    assert_eq!(Verdict::of(ratio), Verdict::Won);
}
