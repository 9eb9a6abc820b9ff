//! Queues that give back the memory of a flood once it is over.

use std::collections::VecDeque;

/// Takes the first entry. A queue that is empty then keeps room for [`KEPT`] entries at most.
pub(crate) fn pop<T>(queue: &mut VecDeque<T>) -> Option<T> {
    let first = queue.pop_front();
    if queue.is_empty() && queue.capacity() > KEPT {
        *queue = VecDeque::new();
    }
    first
}

/// Empties a list of what was worked on, which keeps room for [`KEPT`] entries at most.
pub(crate) fn clear<T>(list: &mut Vec<T>) {
    list.clear();
    if list.capacity() > KEPT {
        *list = Vec::new();
    }
}

/// Entries that there is room for while there are none: as many as come and go all the time.
const KEPT: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_flood_took_is_given_back_at_its_end_and_not_before() {
        let mut queue: VecDeque<u64> = (0..100_000).collect();
        for number in 0..99_999 {
            assert_eq!(pop(&mut queue), Some(number));
        }
        assert!(queue.capacity() >= 100_000);
        assert_eq!((pop(&mut queue), queue.capacity()), (Some(99_999), 0));
        assert_eq!(pop(&mut queue), None);
        let mut list = vec![7; 100_000];
        clear(&mut list);
        assert_eq!((list.len(), list.capacity()), (0, 0));
        let (mut queue, mut list) = (VecDeque::from([1]), vec![1]);
        assert_eq!(pop(&mut queue), Some(1));
        clear(&mut list);
        assert!(queue.capacity() > 0 && list.capacity() > 0, "few entries stay");
    }
}
