//! Selecting one of several outputs: all, each in turn, or one for each client.
//!
//! New clients are distributed by weights, in turn or at random; known clients keep their output.
//! The random numbers are those of the example in the C standard on 31 bits, so that a split can be
//! repeated.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// Clients that are remembered; later ones are spread as well, but not remembered.
pub const MAX_CLIENTS: usize = 16 << 20;

/// Spreads over several outputs.
#[derive(Clone, Debug)]
pub enum Split {
    /// Each output gets everything.
    All(usize),
    /// One after the other: how many outputs, and which is next.
    Turns(usize, usize),
    /// Each client has its output.
    Clients(Box<ByClient>),
}

impl Split {
    /// The outputs for what `client` sent; nothing where an unknown client's would be.
    #[inline]
    pub fn outputs(&mut self, client: Option<&[u8]>) -> std::ops::Range<usize> {
        match self {
            Self::All(outputs) => 0..*outputs,
            Self::Turns(outputs, next) => {
                let output = *next;
                *next = (output + 1) % (*outputs).max(1);
                output..(output + 1).min(*outputs)
            }
            Self::Clients(clients) => client.map_or(0..0, |client| {
                let (output, _) = clients.output(client);
                output..output + 1
            }),
        }
    }
}

/// How clients are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As many clients as its weight to one output, then to the next.
    Sequential,
    /// By chance, an output with twice the weight twice as often; from this seed on.
    Random(u32),
}

/// Gives each client an output, for good.
#[derive(Clone, Debug)]
pub struct ByClient {
    outputs: Vec<Output>,
    total: u32,
    seed: Option<u32>,
    at: usize,
    known: HashMap<Box<[u8]>, (u32, u32), RandomState>,
}

#[derive(Clone, Copy, Debug)]
struct Output {
    weight: u32,
    clients: u32,
}

impl ByClient {
    /// Outputs of these weights. `None` unless there is one, and each weighs something.
    pub fn new(weights: &[u32], order: Order) -> Option<Self> {
        let total = weights.iter().try_fold(0_u32, |sum, weight| sum.checked_add(*weight))?;
        let seed = match order {
            Order::Sequential => None,
            Order::Random(seed) => Some(seed & MASK),
        };
        let outputs: Vec<Output> =
            weights.iter().map(|&weight| Output { weight, clients: 0 }).collect();
        let is_good = !weights.is_empty() && weights.iter().all(|weight| *weight > 0);
        is_good.then(|| Self { outputs, total, seed, at: 0, known: HashMap::default() })
    }

    /// A client's output, and its number among the clients of that one, from 1 on.
    pub fn output(&mut self, client: &[u8]) -> (usize, u32) {
        if let Some((output, number)) = self.known.get(client) {
            return (*output as usize, *number);
        }
        if let Some(seed) = &mut self.seed {
            *seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345) & MASK;
            let mut left = *seed % self.total + 1;
            // Advances by this weight, from the last position.
            while let Some(rest) = left.checked_sub(self.outputs[self.at].weight)
                && rest > 0
            {
                left = rest;
                self.at = (self.at + 1) % self.outputs.len();
            }
        }
        let output = self.at;
        let to = &mut self.outputs[output];
        to.clients = to.clients.wrapping_add(1);
        let number = to.clients;
        if self.seed.is_none() && number.is_multiple_of(to.weight) {
            self.at = (self.at + 1) % self.outputs.len();
        }
        if self.known.len() < MAX_CLIENTS {
            self.known.insert(client.into(), (output as u32, number));
        }
        (output, number)
    }
}

/// Bits of the generator.
const MASK: u32 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(order: Order, clients: u32) -> Vec<usize> {
        let mut split = ByClient::new(&[3, 2], order).unwrap();
        let first: Vec<_> = (0..clients).map(|c| split.output(&c.to_be_bytes()).0).collect();
        let again: Vec<_> = (0..clients).map(|c| split.output(&c.to_be_bytes()).0).collect();
        assert_eq!(first, again, "clients stay");
        first
    }

    #[test]
    fn clients_go_by_weight_and_stay() {
        assert_eq!(spread(Order::Sequential, 7), [0, 0, 0, 1, 1, 0, 0]);
        let by_chance = spread(Order::Random(1), 10_000);
        let first = by_chance.iter().filter(|output| **output == 0).count();
        assert!((5_500..6_500).contains(&first), "{first}");
        assert_eq!(by_chance, spread(Order::Random(1), 10_000));
        assert_ne!(by_chance, spread(Order::Random(2), 10_000));
    }

    #[test]
    fn numbers_count_the_clients_of_an_output() {
        let mut split = ByClient::new(&[1, 1], Order::Sequential).unwrap();
        let all: Vec<_> = (0..4_u8).map(|c| split.output(&[c])).collect();
        assert_eq!(all, [(0, 1), (1, 1), (0, 2), (1, 2)]);
        assert!(ByClient::new(&[], Order::Sequential).is_none());
        assert!(ByClient::new(&[1, 0], Order::Sequential).is_none());
    }

    #[test]
    fn turns_and_copies() {
        let mut turns = Split::Turns(2, 0);
        let all: Vec<_> = (0..3).map(|_| turns.outputs(None)).collect();
        assert_eq!(all, [0..1, 1..2, 0..1]);
        assert_eq!(Split::All(3).outputs(None), 0..3);
        let clients = ByClient::new(&[1], Order::Sequential).unwrap();
        let mut clients = Split::Clients(Box::new(clients));
        assert_eq!((clients.outputs(None), clients.outputs(Some(&[1]))), (0..0, 0..1));
    }
}
