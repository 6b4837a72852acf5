//! Layers: devices around a device, asked for by options that every kind of device has.
//!
//! From the device up these are: faults, which make the device a worse one; a capture; a trace. So what
//! is captured and traced is what the worker receives and what the device takes of it.

mod capture;
mod faulty;
mod trace;
mod watch;

use crate::device::Device;
use crate::open::{OpenError, Opener, Queues};
use crate::spec::Spec;

/// The options, for help texts and checks.
pub(crate) const OPTIONS: [&[(&str, &str, &str)]; 3] =
    [faulty::OPTIONS, capture::OPTIONS, trace::OPTIONS];

/// A layer around one queue, by the number of that.
type Around = Box<dyn Fn(Box<dyn Device>, usize) -> Box<dyn Device>>;

/// The layers that a spec asks for. They are made before the device is, so that a wrong option leaves
/// nothing open.
pub(crate) struct Layers(Vec<Around>);

impl Layers {
    pub(crate) fn of(opener: &mut Opener, spec: &Spec) -> Result<Self, OpenError> {
        let asked = [faulty::of(spec)?, capture::of(opener, spec)?, trace::of(opener, spec)?];
        Ok(Self(asked.into_iter().flatten().collect()))
    }

    /// Puts them around a device.
    pub(crate) fn wrap(&self, queues: Queues) -> Queues {
        let wrap =
            |(number, queue)| self.0.iter().fold(queue, |inner, around| around(inner, number));
        queues.into_iter().enumerate().map(wrap).collect()
    }
}
