//! Between whom is a connection?
//!
//! Nearly all ends have IPv4 addresses, and are kept as usual segments have them: 12 bytes for both instead of 64.

use tcpwhy_wire::Endpoint;

use crate::flow::packed::PackedEnds;

/// Client and server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BothEnds {
    Packed(PackedEnds),
    Whole(Box<[Endpoint; 2]>),
}

impl BothEnds {
    pub(crate) fn of(ends: [Endpoint; 2]) -> Self {
        PackedEnds::of(ends).map_or_else(|| Self::Whole(Box::new(ends)), Self::Packed)
    }

    #[inline]
    pub(crate) fn get(&self) -> [Endpoint; 2] {
        match self {
            Self::Packed(ends) => ends.ends(),
            Self::Whole(ends) => **ends,
        }
    }

    /// One of them.
    #[inline]
    pub(crate) fn end(&self, end: usize) -> Endpoint {
        self.get()[end]
    }

    /// As usual segments have them; nothing where none can be usual.
    #[inline]
    pub(crate) fn packed(&self) -> Option<PackedEnds> {
        match self {
            Self::Packed(ends) => Some(*ends),
            Self::Whole(_) => None,
        }
    }

    /// Bytes that they take besides their own.
    pub(crate) fn heap(&self) -> usize {
        match self {
            Self::Packed(_) => 0,
            Self::Whole(_) => size_of::<[Endpoint; 2]>(),
        }
    }
}
