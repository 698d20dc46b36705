//! How many answers are made at once, and who comes next.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// From so many addresses on, those without a request are forgotten.
const ADDRESSES_KEPT: usize = 64;

/// Turns to make an answer. Making one takes a processor and a few megabytes: more at once than there
/// are processors would take memory and gain nothing.
///
/// One address may use all turns, but no more of its requests stand in the common line than there are
/// turns. So whoever comes from another address waits for a few answers, not for a flood.
pub(crate) struct Makers {
    turns: usize,
    all: Arc<Semaphore>,
    addresses: Mutex<BTreeMap<IpAddr, Arc<Semaphore>>>,
}

/// A turn, and the place in the line of an address.
pub(crate) type Turn = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Makers {
    pub(crate) fn new(turns: usize) -> Self {
        Self { turns, all: Arc::new(Semaphore::new(turns)), addresses: Mutex::default() }
    }

    /// Waits for a turn, which ends when it is dropped.
    pub(crate) async fn turn(&self, from: Option<IpAddr>) -> Result<Turn, AcquireError> {
        let own = self.own(from).acquire_owned().await?;
        Ok((self.all.clone().acquire_owned().await?, own))
    }

    fn own(&self, from: Option<IpAddr>) -> Arc<Semaphore> {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= ADDRESSES_KEPT {
            addresses.retain(|_, own| Arc::strong_count(own) > 1);
        }
        let from = match from.map(|address| address.to_canonical()) {
            // A whole /64 belongs to one customer.
            Some(IpAddr::V6(address)) => {
                Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
            }
            Some(address) => address,
            None => Ipv6Addr::UNSPECIFIED.into(),
        };
        addresses.entry(from).or_insert_with(|| Arc::new(Semaphore::new(self.turns))).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn address(n: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, n]))
    }

    #[tokio::test]
    async fn a_flood_from_one_address_does_not_come_before_another() {
        let makers = Arc::new(Makers::new(2));
        let (first, second) = (makers.turn(address(1)).await, makers.turn(address(1)).await);
        let flood: Vec<_> = (0..50)
            .map(|_| {
                let makers = makers.clone();
                tokio::spawn(async move { makers.turn(address(1)).await.map(std::mem::forget) })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(20)).await;
        let other = {
            let makers = makers.clone();
            tokio::spawn(async move { makers.turn(address(2)).await })
        };
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(first);
        let turn = tokio::time::timeout(Duration::from_secs(10), other).await.unwrap();
        assert!(turn.unwrap().is_ok());
        drop(second);
        flood.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test]
    async fn addresses_without_a_request_are_forgotten() {
        let makers = Makers::new(1);
        for n in 0..=u8::MAX {
            drop(makers.turn(address(n)).await.unwrap());
        }
        assert!(makers.addresses.lock().unwrap().len() <= ADDRESSES_KEPT);
    }
}
