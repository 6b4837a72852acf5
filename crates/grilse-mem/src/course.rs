//! Which way the objects go that a thread frees for one home, where the policy leaves it open.
//!
//! Decided for a magazine at a time from what was seen since the last one, and turned when several
//! votes in a row say so. Nothing is measured for it: what is seen are counts that are kept anyway,
//! and of others only words that they seldom write, so that having the choice costs no cache line.
//! What is of another node is never kept; what is of another memory never comes here.

/// Where a magazine of objects freed away from home can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Home.
    Home,
    /// To the cache of who freed them.
    Adopt,
    /// To the depot.
    Depot,
}

/// The way that holds for a home, and what speaks for another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    way: Way,
    /// The way that the last votes spoke for, and how many in a row.
    votes: (Way, u8),
    /// What the home's misses, and our own cache's spills, were at the last vote.
    misses: u32,
    spills: u64,
    /// Objects that came home to us, and that we freed for this home: decayed sums over the last
    /// eight votes or so.
    income: u32,
    outgo: u32,
}

/// What is known when a magazine is closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The home sleeps.
    pub(crate) asleep: bool,
    /// It is on another node.
    pub(crate) far: bool,
    /// How often its cache had to go to the depot.
    pub(crate) misses: u32,
    /// Our own cache had to, since the last vote.
    pub(crate) short: bool,
    /// How often our own cache was full.
    pub(crate) spills: u64,
    /// Objects that came home to us since the last vote.
    pub(crate) came: u32,
    /// Objects in the magazine.
    pub(crate) gathered: u32,
    /// There are so few objects that what one cache may hold is more than its share.
    pub(crate) scarce: bool,
}

/// Equal votes that it takes to change the way: one round that differs from its neighbours is noise.
const VOTES: u8 = 3;

/// Objects that are not worth a magazine of their own: to post one takes two cache lines over and
/// one back, whatever it holds.
const FEW: u32 = 15;

impl Course {
    pub(crate) fn new() -> Self {
        Self { way: Way::Home, votes: (Way::Home, 0), misses: 0, spills: 0, income: 0, outgo: 0 }
    }

    /// Counts the vote of what was seen, and returns the way that holds now.
    pub(crate) fn turn(&mut self, seen: Seen) -> Way {
        self.income = (self.income - self.income / 8).saturating_add(seen.came);
        self.outgo = (self.outgo - self.outgo / 8).saturating_add(seen.gathered);
        let vote = self.vote(seen);
        (self.misses, self.spills) = (seen.misses, seen.spills);
        let (last, times) = self.votes;
        self.votes = if last == vote { (vote, times.saturating_add(1)) } else { (vote, 1) };
        if self.votes.1 >= VOTES {
            self.way = vote;
        }
        self.way
    }

    /// The way that the present state speaks for. A home that sleeps needs nothing now; one that
    /// runs dry gets what is its own. While it does neither, we keep what is too little to send, or
    /// what we can use: as we run dry, or as others free for us about as much as we for them, so
    /// that both can spare themselves the way. That stays so until our cache is full. Where objects
    /// are scarce nothing is kept: who frees only would leave the others dry.
    fn vote(&self, seen: Seen) -> Way {
        let crossing = self.income > self.outgo / 2;
        let used = self.way == Way::Adopt && seen.spills == self.spills;
        if seen.asleep {
            Way::Depot
        } else if seen.far || seen.scarce || seen.misses != self.misses {
            Way::Home
        } else if seen.gathered < FEW || seen.short || crossing || used {
            Way::Adopt
        } else {
            Way::Home
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const FULL: Seen = Seen {
        asleep: false,
        far: false,
        misses: 0,
        short: false,
        spills: 0,
        came: 0,
        gathered: 60,
        scarce: false,
    };

    /// The way after so many magazines of the same kind.
    fn after(course: &mut Course, times: usize, seen: Seen) -> Way {
        (0..times).map(|_| course.turn(seen)).last().unwrap()
    }

    #[test]
    fn a_pipe_goes_home() {
        assert_eq!(after(&mut Course::new(), 100, FULL), Way::Home);
    }

    #[test]
    fn it_takes_three_equal_votes_to_turn() {
        let mut course = Course::new();
        let asleep = Seen { asleep: true, ..FULL };
        assert_eq!(after(&mut course, 2, asleep), Way::Home);
        assert_eq!(after(&mut course, 1, FULL), Way::Home);
        assert_eq!(after(&mut course, 2, asleep), Way::Home);
        assert_eq!(after(&mut course, 1, asleep), Way::Depot);
        assert_eq!(after(&mut course, 2, FULL), Way::Depot);
        assert_eq!(after(&mut course, 1, FULL), Way::Home);
    }

    #[test]
    fn a_few_are_kept_while_their_home_does_not_run_dry() {
        let mut course = Course::new();
        let few = Seen { gathered: 2, ..FULL };
        assert_eq!(after(&mut course, 3, few), Way::Adopt);
        // It goes to the depot once for thirty of them: that is no want.
        for misses in 1..10 {
            assert_eq!(after(&mut course, 30, Seen { misses, ..few }), Way::Adopt);
        }
        for misses in 10..13 {
            course.turn(Seen { misses, ..few });
        }
        assert_eq!(course.way, Way::Home);
    }

    /// Others free for us as we for them, in bursts; then nothing crosses any more, and nobody runs
    /// dry: that holds until the cache is full again and again.
    #[test]
    fn what_crosses_is_kept_on_either_side() {
        let mut course = Course::new();
        for round in 0..10 {
            course.turn(Seen { came: 120 * (round % 2), ..FULL });
        }
        assert_eq!(course.way, Way::Adopt);
        assert_eq!(after(&mut course, 100, FULL), Way::Adopt);
        for spills in 1..20 {
            // One magazine in ten is too many: it goes to the depot.
            assert_eq!(after(&mut course, 10, Seen { spills, ..FULL }), Way::Adopt);
        }
        for spills in 20..23 {
            course.turn(Seen { spills, ..FULL });
        }
        assert_eq!(course.way, Way::Home);
    }

    #[test]
    fn nothing_is_kept_of_a_far_node_or_where_there_is_little() {
        let few = Seen { gathered: 2, short: true, came: 2, ..FULL };
        for seen in [Seen { far: true, ..few }, Seen { scarce: true, ..few }] {
            assert_eq!(after(&mut Course::new(), 10, seen), Way::Home);
        }
    }

    #[test]
    fn who_runs_dry_keeps_what_it_frees() {
        let short = Seen { short: true, ..FULL };
        assert_eq!(after(&mut Course::new(), 3, short), Way::Adopt);
        let mut course = Course::new();
        for misses in 0..10 {
            assert_eq!(course.turn(Seen { misses, ..short }), Way::Home, "both are dry");
        }
    }
}
