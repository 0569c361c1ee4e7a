//! What waits for its turn, oldest first?
//!
//! Most connections have one or two segments in flight: these are kept in place, next to what else is needed
//! then. Only a longer queue takes memory of its own, and frees it when it is empty.

use std::collections::VecDeque;

/// A queue that is short most of the time.
#[derive(Clone, Debug)]
pub(crate) struct ShortDeque<T> {
    /// Unused places keep what they held.
    near: [T; 2],
    held: Held,
    /// Everything, once there is more than `near` holds.
    #[expect(clippy::box_collection, reason = "a word instead of four in every connection")]
    far: Option<Box<VecDeque<T>>>,
}

/// How many wait in `near`, from the second bit on, and where the oldest is, in the first. In one byte:
/// reading two together that were just written separately would stall (store forwarding).
#[derive(Clone, Copy, Debug, Default)]
struct Held(u8);

impl Held {
    const FULL: u8 = 2;

    #[inline]
    const fn count(self) -> u8 {
        self.0 >> 1
    }

    /// The place of the n-th item.
    #[inline]
    const fn place(self, n: usize) -> usize {
        (self.0 as usize + n) & 1
    }

    /// With one more at the end.
    #[inline]
    const fn pushed(self) -> Self {
        Self(self.0 + 2)
    }

    /// Without the newest.
    #[inline]
    const fn without_newest(self) -> Self {
        Self(if self.0 < 2 { self.0 } else { self.0 - 2 })
    }

    /// Without the oldest.
    #[inline]
    const fn without_oldest(self) -> Self {
        Self((self.0 ^ 1) - 2)
    }
}

/// By its items, wherever they are: a clone takes no more memory than it needs.
impl<T: Copy + Default + PartialEq> PartialEq for ShortDeque<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Copy + Default> Default for ShortDeque<T> {
    fn default() -> Self {
        Self { near: [T::default(); 2], held: Held::default(), far: None }
    }
}

/// A queue this long keeps its memory when it is empty: the next flight will be as long.
const KEPT: usize = 64;

impl<T: Copy + Default> ShortDeque<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match &self.far {
            Some(far) => far.len(),
            None => usize::from(self.held.count()),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    #[inline]
    pub(crate) fn get(&self, n: usize) -> Option<&T> {
        match &self.far {
            Some(far) => far.get(n),
            None => (n < usize::from(self.held.count())).then(|| &self.near[self.held.place(n)]),
        }
    }

    #[inline]
    pub(crate) fn back(&self) -> Option<&T> {
        match &self.far {
            Some(far) => far.back(),
            None => self.get(usize::from(self.held.count()).checked_sub(1)?),
        }
    }

    /// Drops the oldest.
    #[inline]
    pub(crate) fn pop_front(&mut self) {
        let Some(far) = &mut self.far else {
            if self.held.count() > 0 {
                self.held = self.held.without_oldest();
            }
            return;
        };
        far.pop_front();
        if far.is_empty() && far.capacity() < KEPT {
            self.far = None;
        }
    }

    /// Removes the oldest if it is due.
    #[inline]
    pub(crate) fn pop_front_if(&mut self, is_due: impl Fn(&T) -> bool) -> Option<T> {
        if self.far.is_some() {
            let item = self.front().copied().filter(is_due)?;
            self.pop_front();
            return Some(item);
        }
        if self.held.count() == 0 {
            return None;
        }
        let item = self.near[self.held.place(0)];
        if !is_due(&item) {
            return None;
        }
        self.held = self.held.without_oldest();
        Some(item)
    }

    /// Removes the oldest ones while they are due.
    #[inline]
    pub(crate) fn pop_while(&mut self, is_due: impl Fn(&T) -> bool, mut popped: impl FnMut(T)) {
        let Some(far) = &mut self.far else {
            while let Some(item) = self.pop_front_if(&is_due) {
                popped(item);
            }
            return;
        };
        while let Some(item) = far.front().copied().filter(&is_due) {
            far.pop_front();
            popped(item);
        }
        if far.is_empty() && far.capacity() < KEPT {
            self.far = None;
        }
    }

    /// The item, if it is the only one.
    #[inline]
    pub(crate) fn lone(&self) -> Option<&T> {
        (self.held.count() == 1).then(|| &self.near[self.held.place(0)])
    }

    /// Drops the only item.
    #[inline]
    pub(crate) fn pop_lone(&mut self) {
        debug_assert!(self.held.count() == 1, "one is alone here");
        self.held = self.held.without_oldest();
    }

