//! The random number generators of scripts.

/// `rand` and `srand`.
///
/// ```
/// use gannet_script::support::order::Random;
///
/// let mut random = Random::deterministic(1);
/// assert_eq!([random.next(), random.next()], [16_807, 282_475_249]);
/// assert_eq!(random.below(100), 75);
/// ```
#[derive(Clone, Debug)]
pub struct Random(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// A Lehmer generator, used with seeds.
    Lehmer(i64),
    /// The additive feedback generator of C libraries, used without seeds.
    Additive { state: Box<[u32; 31]>, at: usize },
}

const MODULUS: i64 = 0x7fff_ffff;

impl Random {
    /// Zeek's generator with seeds: the same numbers on every system.
    #[must_use]
    pub fn deterministic(seed: u32) -> Self {
        Random(Kind::Lehmer(i64::from(seed.max(1))))
    }

    /// The generator without seeds.
    #[must_use]
    pub fn of_system(seed: u32) -> Self {
        Random(Self::additive(seed))
    }

    fn additive(seed: u32) -> Kind {
        let mut state = Box::new([0_u32; 31]);
        let mut word = i64::from(seed.max(1) as i32);
        for slot in state.iter_mut() {
            *slot = word as u32;
            word = 16_807 * word % MODULUS;
            if word < 0 {
                word += MODULUS;
            }
        }
        let mut random = Random(Kind::Additive { state, at: 3 });
        for _ in 0..310 {
            random.next();
        }
        random.0
    }

    /// `srand(seed)`.
    pub fn seed(&mut self, seed: u32) {
        self.0 = match self.0 {
            Kind::Lehmer(_) => Kind::Lehmer(i64::from(seed.max(1))),
            Kind::Additive { .. } => Self::additive(seed),
        };
    }

    /// The next random number of 31 bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> i64 {
        match &mut self.0 {
            Kind::Lehmer(state) => {
                // Schrage's method keeps the product in 32 bits; a seed of 32 bits may exceed its range.
                let (rem, div) = ((*state % 127_773) as u32, (*state / 127_773) as u32);
                let next =
                    16_807_u32.wrapping_mul(rem).wrapping_sub(2_836_u32.wrapping_mul(div)) as i32;
                *state = i64::from(if next < 0 { next.wrapping_add(MODULUS as i32) } else { next });
                *state
            }
            Kind::Additive { state, at } => {
                let (front, rear) = (*at, (*at + 28) % 31);
                let sum = state[front].wrapping_add(state[rear]);
                state[front] = sum;
                *at = (front + 1) % 31;
                i64::from(sum >> 1)
            }
        }
    }

    /// `rand(max)`: a number from 0 to `max` - 1.
    pub fn below(&mut self, max: u64) -> u64 {
        let largest = match self.0 {
            Kind::Lehmer(_) => MODULUS - 1,
            Kind::Additive { .. } => MODULUS,
        };
        (max as f64 * self.next() as f64 / (largest as f64 + 1.0)) as u64
    }
}
