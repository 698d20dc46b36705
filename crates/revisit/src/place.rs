//! Where a page stands among its neighbours.

/// A page's directory on its server, as numbered by the policy that keeps shared clocks.
///
/// The default is "nowhere": the page then has no neighbours, and only its own history counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub(crate) u32);

impl Place {
    /// A page without known neighbours.
    pub const NOWHERE: Self = Self(u32::MAX);

    /// The number, for a caller that stores it beside the page.
    pub fn to_bits(self) -> u32 {
        self.0
    }

    /// The place with that number; a number that no clock knows stands nowhere.
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::NOWHERE
    }
}
