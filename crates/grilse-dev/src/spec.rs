//! A device as it is written on a command line: `kind:target,key=value,...`.
//!
//! Parsing says what stands there; whether a device of that kind knows the keys is checked by
//! [`Spec::only`], and each value as it is asked for. So no option is silently ignored.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::open::OpenError;

/// A device's name and options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    kind: String,
    target: String,
    options: Vec<(String, String)>,
}

impl FromStr for Spec {
    type Err = OpenError;

    /// Reads `kind:target,key=value,...`. A target ends at the first comma; a key without a value
    /// has the value `on`.
    fn from_str(text: &str) -> Result<Self, OpenError> {
        let Some((kind, rest)) = text.split_once(':') else {
            return Err(OpenError::NoKind { given: text.to_owned() });
        };
        let mut parts = rest.split(',');
        // Splitting yields one part at least.
        let target = parts.next().unwrap_or_default();
        let options = parts.filter(|part| !part.is_empty()).map(|part| {
            let (key, value) = part.split_once('=').unwrap_or((part, "on"));
            (key.to_owned(), value.to_owned())
        });
        Ok(Self { kind: kind.to_owned(), target: target.to_owned(), options: options.collect() })
    }
}

impl fmt::Display for Spec {
    /// The name by which messages call the device: without its options.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.target)
    }
}

impl Spec {
    /// The device that takes everything and yields nothing.
    pub fn null() -> Self {
        Self { kind: "null".to_owned(), target: String::new(), options: Vec::new() }
    }

    /// What stands in front of the colon.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What stands behind it; may be empty.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The target, where the kind cannot do without.
    ///
    /// # Errors
    /// [`OpenError::NoTarget`], with `what` the device wants there.
    pub(crate) fn need_target(&self, what: &'static str) -> Result<&str, OpenError> {
        match self.target.as_str() {
            "" => Err(OpenError::NoTarget { kind: self.kind.clone(), what }),
            target => Ok(target),
        }
    }

    /// Refuses all options but these, and any that is given twice.
    pub(crate) fn only(&self, known: &[&'static str]) -> Result<(), OpenError> {
        for (i, (key, _)) in self.options.iter().enumerate() {
            if !known.contains(&key.as_str()) {
                return Err(OpenError::UnknownOption {
                    device: self.to_string(),
                    given: key.clone(),
                    nearest: nearest(key, known.iter().copied()),
                });
            }
            if self.options[..i].iter().any(|(other, _)| other == key) {
                return Err(OpenError::Twice { device: self.to_string(), option: key.clone() });
            }
        }
        Ok(())
    }

    /// The text of an option.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        let found = self.options.iter().find(|(other, _)| other == key);
        found.map(|(_, value)| value.as_str())
    }

    /// An option that is a whole number in this range.
    pub(crate) fn number(
        &self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, OpenError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        match text.replace('_', "").parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(self.bad(key, format!("a number in {}..={}", range.start(), range.end()))),
        }
    }

    /// An option that is one of these words.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&'static str, T)],
    ) -> Result<Option<T>, OpenError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                Err(self.bad(key, words.join(" or ")))
            }
        }
    }

    /// An option that is on or off.
    pub(crate) fn switch(&self, key: &'static str) -> Result<Option<bool>, OpenError> {
        self.choice(key, &[("on", true), ("off", false)])
    }

    /// Says that the value of an option cannot be, and what can.
    pub(crate) fn bad(&self, option: &'static str, allowed: String) -> OpenError {
        let given = self.text(option).unwrap_or_default().to_owned();
        OpenError::BadOption { device: self.to_string(), option, given, allowed }
    }
}

/// The word that `given` was probably meant to be; none where it is like none of them.
pub(crate) fn nearest(
    given: &str,
    words: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    // A prefix that was left out is no misspelling.
    let distance = |word: &'static str| {
        let bare = word.split_once('.').map_or(word, |(_, bare)| bare);
        [word, bare].map(|word| strsim::damerau_levenshtein(given, word)).into_iter().min()
    };
    let scored = words.filter_map(|word| Some((distance(word)?, word)));
    let close = scored.filter(|(distance, word)| *distance <= 1 + word.len() / 3);
    close.min().map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Spec {
        text.parse().unwrap()
    }

    #[test]
    fn a_spec_is_kind_target_and_options() {
        let spec = spec("pcap:a:b.pcap,loop=3,fast");
        assert_eq!((spec.kind(), spec.target()), ("pcap", "a:b.pcap"));
        assert_eq!(spec.number("loop", 0..=9).unwrap(), Some(3));
        assert_eq!(spec.switch("fast").unwrap(), Some(true));
        assert_eq!(spec.number("speed", 0..=9).unwrap(), None);
        assert_eq!(spec.to_string(), "pcap:a:b.pcap");
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(matches!("null".parse::<Spec>(), Err(OpenError::NoKind { .. })));
        assert!(matches!(spec("tap:").need_target("a name"), Err(OpenError::NoTarget { .. })));
        let error = spec("xdp:eth0,quues=2").only(&["queues", "mode"]).unwrap_err();
        assert!(error.to_string().contains("\"queues\""), "{error}");
        let error = spec("xdp:eth0,a,a=off").only(&["a"]).unwrap_err();
        assert!(matches!(error, OpenError::Twice { .. }), "{error}");
        let error = spec("xdp:eth0,queues=0").number("queues", 1..=64).unwrap_err();
        assert!(error.to_string().contains("1..=64"), "{error}");
        let error = spec("xdp:eth0,mode=odd").choice("mode", &[("copy", 1), ("zero", 2)]);
        assert!(error.unwrap_err().to_string().contains("copy or zero"));
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        let words = || ["tap", "tun", "packet", "xdp"].into_iter();
        assert_eq!(nearest("paket", words()), Some("packet"));
        assert_eq!(nearest("tpa", words()), Some("tap"));
        assert_eq!(nearest("ethernet", words()), None);
    }
}