    /// Removes the item if it is the only one and due.
    #[inline]
    pub(crate) fn pop_lone_if(&mut self, is_due: impl Fn(&T) -> bool) -> Option<T> {
        // More than two have memory of their own, and then `near` is empty.
        let item = self.near[self.held.place(0)];
        if self.held.count() != 1 || !is_due(&item) {
            return None;
        }
        self.held = self.held.without_oldest();
        Some(item)
    }

    /// Drops the newest.
    pub(crate) fn pop_back(&mut self) {
        match &mut self.far {
            Some(far) => {
                far.pop_back();
            }
            None => self.held = self.held.without_newest(),
        }
    }

    #[inline]
    pub(crate) fn push_back(&mut self, item: T) {
        self.push_back_with(|| item);
    }

    /// Builds the item in its place, field by field. Copying one that was just built elsewhere would stall
    /// (store forwarding).
    #[expect(clippy::inline_always, reason = "what is pushed is put together in its place")]
    #[inline(always)]
    pub(crate) fn push_back_with(&mut self, item: impl FnOnce() -> T) {
        if let Some(far) = &mut self.far {
            return far.push_back(item());
        }
        let held = self.held;
        if held.count() == Held::FULL {
            return self.grow(item());
        }
        self.held = held.pushed();
        self.near[held.place(usize::from(held.count()))] = item();
    }

    /// Puts an item before the n-th one.
    pub(crate) fn insert(&mut self, n: usize, item: T) {
        self.push_back(item);
        match &mut self.far {
            Some(far) => {
                far.pop_back();
                far.insert(n, item);
            }
            None if n == 0 && self.held.count() == Held::FULL => self.near.swap(0, 1),
            None => {}
        }
    }

    /// One more than `near` holds.
    #[inline(never)]
    fn grow(&mut self, item: T) {
        let mut far = VecDeque::with_capacity(8);
        far.extend([0, 1].map(|n| self.near[self.held.place(n)]));
        far.push_back(item);
        (self.far, self.held) = (Some(Box::new(far)), Held::default());
    }

    /// Drops everything and frees its memory.
    pub(crate) fn free(&mut self) {
        (self.held, self.far) = (Held::default(), None);
    }

    /// Heap memory in bytes.
    pub(crate) fn heap(&self) -> usize {
        self.far.as_ref().map_or(0, |far| far.capacity() * size_of::<T>())
    }

    /// The first index at which `is_before` is false; the items must be in order by it.
    pub(crate) fn partition_point(&self, mut is_before: impl FnMut(&T) -> bool) -> usize {
        if let Some(far) = &self.far {
            return far.partition_point(is_before);
        }
        let near = 0..usize::from(self.held.count());
        near.take_while(|&n| is_before(&self.near[self.held.place(n)])).count()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, n: usize) -> Option<&mut T> {
        let held = self.held;
        match &mut self.far {
            Some(far) => far.get_mut(n),
            None => (n < usize::from(held.count())).then(|| &mut self.near[held.place(n)]),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let near = (0..usize::from(self.held.count())).map(|n| &self.near[self.held.place(n)]);
        near.chain(self.far.iter().flat_map(|far| far.iter()))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let [a, b] = &mut self.near;
        let near = if self.held.place(0) == 0 { [a, b] } else { [b, a] };
        let near = near.into_iter().take(usize::from(self.held.count()));
        near.chain(self.far.iter_mut().flat_map(|far| far.iter_mut()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_order_over_both_places() {
        let (mut queue, mut model) = (ShortDeque::default(), VecDeque::new());
        for n in 0..2_000_u32 {
            // Grows to 60 and shrinks to nothing, again and again.
            if n % 120 < 60 {
                queue.push_back(n);
                model.push_back(n);
            } else {
                queue.pop_front();
                model.pop_front();
            }
            if n % 97 == 0 {
                queue.pop_back();
                model.pop_back();
            }
            assert_eq!(
                (queue.len(), queue.front(), queue.back()),
                (model.len(), model.front(), model.back())
            );
            assert!(queue.iter().eq(model.iter()) && queue.iter_mut().eq(model.iter()));
            let middle = n - n % 30;
            assert_eq!(
                queue.partition_point(|item| *item < middle),
                model.partition_point(|item| *item < middle)
            );
            let last = queue.len().saturating_sub(1);
            assert_eq!(queue.get_mut(last), model.get_mut(last));
            if n % 13 == 0 {
                let place = model.len() / 3;
                let like = model.get(place).copied().unwrap_or(n);
                queue.insert(place, like);
                model.insert(place, like);
                assert!(queue.iter().eq(model.iter()));
            }
        }
    }
}
