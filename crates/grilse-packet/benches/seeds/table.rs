//! The printed tables of one workload.

use crate::contestant::Mix;
use crate::policies::Claim;
use crate::summary::{Interval, Spread};
use crate::verdict::{Sign, Verdict};
use crate::work::Work;

/// Rounds of two contestants that took turns: nanoseconds per skb, in pairs.
#[derive(Default)]
pub(crate) struct Pairs {
    pub(crate) a: Vec<f64>,
    pub(crate) b: Vec<f64>,
}

impl Pairs {
    /// The throughput of `b` by that of `a`.
    fn gain(&self) -> Interval {
        Interval::of_ratio(&self.a, &self.b)
    }
}

/// Prints what the workload is, and the head of the first table.
pub(crate) fn head(work: Work, pairs: usize, skbs: u64, line_ns: Option<f64>) {
    println!("\n{}: {}; {pairs} pairs of {skbs} skbs", work.name(), work.title());
    if let Some(line_ns) = line_ns {
        println!("  one line, one way: {line_ns:.0} ns");
    }
    println!(
        "  {:20} {:>8} {:>8}   {:21} {:12} home/adopt/depot %",
        "against", "ns", "grilse", "times as fast", "verdict"
    );
}

/// Prints how the judged policy, `b` of the pairs, stands against an opponent, and what the latter
/// did with what it freed away from home.
pub(crate) fn judged(name: &str, pairs: &Pairs, mix: Mix) {
    let (theirs, ours) = (Spread::of(&pairs.a).median, Spread::of(&pairs.b).median);
    let (ratio, times) = times(pairs);
    let verdict = Verdict::of(ratio);
    println!("  {name:20} {theirs:8.2} {ours:8.2}   {times:21} {verdict:12} {}", shares(mix));
}

/// Prints what the judged policy itself did.
pub(crate) fn own(name: &str, mix: Mix) {
    println!("  {name:20} {:54} {}", "", shares(mix));
}

/// Prints what a seed claims, and what was seen of it.
pub(crate) fn claim(claim: &Claim, pairs: &Pairs) {
    let Claim { seed, a, b, expected, published } = claim;
    let (ratio, times) = times(pairs);
    let seen = Sign::of(ratio);
    let both = format!("{} -> {}", a.0, b.0);
    println!("  {seed:4} {both:44} {times:21} expected {expected} ({published}), seen {seen}");
}

fn times(pairs: &Pairs) -> (Interval, String) {
    let ratio = pairs.gain();
    let Interval { low, median, high } = ratio;
    (ratio, format!("{median:.2} ({low:.3}..{high:.3})"))
}

fn shares(mix: Mix) -> String {
    let all = mix.home + mix.adopted + mix.depot;
    if all == 0 {
        return "nothing freed away".to_owned();
    }
    let share = |part: u64| 100.0 * part as f64 / all as f64;
    let Mix { home, adopted, depot, wakes } = mix;
    let wakes = if wakes > 0 { format!(", {wakes} wakes") } else { String::new() };
    format!("{:.0}/{:.0}/{:.0}{wakes}", share(home), share(adopted), share(depot))
}
