//! Randomness tests of bytes, as in John Walker's `ent`.

/// Accumulates byte statistics.
#[derive(Clone, Debug)]
pub struct Entropy {
    counts: [u64; 256],
    total: u64,
    /// Bytes of the current point: six are the coordinates of a point in a square.
    point: [u8; 6],
    point_len: usize,
    points: u64,
    inside: u64,
    first: Option<f64>,
    last: f64,
    /// Sums of products of adjacent bytes, of bytes and of their squares.
    sums: [f64; 3],
}

/// The test results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Randomness {
    /// Entropy in bits per byte.
    pub entropy: f64,
    /// Chi-square statistic of the distribution of bytes.
    pub chi_square: f64,
    /// Arithmetic mean of the bytes.
    pub mean: f64,
    /// Estimate of pi: from the fraction of points that are inside a circle.
    pub monte_carlo_pi: f64,
    /// Serial correlation coefficient of adjacent bytes.
    pub serial_correlation: f64,
}

impl Default for Entropy {
    fn default() -> Self {
        Entropy {
            counts: [0; 256],
            total: 0,
            point: [0; 6],
            point_len: 0,
            points: 0,
            inside: 0,
            first: None,
            last: 0.0,
            sums: [0.0; 3],
        }
    }
}

/// The square of the circle's radius, 256³ - 1.
const RADIUS_SQUARED: f64 = 281_474_943_156_225.0;

impl Entropy {
    /// Adds bytes.
    pub fn add(&mut self, data: &[u8]) {
        for byte in data {
            self.counts[usize::from(*byte)] += 1;
            self.total += 1;
            self.point[self.point_len] = *byte;
            self.point_len += 1;
            if self.point_len == 6 {
                self.point_len = 0;
                self.points += 1;
                let [x, y] = [0, 3].map(|at| {
                    self.point[at..at + 3].iter().fold(0.0, |v, b| v * 256.0 + f64::from(*b))
                });
                self.inside += u64::from(x * x + y * y <= RADIUS_SQUARED);
            }
            let value = f64::from(*byte);
            match self.first {
                None => self.first = Some(value),
                Some(_) => self.sums[0] += self.last * value,
            }
            self.sums[1] += value;
            self.sums[2] += value * value;
            self.last = value;
        }
    }

    /// The results; NaN if no bytes were added.
    #[must_use]
    pub fn finish(&self) -> Randomness {
        let total = self.total as f64;
        let neighbours = self.sums[0] + self.last * self.first.unwrap_or(0.0);
        let squared = self.sums[1] * self.sums[1];
        let variance = total * self.sums[2] - squared;
        let serial_correlation =
            if variance == 0.0 { -100_000.0 } else { (total * neighbours - squared) / variance };
        let expected = total / 256.0;
        let (mut entropy, mut chi_square, mut sum) = (0.0, 0.0, 0.0);
        for (byte, count) in self.counts.iter().enumerate() {
            let count = *count as f64;
            chi_square += (count - expected) * (count - expected) / expected;
            sum += byte as f64 * count;
            let share = count / total;
            if share > 0.0 {
                // The original formula, for bitwise identical results.
                entropy += share * (std::f64::consts::LOG2_10 * (1.0 / share).log10());
            }
        }
        let monte_carlo_pi =
            if self.points == 0 { 0.0 } else { 4.0 * (self.inside as f64 / self.points as f64) };
        Randomness { entropy, chi_square, mean: sum / total, monte_carlo_pi, serial_correlation }
    }
}
