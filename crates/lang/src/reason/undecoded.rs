//! Why a body cannot be decoded.

use serde::{Deserialize, Serialize};

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undecoded {
    /// The content coding is unknown.
    UnknownCoding(String),
    /// More content codings in a row than are undone.
    TooManyCodings {
        /// How many were named.
        count: u64,
        /// The most that are undone.
        limit: u64,
    },
    /// The body is damaged, or is not coded as the server says.
    Damaged {
        /// The coding that failed.
        coding: String,
        /// Bytes decoded before the damage.
        decoded_bytes: u64,
        /// What the decoder says.
        why: String,
    },
    /// The decoded body is too large.
    TooLarge {
        /// The coding that was being undone.
        coding: String,
        /// The most bytes that are decoded.
        limit_bytes: u64,
    },
    /// The body grows more than any honest content.
    Bomb {
        /// The coding that was being undone.
        coding: String,
        /// Size of the body as received.
        coded_bytes: u64,
        /// The most bytes that are decoded of so many.
        limit_bytes: u64,
        /// The largest growth allowed.
        ratio: u64,
    },
}

impl Undecoded {
    pub(super) fn english(&self) -> String {
        match self {
            Self::UnknownCoding(coding) => format!(
                "content coding `{coding}` is unknown; gzip, deflate, br, zstd and identity are read"
            ),
            Self::TooManyCodings { count, limit } => {
                format!("{count} content codings in a row are more than the limit of {limit}")
            }
            Self::Damaged { coding, decoded_bytes, why } => {
                format!("the body is not valid {coding} after {decoded_bytes} bytes: {why}")
            }
            Self::TooLarge { coding, limit_bytes } if coding == "identity" => format!(
                "the body is larger than {limit_bytes} bytes; only its front was read for links"
            ),
            Self::TooLarge { coding, limit_bytes } => format!(
                "the {coding} body decodes to more than {limit_bytes} bytes; only its front was read for links"
            ),
            Self::Bomb { coding, coded_bytes, limit_bytes, ratio } => format!(
                "the {coding} body of {coded_bytes} bytes decodes to more than {limit_bytes} bytes, beyond the ratio of {ratio}"
            ),
        }
    }

    pub(super) fn japanese(&self) -> String {
        match self {
            Self::UnknownCoding(coding) => format!(
                "符号化「{coding}」は読めません（読めるのは gzip、deflate、br、zstd、identity）"
            ),
            Self::TooManyCodings { count, limit } => {
                format!("符号化が {count} 段重なり、上限の {limit} 段を超えています")
            }
            Self::Damaged { coding, decoded_bytes, why } => {
                format!(
                    "本文が {decoded_bytes} バイト以降、正しい {coding} ではありません（{why}）"
                )
            }
            Self::TooLarge { coding, limit_bytes } if coding == "identity" => format!(
                "本文が {limit_bytes} バイトを超えるため、リンクは先頭部分だけから読み取りました"
            ),
            Self::TooLarge { coding, limit_bytes } => format!(
                "{coding} の本文を展開すると {limit_bytes} バイトを超えるため、リンクは先頭部分だけから読み取りました"
            ),
            Self::Bomb { coding, coded_bytes, limit_bytes, ratio } => format!(
                "{coding} の本文（{coded_bytes} バイト）を展開すると {limit_bytes} バイトを超え、上限の {ratio} 倍を上回ります"
            ),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One of each kind.
    pub(in super::super) fn all() -> Vec<Undecoded> {
        let coding = || "gzip".to_owned();
        vec![
            Undecoded::UnknownCoding(coding()),
            Undecoded::TooManyCodings { count: 9, limit: 4 },
            Undecoded::Damaged { coding: coding(), decoded_bytes: 7, why: "x".to_owned() },
            Undecoded::TooLarge { coding: coding(), limit_bytes: 8 },
            Undecoded::Bomb { coding: coding(), coded_bytes: 1, limit_bytes: 2, ratio: 3 },
        ]
    }
}
