//! A queue of numbers from one thread to another. Neither waits for the other.

use std::sync::atomic::{AtomicU32, Ordering};

/// Positions count up without end and wrap; there is room for every number that is in use, so that a
/// push never finds the queue full.
#[derive(Debug)]
pub(crate) struct Ring {
    places: Box<[AtomicU32]>,
    /// Taken up to here, by the thread that takes.
    head: AtomicU32,
    /// Stored up to here, by the thread that stores.
    tail: AtomicU32,
}

impl Ring {
    /// A queue for at least so many numbers, at most 2³¹.
    pub(crate) fn new(room: usize) -> Self {
        let places = (0..room.next_power_of_two()).map(|_| AtomicU32::new(0)).collect();
        Self { places, head: AtomicU32::new(0), tail: AtomicU32::new(0) }
    }

    #[inline]
    fn place(&self, position: u32) -> Option<&AtomicU32> {
        self.places.get(position as usize & self.places.len().wrapping_sub(1))
    }

    /// Of the one thread that stores.
    #[inline]
    pub(crate) fn push(&self, number: u32) {
        let tail = self.tail.load(Ordering::Relaxed);
        if let Some(place) = self.place(tail) {
            place.store(number, Ordering::Relaxed);
        }
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
    }

    /// The oldest, which stays. Of the one thread that takes.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<u32> {
        let head = self.head.load(Ordering::Relaxed);
        if head == self.tail.load(Ordering::Acquire) {
            return None;
        }
        self.place(head).map(|place| place.load(Ordering::Relaxed))
    }

    /// Takes the oldest, which is there. Of the one thread that takes.
    #[inline]
    pub(crate) fn take(&self) {
        self.head.store(self.head.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    /// Up to where numbers were stored.
    pub(crate) fn stored(&self) -> u32 {
        self.tail.load(Ordering::Acquire)
    }

    /// Up to where they were taken. Of the one thread that takes.
    pub(crate) fn taken(&self) -> u32 {
        self.head.load(Ordering::Relaxed)
    }

    /// How many there are, as one of the two threads sees it.
    pub(crate) fn len(&self) -> u32 {
        let head = self.head.load(Ordering::Acquire);
        self.tail.load(Ordering::Acquire).wrapping_sub(head)
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;

    #[test]
    fn numbers_come_in_order_across_the_end_of_the_memory() {
        let ring = Ring::new(3);
        for round in 0..10 {
            for number in 0..4 {
                ring.push(round * 4 + number);
            }
            assert_eq!(ring.len(), 4);
            for number in 0..4 {
                assert_eq!(ring.oldest(), Some(round * 4 + number));
                ring.take();
            }
            assert_eq!(ring.oldest(), None);
        }
    }

    #[test]
    fn two_threads_lose_nothing() {
        let ring = Ring::new(64);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..100_000 {
                    while ring.len() == 64 {
                        std::hint::spin_loop();
                    }
                    ring.push(number);
                }
            });
            for number in 0..100_000 {
                while ring.oldest().is_none() {
                    std::hint::spin_loop();
                }
                assert_eq!(ring.oldest(), Some(number));
                ring.take();
            }
        });
    }
}
