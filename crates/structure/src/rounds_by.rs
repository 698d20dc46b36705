//! How a round chooses its pages, by name.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::error::StructureError;

/// The pages that a round of a site visits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RoundsBy {
    /// Every page.
    #[default]
    All,
    /// Method A: the shallowest pages of every directory, and the rest of the directory if one of
    /// them changed.
    A,
    /// Method B: pages linked from other directories, and the pages of their own directory that
    /// they link to if they changed.
    B,
    /// Method C: as B, but only below sites that changed.
    C,
    /// The likeliest pages, as far as they are worth a visit.
    Auto,
}

impl RoundsBy {
    /// All ways, in the order in which they are listed.
    pub const ALL: [Self; 5] = [Self::All, Self::A, Self::B, Self::C, Self::Auto];

    /// Whether a round leaves pages out.
    #[must_use]
    pub fn chooses(self) -> bool {
        self != Self::All
    }

    /// The name, as typed and stored.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::A => "structure(A)",
            Self::B => "structure(B)",
            Self::C => "structure(C)",
            Self::Auto => "structure(auto)",
        }
    }
}

impl fmt::Display for RoundsBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RoundsBy {
    type Err = StructureError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|by| by.name().eq_ignore_ascii_case(name.trim()));
        named.ok_or_else(|| StructureError::UnknownRoundsBy { name: name.to_owned() })
    }
}

impl TryFrom<String> for RoundsBy {
    type Error = StructureError;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

impl From<RoundsBy> for String {
    fn from(by: RoundsBy) -> Self {
        by.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_in_any_case() {
        for by in RoundsBy::ALL {
            assert_eq!(by.to_string().parse(), Ok(by));
            assert_eq!(by.name().to_uppercase().parse(), Ok(by));
        }
        let refusal = "structure(D)".parse::<RoundsBy>().unwrap_err().to_string();
        assert!(
            refusal.contains("structure(D)") && refusal.contains("structure(auto)"),
            "{refusal}"
        );
    }
}
