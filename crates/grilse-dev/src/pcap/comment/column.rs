//! The columns of a comment: one number per member, as differences with runs.

use super::Member;

/// The keys of a member's numbers.
pub(super) const KEYS: [&str; 5] = ["in", "if", "t", "len", "notes"];
/// Which of them are left out where all members have 0, as they mostly have.
const OPTIONAL: [bool; 5] = [false, true, false, false, true];

impl Member {
    /// Its numbers, in the order of the keys.
    fn row(&self) -> [u64; KEYS.len()] {
        let Self { frame, interface, ticks, orig_len, comments } = *self;
        [frame, interface.into(), ticks, orig_len.into(), comments.into()]
    }

    pub(super) fn from_row(
        [frame, interface, ticks, orig_len, comments]: [u64; KEYS.len()],
    ) -> Option<Self> {
        Some(Self {
            frame,
            interface: interface.try_into().ok()?,
            ticks,
            orig_len: orig_len.try_into().ok()?,
            comments: comments.try_into().ok()?,
        })
    }
}

/// Puts the columns of these members, of which there is at least one.
pub(super) fn put(text: &mut String, members: &[Member]) {
    for (column, key) in KEYS.into_iter().enumerate() {
        let mut numbers = members.iter().map(|member| member.row()[column]);
        if OPTIONAL[column] && numbers.clone().all(|number| number == 0) {
            continue;
        }
        let first = numbers.next().unwrap_or_default();
        super::put(text, format_args!(" {key}={first}"));
        put_steps(text, first, numbers);
    }
}

/// Puts each number as its difference to the one before it, equal differences as one run.
fn put_steps(text: &mut String, mut last: u64, numbers: impl Iterator<Item = u64>) {
    let mut steps = numbers.map(|number| {
        let step = (number < last, number.abs_diff(last));
        last = number;
        step
    });
    let mut next = steps.next();
    while let Some(step) = next {
        let mut run = 1;
        next = steps.next();
        while next == Some(step) {
            run += 1;
            next = steps.next();
        }
        let (down, by) = step;
        super::put(text, format_args!("{}{by}", if down { '-' } else { '+' }));
        if run > 1 {
            super::put(text, format_args!("*{run}"));
        }
    }
}

/// Reads such a column, but no further than one number beyond `room`: a run may lie.
pub(super) fn numbers(text: &str, room: usize) -> Option<Vec<u64>> {
    let sign = |text: &str| text.find(['+', '-']).unwrap_or(text.len());
    let (first, mut rest) = text.split_at(sign(text));
    let mut last: u64 = first.parse().ok()?;
    let mut numbers = vec![last];
    while !rest.is_empty() {
        let down = rest.starts_with('-');
        let step;
        (step, rest) = rest[1..].split_at(sign(&rest[1..]));
        let (by, run) = step.split_once('*').unwrap_or((step, "1"));
        let (by, run): (u64, usize) = (by.parse().ok()?, run.parse().ok()?);
        for _ in 0..run {
            if numbers.len() > room {
                return Some(numbers);
            }
            last = if down { last.checked_sub(by)? } else { last.checked_add(by)? };
            numbers.push(last);
        }
    }
    Some(numbers)
}
