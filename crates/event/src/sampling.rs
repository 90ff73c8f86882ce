//! Sampling of weirds: only some of many weirds with the same name and subject are reported.

use std::collections::HashMap;
use std::collections::HashSet;

use gannet_base::Interval;
use gannet_base::Time;

/// Sampling of weirds.
#[derive(Clone, Debug, Default)]
pub struct WeirdSampling {
    /// Rate for each name and subject.
    pub rate: SamplingRate,
    /// Names of weirds that are always reported.
    exempt: HashSet<Box<str>>,
    /// Names of weirds that are counted globally instead of by subject, with their counts.
    global: HashMap<Box<str>, Sample>,
}

/// Sampling rate of weirds with the same name and subject.
#[derive(Clone, Copy, Debug)]
pub struct SamplingRate {
    /// Number of weirds that are reported before sampling begins.
    pub threshold: u64,
    /// During sampling, one of this many weirds is reported; 0 reports none.
    pub each: u64,
    /// Duration of sampling.
    pub duration: Interval,
}

/// Count of a weird.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    count: u64,
    /// Time at which sampling or its window began.
    began: Time,
}

/// Counts of the weirds of one subject.
#[derive(Clone, Debug, Default)]
pub struct WeirdSamples(Vec<(&'static str, Sample)>);

impl Default for SamplingRate {
    /// Zeek's default: after 25 weirds every 1000th, for ten minutes.
    fn default() -> Self {
        Self { threshold: 25, each: 1000, duration: Interval::from_secs(600) }
    }
}

impl SamplingRate {
    /// Whether the `count`th weird, counted from 1, is reported.
    #[inline]
    pub fn permits(self, count: u64) -> bool {
        let above = count.saturating_sub(self.threshold);
        above == 0 || (self.each > 0 && above.is_multiple_of(self.each))
    }
}

impl WeirdSampling {
    /// Sets an option by its name in Zeek; intervals are in nanoseconds. Returns `false` if it is not an option of
    /// sampling.
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

    /// Sets the names of weirds that are always reported, and of those that are counted globally.
    pub fn set_names(&mut self, exempt: &[String], global: &[String]) {
        self.exempt = exempt.iter().map(|name| name.as_str().into()).collect();
        let known = std::mem::take(&mut self.global);
        let count = |name: &String| known.get(name.as_str()).copied().unwrap_or_default();
        self.global = global.iter().map(|name| (name.as_str().into(), count(name))).collect();
    }

    /// Whether any name is exempt or counted globally.
    #[inline]
    pub fn lists_names(&self) -> bool {
        !self.exempt.is_empty() || !self.global.is_empty()
    }

    /// Whether a weird is reported, if that depends only on its name; counts it. `None` if it is counted by subject.
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

    /// Whether a weird of the subject with these samples is reported; counts it.
    ///
    /// The window begins with the first weird above the threshold.
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
    fn above_the_threshold_each_nth_is_reported_until_the_window_ends() {
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
    fn names_may_be_exempt_or_counted_globally() {
        let mut sampling = WeirdSampling::default();
        (sampling.rate.threshold, sampling.rate.each) = (1, 0);
        sampling.set_names(&["weird".to_owned()], &[]);
        assert_eq!(reported(&mut sampling, &[1; 3]), [true; 3]);
        sampling.set_names(&[], &["weird".to_owned()]);
        assert_eq!(reported(&mut sampling, &[1; 2]), [true, false]);
        assert_eq!(reported(&mut sampling, &[1, 600, 601, 602]), [false, false, true, false]);
    }
}
