//! What are the two endpoints of a connection?
//!
//! Nearly all have IPv4 addresses and are kept packed, as in usual segments: 12 bytes for both instead of
//! 64.

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

    #[inline]
    pub(crate) fn end(&self, end: usize) -> Endpoint {
        self.get()[end]
    }

    /// As in packed segments; none if the connection's segments cannot be packed.
    #[inline]
    pub(crate) fn packed(&self) -> Option<PackedEnds> {
        match self {
            Self::Packed(ends) => Some(*ends),
            Self::Whole(_) => None,
        }
    }

    /// Heap memory in bytes.
    pub(crate) fn heap(&self) -> usize {
        match self {
            Self::Packed(_) => 0,
            Self::Whole(_) => size_of::<[Endpoint; 2]>(),
        }
    }
}
