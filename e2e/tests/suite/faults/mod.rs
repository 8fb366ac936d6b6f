//! What a cluster does to those who live on it: programs that are killed, writes that are refused, storage that
//! is slow or forgets, nodes that are gone. Whoever waits is answered, and all of it ends as if nothing had been.

mod conflicts;
mod kills;
mod leases;
mod nodes;
mod pair;
mod pods;
mod refused;
mod storage;
mod told;
