//! The random generators of a load: one for each client and purpose, derived as pgbench derives
//! them.

use crate::prng::Prng;

/// The generators of a load, all from one seed.
///
/// pgbench draws their seeds from one sequence: first one for the expressions of each client, then
/// the default seed of hash functions (unless `-D default_seed` gives it), then for each thread
/// those of its choice of scripts, its throttling and its log sampling. So an expression's numbers
/// equal pgbench's with the same seed and number of clients. Here each client chooses its scripts,
/// as in pgbench with as many threads as clients (`-j` = `-c`); with fewer threads, pgbench's
/// choices depend on which client happens to be free first.
#[derive(Debug, Clone)]
pub struct Streams {
    seed: u64,
    default_seed: i64,
    functions: Vec<u64>,
    others: Vec<[u64; 3]>,
}

/// The generators of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientStreams {
    /// For the random functions of expressions.
    pub function: Prng,
    /// For choosing the next script.
    pub choose: Prng,
    /// For the distance between arrivals.
    pub throttle: Prng,
    /// For choosing which operations are logged.
    pub sample: Prng,
}

impl Streams {
    /// Create the generators for at most `clients` clients; `default_seed` if the user set it.
    #[must_use]
    pub fn new(seed: u64, clients: usize, default_seed: Option<i64>) -> Self {
        let mut base = Prng::new(seed);
        let functions = (0..clients).map(|_| base.bits()).collect();
        let default_seed = default_seed.unwrap_or_else(|| base.bits().cast_signed());
        let others = (0..clients)
            .map(|_| std::array::from_fn(|_| base.bits()))
            .collect();
        Self {
            seed,
            default_seed,
            functions,
            others,
        }
    }

    /// The seed of everything, as in the variable `random_seed`.
    #[must_use]
    pub fn random_seed(&self) -> i64 {
        self.seed.cast_signed()
    }

    /// The default seed of `hash` and `permute`.
    #[must_use]
    pub fn default_seed(&self) -> i64 {
        self.default_seed
    }

    /// The maximum number of clients.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.functions.len()
    }

    /// The generators of client `index`, from 0.
    ///
    /// # Panics
    ///
    /// If there are fewer clients.
    #[must_use]
    pub fn client(&self, index: usize) -> ClientStreams {
        let [choose, throttle, sample] = self.others[index];
        ClientStreams {
            function: Prng::new(self.functions[index]),
            choose: Prng::new(choose),
            throttle: Prng::new(throttle),
            sample: Prng::new(sample),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_clients_leave_the_expressions_of_the_first_ones_alone() {
        let few = Streams::new(9, 2, None);
        let many = Streams::new(9, 5, None);
        assert_eq!(few.client(1).function, many.client(1).function);
        assert_ne!(few.client(0).function, few.client(1).function);
        assert_eq!(
            (few.clients(), many.clients(), few.random_seed()),
            (2, 5, 9)
        );
    }

    #[test]
    fn a_given_default_seed_is_not_drawn() {
        let drawn = Streams::new(9, 1, None);
        let given = Streams::new(9, 1, Some(5));
        assert_eq!(given.default_seed(), 5);
        // The number that would have been the default seed is now the seed of the choice of
        // scripts.
        assert_eq!(
            given.client(0).choose,
            Prng::new(drawn.default_seed().cast_unsigned())
        );
    }
}
