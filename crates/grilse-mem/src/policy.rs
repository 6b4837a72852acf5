//! The policy: one setting of the memory switchboard, and the named ones.
//!
//! A policy is plain data, checked before it counts. Workers read it once a round
//! ([`Switch`](crate::Switch)), so a round sees one policy from end to end.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A knob that takes one of a few words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$word_doc])* $word,)* }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$word => $text,)* })
            }
        }

        impl Knob for $name {
            fn read(text: &str, _range: (u32, u32)) -> Option<Self> {
                match text { $($text => Some(Self::$word),)* _ => None }
            }

            fn fits(&self, _range: (u32, u32)) -> bool {
                true
            }

            fn allowed(_range: (u32, u32)) -> String {
                [$($text),*].join(", ")
            }
        }
    };
}

words! {
    /// How long a worker's cache of free shells lives.
    ShellCache {
        /// Not at all: every take and free goes to the slab.
        Off = "off",
        /// For one round (the 2016 proposal).
        Round = "round",
        /// Over rounds (2021).
        Persistent = "persistent",
    }
}
words! {
    /// Which end of a full cache is given up.
    FlushEnd {
        /// The objects put last, the warm ones, as the kernel does.
        Top = "top",
        /// The objects put first.
        Bottom = "bottom",
        /// A whole magazine, the colder of two.
        Magazine = "magazine",
    }
}
words! {
    /// When a task (a thread that runs no poll rounds) refills its cache in bulk.
    TaskRefill {
        /// Never: one by one from the slab (before November 2025).
        Never = "never",
        /// Always (November 2025).
        Always = "always",
        /// When two takes in a row found the cache empty.
        Pressure = "pressure",
    }
}
words! {
    /// When the shells of a burst are initialised.
    Init {
        /// Each as it is taken.
        Take = "take",
        /// In a second loop over the burst, after all of it was taken.
        Batch = "batch",
    }
}
words! {
    /// How much a refill takes.
    Demand {
        /// `shell.bulk`, always.
        Fixed = "fixed",
        /// What the last rounds used, decayed.
        Ewma = "ewma",
    }
}
words! {
    /// What stands behind the caches.
    SlabModel {
        /// SLUB before sheaves: slabs with a free list that runs through the objects, a lock per
        /// node, partial slabs per CPU.
        Slub = "slub",
        /// The older SLAB: an array per CPU, lists per node.
        Slab = "slab",
        /// Magazines and a depot per node (sheaves and barn).
        Sheaf = "sheaf",
        /// A free list per thread, never shared.
        Arena = "arena",
    }
}
words! {
    /// What becomes of an object that is freed away from its home.
    Alien {
        /// The freeing worker keeps it.
        Adopt = "adopt",
        /// It goes home.
        Home = "home",
        /// It goes to the slab.
        Slab = "slab",
        /// Whatever the last rounds showed to be cheapest.
        Adaptive = "adaptive",
    }
}
words! {
    /// What becomes of an object that is freed at home.
    SameCpu {
        /// It goes to the slab.
        Slab = "slab",
        /// It goes to the worker's cache.
        Cache = "cache",
    }
}
words! {
    /// The shape of the list by which objects go home.
    DeferList {
        /// A list under a lock (2022).
        Mutex = "mutex",
        /// A counter, and a list by compare-and-swap, per node (September 2025).
        Counter = "counter",
        /// Magazines, in one word that counts as well.
        Word = "word",
    }
}
words! {
    /// What becomes of an object whose home takes no more.
    Overflow {
        /// The freeing worker keeps it.
        Adopt = "adopt",
        /// It goes to the depot.
        Depot = "depot",
    }
}
words! {
    /// How a home is told that objects wait.
    Kick {
        /// Not at all.
        None = "none",
        /// By a flag that it reads each round; woken only while it sleeps and starves.
        Flag = "flag",
        /// Woken at each threshold, as by an interrupt between processors.
        Wake = "wake",
    }
}

/// A value that a knob may have.
trait Knob: Sized + fmt::Display {
    fn read(text: &str, range: (u32, u32)) -> Option<Self>;
    fn fits(&self, range: (u32, u32)) -> bool;
    fn allowed(range: (u32, u32)) -> String;
}

