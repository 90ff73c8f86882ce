//! Distribution over several outputs: to all, round-robin, or by client.
//!
//! New clients are distributed by weights, sequentially or at random; known clients keep their output. The generator of
//! random numbers is the example in the C standard with 31 bits, so that a split is reproducible.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// Maximum number of clients that keep their output; later ones are distributed again for each packet.
pub const MAX_CLIENTS: usize = 16 << 20;

/// Distribution over several outputs.
#[derive(Clone, Debug)]
pub enum Split {
    /// Every output receives everything; the number of outputs.
    All(usize),
    /// Outputs receive packets in turns: the number of outputs, and the index of the next one.
    RoundRobin(usize, usize),
    /// Each client has a fixed output.
    Clients(Box<ByClient>),
}

impl Split {
    /// The outputs for a packet of `client`; empty if outputs depend on the client and it is `None`.
    #[inline]
    pub fn outputs(&mut self, client: Option<&[u8]>) -> std::ops::Range<usize> {
        match self {
            Self::All(outputs) => 0..*outputs,
            Self::RoundRobin(outputs, next) => {
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

/// Distribution of new clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// An output receives as many clients as its weight, then the next output.
    Sequential,
    /// At random, in proportion to the weights, with this seed.
    Random(u32),
}

/// Assigns a fixed output to each client.
#[derive(Clone, Debug)]
pub struct ByClient {
    outputs: Vec<Output>,
    /// Sum of the weights.
    total: u32,
    /// State of the random generator; `None` if clients are distributed sequentially.
    seed: Option<u32>,
    /// Index of the last output.
    at: usize,
    /// Output and number of each client.
    known: HashMap<Box<[u8]>, (u32, u32), RandomState>,
}

#[derive(Clone, Copy, Debug)]
struct Output {
    weight: u32,
    clients: u32,
}

impl ByClient {
    /// Outputs with these weights. `None` if there are none, or a weight is 0.
    pub fn new(weights: &[u32], order: Order) -> Option<Self> {
        let total = weights.iter().try_fold(0_u32, |sum, weight| sum.checked_add(*weight))?;
        let seed = match order {
            Order::Sequential => None,
            Order::Random(seed) => Some(seed & MASK),
        };
        let outputs: Vec<Output> =
            weights.iter().map(|&weight| Output { weight, clients: 0 }).collect();
        let is_valid = !weights.is_empty() && weights.iter().all(|weight| *weight > 0);
        is_valid.then(|| Self { outputs, total, seed, at: 0, known: HashMap::default() })
    }

    /// The output of a client, and the client's number among those of the output, from 1.
    pub fn output(&mut self, client: &[u8]) -> (usize, u32) {
        if let Some((output, number)) = self.known.get(client) {
            return (*output as usize, *number);
        }
        if let Some(seed) = &mut self.seed {
            *seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345) & MASK;
            let mut remaining = *seed % self.total + 1;
            // Advance by this weight from the last output.
            while let Some(rest) = remaining.checked_sub(self.outputs[self.at].weight)
                && rest > 0
            {
                remaining = rest;
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

/// Bits of the random generator.
const MASK: u32 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(order: Order, clients: u32) -> Vec<usize> {
        let mut split = ByClient::new(&[3, 2], order).unwrap();
        let first: Vec<_> = (0..clients).map(|c| split.output(&c.to_be_bytes()).0).collect();
        let again: Vec<_> = (0..clients).map(|c| split.output(&c.to_be_bytes()).0).collect();
        assert_eq!(first, again, "clients keep their output");
        first
    }

    #[test]
    fn clients_are_distributed_by_weight_and_keep_their_output() {
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
    fn round_robin_and_copies() {
        let mut round_robin = Split::RoundRobin(2, 0);
        let all: Vec<_> = (0..3).map(|_| round_robin.outputs(None)).collect();
        assert_eq!(all, [0..1, 1..2, 0..1]);
        assert_eq!(Split::All(3).outputs(None), 0..3);
        let clients = ByClient::new(&[1], Order::Sequential).unwrap();
        let mut clients = Split::Clients(Box::new(clients));
        assert_eq!((clients.outputs(None), clients.outputs(Some(&[1]))), (0..0, 0..1));
    }
}
