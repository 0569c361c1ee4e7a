//! What waits for its turn, oldest first?
//!
//! Most connections have one or two segments under way: these are kept in place, next to what else is needed then. Only
//! a longer queue takes memory of its own, and gives it back when it is empty.

use std::collections::VecDeque;

/// A queue that is short most of the time.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    near: [Option<T>; 2],
    /// Everything, once there is more than `near` holds.
    #[expect(clippy::box_collection, reason = "a word instead of four in every connection")]
    far: Option<Box<VecDeque<T>>>,
}

/// By what waits, wherever that is: a copy takes no more memory than it needs.
impl<T: Copy + PartialEq> PartialEq for Queue<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { near: [None, None], far: None }
    }
}

/// A queue this long keeps its memory when it is empty: the next flight is as long.
const KEPT: usize = 64;

impl<T: Copy> Queue<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match &self.far {
            Some(far) => far.len(),
            None => usize::from(self.near[0].is_some()) + usize::from(self.near[1].is_some()),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match &self.far {
            Some(far) => far.is_empty(),
            None => self.near[0].is_none(),
        }
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        match &self.far {
            Some(far) => far.front(),
            None => self.near[0].as_ref(),
        }
    }

    pub(crate) fn get(&self, n: usize) -> Option<&T> {
        match &self.far {
            Some(far) => far.get(n),
            None => self.near.get(n)?.as_ref(),
        }
    }

    #[inline]
    pub(crate) fn back(&self) -> Option<&T> {
        match &self.far {
            Some(far) => far.back(),
            None => self.near[1].as_ref().or(self.near[0].as_ref()),
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let Some(far) = &mut self.far else {
            let first = self.near[0].take();
            if self.near[1].is_some() {
                self.near[0] = self.near[1].take();
            }
            return first;
        };
        let first = far.pop_front();
        if far.is_empty() && far.capacity() < KEPT {
            self.far = None;
        }
        first
    }

    pub(crate) fn pop_back(&mut self) -> Option<T> {
        match &mut self.far {
            Some(far) => far.pop_back(),
            None => self.near[1].take().or_else(|| self.near[0].take()),
        }
    }

    #[inline]
    pub(crate) fn push_back(&mut self, item: T) {
        match (&mut self.far, &mut self.near) {
            (Some(far), _) => far.push_back(item),
            (None, [slot @ None, _] | [Some(_), slot @ None]) => *slot = Some(item),
            (None, near) => {
                let mut far: Box<VecDeque<T>> = Box::new(VecDeque::with_capacity(8));
                far.extend(near.iter_mut().filter_map(Option::take));
                far.push_back(item);
                self.far = Some(far);
            }
        }
    }

    /// Bytes that it takes besides its own.
    pub(crate) fn heap(&self) -> usize {
        self.far.as_ref().map_or(0, |far| far.capacity() * size_of::<T>())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.near.iter().flatten().chain(self.far.iter().flat_map(|far| far.iter()))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.near.iter_mut().flatten().chain(self.far.iter_mut().flat_map(|far| far.iter_mut()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_order_over_both_places() {
        let (mut queue, mut model) = (Queue::default(), VecDeque::new());
        for n in 0..2_000_u32 {
            // Grows to 60 and shrinks to nothing, again and again.
            if n % 120 < 60 {
                queue.push_back(n);
                model.push_back(n);
            } else {
                assert_eq!(queue.pop_front(), model.pop_front());
            }
            if n % 97 == 0 {
                assert_eq!(queue.pop_back(), model.pop_back());
            }
            assert_eq!(
                (queue.len(), queue.front(), queue.back()),
                (model.len(), model.front(), model.back())
            );
            assert!(queue.iter().eq(model.iter()) && queue.iter_mut().eq(model.iter()));
        }
    }
}