impl Knob for u32 {
    fn read(text: &str, _range: (u32, u32)) -> Option<Self> {
        text.parse().ok()
    }

    fn fits(&self, (least, most): (u32, u32)) -> bool {
        (least..=most).contains(self)
    }

    fn allowed((least, most): (u32, u32)) -> String {
        format!("{least} to {most}")
    }
}

impl Knob for bool {
    fn read(text: &str, _range: (u32, u32)) -> Option<Self> {
        match text {
            "on" | "true" => Some(true),
            "off" | "false" => Some(false),
            _ => None,
        }
    }

    fn fits(&self, _range: (u32, u32)) -> bool {
        true
    }

    fn allowed(_range: (u32, u32)) -> String {
        "on, off".to_owned()
    }
}

macro_rules! policy {
    ($($(#[doc = $doc:literal])* $field:ident: $type:ty = $default:expr, $name:literal, $range:expr;)*) => {
        /// One setting of the memory switchboard. The default is the `grilse` profile.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Policy {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl Policy {
            /// The profile that adapts, and should lose no workload.
            pub const GRILSE: Self = Self { $($field: $default,)* };

            /// Names of all knobs, as [`set`](Self::set) takes them.
            pub const KNOBS: &[&str] = &[$($name,)*];

            /// Sets the knob called `name`.
            ///
            /// # Errors
            /// Says what is allowed, and changes nothing.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), BadPolicy> {
                match name {
                    $($name => {
                        let read = <$type as Knob>::read(value, $range);
                        let fits = read.filter(|read| read.fits($range));
                        self.$field = fits.ok_or_else(|| BadPolicy::Value {
                            knob: $name,
                            value: value.to_owned(),
                            allowed: <$type as Knob>::allowed($range),
                        })?;
                        Ok(())
                    })*
                    _ => Err(BadPolicy::Knob { name: name.to_owned() }),
                }
            }

            /// Checks every knob against its range.
            ///
            /// # Errors
            /// The first that is out of range, and what is allowed.
            pub fn check(&self) -> Result<(), BadPolicy> {
                $(if !self.$field.fits($range) {
                    return Err(BadPolicy::Value {
                        knob: $name,
                        value: self.$field.to_string(),
                        allowed: <$type as Knob>::allowed($range),
                    });
                })*
                Ok(())
            }

            /// The knobs and their values.
            pub fn knobs(&self) -> Vec<(&'static str, String)> {
                vec![$(($name, self.$field.to_string()),)*]
            }
        }
    };
}

/// For knobs that are no numbers.
const ANY: (u32, u32) = (0, 0);

