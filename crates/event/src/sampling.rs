//! Sampling of weirds: of many with the same name and subject, only some are reported.

use std::collections::HashMap;
use std::collections::HashSet;

use gannet_base::Interval;
use gannet_base::Time;

/// How weirds are sampled.
#[derive(Clone, Debug, Default)]
pub struct WeirdSampling {
    /// How many of them are left out.
    pub rate: SamplingRate,
    /// Names that are never left out.
    exempt: HashSet<Box<str>>,
    /// Names that are counted over all subjects, with their counts.
    global: HashMap<Box<str>, Sample>,
}

/// How many of the weirds with the same name and subject are left out.
#[derive(Clone, Copy, Debug)]
pub struct SamplingRate {
    /// Weirds that are all reported, before sampling begins.
    pub threshold: u64,
    /// Of the further ones each n-th is reported; 0: none.
    pub each: u64,
    /// How long sampling lasts.
    pub duration: Interval,
}

/// How often a weird was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    count: u64,
    /// When sampling, or its window, began.
    began: Time,
}

/// How often each weird of one subject was seen.
#[derive(Clone, Debug, Default)]
pub struct WeirdSamples(Vec<(&'static str, Sample)>);

impl Default for SamplingRate {
    /// As Zeek's scripts have it: beyond 25 each 1000th, for ten minutes.
    fn default() -> Self {
        Self { threshold: 25, each: 1000, duration: Interval::from_secs(600) }
    }
}

impl SamplingRate {
    /// Whether the weird of this count, from 1, is reported.
    #[inline]
    pub fn permits(self, count: u64) -> bool {
        let above = count.saturating_sub(self.threshold);
        above == 0 || (self.each > 0 && above.is_multiple_of(self.each))
    }
}

impl WeirdSampling {
    /// Changes it by Zeek's name of the option; intervals are in nanoseconds. Returns whether it is such an option.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        match name {
            "Weird::sampling_threshold" => self.rate.threshold = value,
            "Weird::sampling_rate" => self.rate.each = value,
            "Weird::sampling_duration" => {
                self.rate.duration = Interval::from_nanos(i64::try_from(value).unwrap_or(i64::MAX));
            }
            _ => return false,
        }
        true
    }

    /// Names that are never left out, and names that are counted over all subjects.
    pub fn set_names(&mut self, exempt: &[String], global: &[String]) {
        self.exempt = exempt.iter().map(|name| name.as_str().into()).collect();
        let known = std::mem::take(&mut self.global);
        let count = |name: &String| known.get(name.as_str()).copied().unwrap_or_default();
        self.global = global.iter().map(|name| (name.as_str().into(), count(name))).collect();
    }

    /// Whether names are listed for which their subjects do not matter.
    #[inline]
    pub fn lists_names(&self) -> bool {
        !self.exempt.is_empty() || !self.global.is_empty()
    }

    /// Whether a weird is reported whose name decides that; `None` where its subject decides as well.
    #[cold]
    pub fn permits_name(&mut self, now: Time, name: &str) -> Option<bool> {
        if self.exempt.contains(name) {
            return Some(true);
        }
        let sample = self.global.get_mut(name)?;
        if sample.count == 0 || now >= sample.began + self.rate.duration {
            *sample = Sample { count: 0, began: now };
        }
        sample.count += 1;
        let count = sample.count;
        Some(self.rate.permits(count))
    }

    /// Whether a weird of the subject of these samples is reported; counts it.
    ///
    /// The window begins once weirds are left out.
    pub fn permits(&mut self, samples: &mut WeirdSamples, now: Time, name: &'static str) -> bool {
        if self.lists_names()
            && let Some(permits) = self.permits_name(now, name)
        {
            return permits;
        }
        let index = samples.0.iter().position(|(known, _)| *known == name);
        let index = index.unwrap_or_else(|| {
            samples.0.push((name, Sample::default()));
            samples.0.len() - 1
        });
        let Some((_, sample)) = samples.0.get_mut(index) else { return true };
        sample.count += 1;
        if sample.count == self.rate.threshold.saturating_add(1) {
            sample.began = now;
        } else if sample.count > self.rate.threshold && now > sample.began + self.rate.duration {
            sample.count = 1;
            return true;
        }
        self.rate.permits(sample.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(sampling: &mut WeirdSampling, times: &[i64]) -> Vec<bool> {
        let mut samples = WeirdSamples::default();
        let permits = |s: &i64| sampling.permits(&mut samples, Time::from_secs(*s), "weird");
        times.iter().map(permits).collect()
    }

    #[test]
    fn beyond_the_threshold_each_nth_is_reported_until_the_window_ends() {
        let mut sampling = WeirdSampling::default();
        assert!(sampling.set("Weird::sampling_threshold", 2));
        assert!(sampling.set("Weird::sampling_rate", 3));
        assert!(sampling.set("Weird::sampling_duration", 10_000_000_000));
        let expected = [true, true, false, false, true, false];
        assert_eq!(reported(&mut sampling, &[1, 1, 1, 2, 3, 4]), expected);
        let expected = [true, true, false, false, true, true, false];
        assert_eq!(reported(&mut sampling, &[1, 1, 1, 11, 12, 13, 14]), expected);
        assert!(sampling.set("Weird::sampling_rate", 0));
        assert_eq!(
            reported(&mut sampling, &[1; 7]),
            [true, true, false, false, false, false, false]
        );
        assert!(!sampling.set("Weird::sampling", 0));
    }

    #[test]
    fn names_may_be_exempt_or_counted_over_all_subjects() {
        let mut sampling = WeirdSampling::default();
        (sampling.rate.threshold, sampling.rate.each) = (1, 0);
        sampling.set_names(&["weird".to_owned()], &[]);
        assert_eq!(reported(&mut sampling, &[1; 3]), [true; 3]);
        sampling.set_names(&[], &["weird".to_owned()]);
        assert_eq!(reported(&mut sampling, &[1; 2]), [true, false]);
        assert_eq!(reported(&mut sampling, &[1, 600, 601, 602]), [false, false, true, false]);
    }
}