policy! {
    /// How long the cache of free shells lives.
    shell_cache: ShellCache = ShellCache::Persistent, "shell.cache", ANY;
    /// Objects that the cache holds at most; of magazines, two at least, whatever this says, and
    /// beyond those no more than an eighth of the class on this node.
    shell_size: u32 = 600, "shell.size", (0, 1024);
    /// Objects that a refill of an array brings; magazines are filled whole.
    shell_bulk: u32 = 60, "shell.bulk", (1, 1024);
    /// Objects that a full array gives up at once; magazines go whole.
    shell_flush: u32 = 60, "shell.flush", (1, 1024);
    /// Which of them; this chooses between the array and magazines.
    shell_flush_end: FlushEnd = FlushEnd::Magazine, "shell.flush_end", ANY;
    /// When a task refills an array in bulk; magazines are filled whole by whoever has them.
    shell_refill_in_task: TaskRefill = TaskRefill::Always, "shell.refill_in_task", ANY;
    /// Whether a task uses its cache at all.
    shell_task_use: bool = true, "shell.task_use", ANY;
    /// Whether a take from an array prefetches what the next one will return.
    shell_prefetch_next: bool = true, "shell.prefetch_next", ANY;
    /// When the shells of a burst are initialised. Only time tells: what is done is the same, in
    /// another order.
    shell_init: Init = Init::Batch, "shell.init", ANY;
    /// How much a refill of an array takes.
    refill_demand: Demand = Demand::Fixed, "refill.demand", ANY;
    /// What stands behind the caches.
    slab_model: SlabModel = SlabModel::Sheaf, "slab.model", ANY;
    /// Objects in partial slabs that SLUB keeps per CPU.
    slab_cpu_partial: u32 = 52, "slab.cpu_partial", (0, 1024);
    /// Empty slabs that SLUB keeps per node.
    slab_min_partial: u32 = 5, "slab.min_partial", (0, 64);
    /// Whether a small, unshared head stays with its shell in the cache. Else it goes to the slab,
    /// past every cache, and each build takes one from there.
    head_cache: bool = true, "head.cache", ANY;
    /// What becomes of what a worker frees away from home.
    free_tx_alien: Alien = Alien::Adaptive, "free.tx_alien", ANY;
    /// What becomes of what a task frees away from home.
    free_rx_socket: Alien = Alien::Adaptive, "free.rx_socket", ANY;
    /// What becomes of what is freed at home.
    free_same_cpu: SameCpu = SameCpu::Cache, "free.same_cpu", ANY;
    /// Objects that wait at a home at most, less one (by the list of 2022: at most; by that of 2025:
    /// for each node that they come from); 0: none, nothing goes home.
    defer_max: u32 = 1024, "defer.max", (0, 4095);
    /// The share of `defer.max`, in percent, at which a home is told; 0: never. The list of 2022
    /// tells at it exactly, that of 2025 at one more exactly, magazines once at or above it.
    defer_kick_at: u32 = 50, "defer.kick_at", (0, 100);
    /// How it is told.
    defer_kick_how: Kick = Kick::Flag, "defer.kick_how", ANY;
    /// What becomes of an object whose home takes no more.
    defer_overflow: Overflow = Overflow::Adopt, "defer.overflow", ANY;
    /// The shape of the list.
    defer_list: DeferList = DeferList::Word, "defer.list", ANY;
    /// Whether a home drains also when its cache is empty, and before it sleeps.
    defer_drain_eager: bool = true, "defer.drain_eager", ANY;
    /// Objects that an outbox gathers for a home before it posts them; 0: each at once. What
    /// adapts always gathers, as it decides for a magazine at a time.
    defer_outbox: u32 = 60, "defer.outbox", (0, 60);
    /// Bytes that wait at a home at most; 0: no bound but the count.
    defer_bytes_max: u32 = 4 << 20, "defer.bytes_max", (0, u32::MAX);
    /// Whether what would be adopted is kept though it is of another node, as the kernel does, which
    /// looks at no node there. Else it goes to its own node's depot, and so does an object of another
    /// node that comes home.
    numa_adopt: bool = false, "numa.adopt", ANY;
    /// Frames on the stack of a page pool's owner.
    pp_cache: u32 = 128, "pp.cache", (1, 4096);
    /// Frames that it takes back from its ring at once.
    pp_refill: u32 = 64, "pp.refill", (1, 4096);
    /// Whether the owner's own returns skip the ring.
    pp_direct: bool = true, "pp.direct", ANY;
    /// Microseconds without work after which what a thread has cached goes to the depot; 0: never.
    idle_flush_us: u32 = 10_000, "idle.flush_us", (0, 60_000_000);
}

impl Policy {
    /// How long a thread may be idle with objects cached; `None`: for ever.
    pub fn idle_flush(&self) -> Option<Duration> {
        let us = (self.idle_flush_us > 0).then_some(self.idle_flush_us);
        us.map(|us| Duration::from_micros(us.into()))
    }

    /// Bulk allocation of 8 and reuse within a round, as proposed in February 2016.
    pub const KERNEL_2016: Self = Self {
        shell_cache: ShellCache::Round,
        shell_size: 64,
        shell_bulk: 8,
        shell_flush: 64,
        free_same_cpu: SameCpu::Cache,
        ..Self::KERNEL_2021
    };

    /// The cache survives rounds: 64, refilled by 16, flushed by 32.
    pub const KERNEL_2021: Self = Self {
        shell_cache: ShellCache::Persistent,
        shell_size: 64,
        shell_bulk: 16,
        shell_flush: 32,
        shell_flush_end: FlushEnd::Top,
        shell_refill_in_task: TaskRefill::Never,
        shell_task_use: false,
        shell_prefetch_next: false,
        shell_init: Init::Take,
        refill_demand: Demand::Fixed,
        slab_model: SlabModel::Slub,
        head_cache: false,
        free_tx_alien: Alien::Adopt,
        free_rx_socket: Alien::Slab,
        free_same_cpu: SameCpu::Slab,
        defer_max: 0,
        defer_kick_at: 0,
        defer_kick_how: Kick::None,
        defer_overflow: Overflow::Adopt,
        defer_list: DeferList::Mutex,
        defer_drain_eager: false,
        defer_outbox: 0,
        defer_bytes_max: 0,
        numa_adopt: true,
        idle_flush_us: 0,
        ..Self::GRILSE
    };

    /// What sockets free goes home, by a list under a lock, of 64, which tells when it is full.
    pub const KERNEL_2022: Self = Self {
        free_rx_socket: Alien::Home,
        defer_max: 64,
        defer_kick_at: 100,
        defer_kick_how: Kick::Wake,
        ..Self::KERNEL_2021
    };

    /// What is freed at home goes to the cache; the list tells when it is half full.
    pub const KERNEL_2024: Self =
        Self { free_same_cpu: SameCpu::Cache, defer_kick_at: 50, ..Self::KERNEL_2022 };

    /// What a worker frees goes home too, by a counter and a list without lock, of 128.
    pub const KERNEL_2025_11_HOME: Self = Self {
        free_tx_alien: Alien::Home,
        defer_list: DeferList::Counter,
        defer_max: 128,
        ..Self::KERNEL_2024
    };

    /// Tasks use the cache: 128, refilled by 32, flushed by 32, with prefetch.
    pub const KERNEL_2025_11_TASK: Self = Self {
        shell_task_use: true,
        shell_refill_in_task: TaskRefill::Always,
        shell_size: 128,
        shell_bulk: 32,
        shell_flush: 32,
        shell_prefetch_next: true,
        ..Self::KERNEL_2025_11_HOME
    };

    /// The named policies, oldest first.
    pub const PROFILES: &[(&str, Self)] = &[
        ("kernel-2016", Self::KERNEL_2016),
        ("kernel-2021", Self::KERNEL_2021),
        ("kernel-2022", Self::KERNEL_2022),
        ("kernel-2024", Self::KERNEL_2024),
        ("kernel-2025-11-home", Self::KERNEL_2025_11_HOME),
        ("kernel-2025-11-task", Self::KERNEL_2025_11_TASK),
        ("grilse", Self::GRILSE),
    ];
}

impl Default for Policy {
    fn default() -> Self {
        Self::GRILSE
    }
}

impl FromStr for Policy {
    type Err = BadPolicy;

    /// The policy of that name.
    fn from_str(name: &str) -> Result<Self, BadPolicy> {
        let profile = Self::PROFILES.iter().find(|(known, _)| *known == name);
        profile
            .map(|(_, policy)| *policy)
            .ok_or_else(|| BadPolicy::Profile { name: name.to_owned() })
    }
}

/// A policy that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPolicy {
    /// No such profile.
    Profile {
        /// The name asked for.
        name: String,
    },
    /// No such knob.
    Knob {
        /// The name asked for.
        name: String,
    },
    /// The knob cannot have this value.
    Value {
        /// The knob.
        knob: &'static str,
        /// The value asked for.
        value: String,
        /// What it can have.
        allowed: String,
    },
}

impl fmt::Display for BadPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile { name } => {
                let known: Vec<&str> = Policy::PROFILES.iter().map(|(known, _)| *known).collect();
                write!(f, "no policy is called {name}: use one of {}", known.join(", "))
            }
            Self::Knob { name } => {
                write!(f, "no knob is called {name}: use one of {}", Policy::KNOBS.join(", "))
            }
            Self::Value { knob, value, allowed } => {
                write!(f, "{knob} cannot be {value}: allowed is {allowed}")
            }
        }
    }
}

impl std::error::Error for BadPolicy {}
