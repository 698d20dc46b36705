/// Why a body cannot be read.
///
/// A body that is merely odd (broken markup, unknown charset, cut off) is not an error: what can be
/// found in it is found. These are the cases in which nothing can be said about the content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The content coding is unknown.
    #[error("content coding `{coding}` is unknown; gzip, deflate, br, zstd and identity are read")]
    UnknownCoding {
        /// The coding as the server named it, shortened.
        coding: String,
    },
    /// More content codings in a row than any honest server applies.
    #[error("{count} content codings in a row are more than the limit of {limit}")]
    TooManyCodings {
        /// How many were named.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The coded body is damaged or is not coded as the server says.
    #[error("the body is not valid {coding} after {decoded_bytes} bytes: {reason}")]
    Damaged {
        /// The coding that failed.
        coding: &'static str,
        /// Number of bytes decoded before the damage.
        decoded_bytes: usize,
        /// What the decoder says.
        reason: String,
    },
    /// The decoded body is larger than the caller allows.
    #[error("the {coding} body decodes to more than the limit of {limit_bytes} bytes")]
    TooLarge {
        /// The coding that was being undone.
        coding: &'static str,
        /// The limit that was reached.
        limit_bytes: usize,
    },
    /// The body grows far more than any honest content: a decompression bomb.
    #[error(
        "the {coding} body of {coded_bytes} bytes decodes to more than {limit_bytes} bytes, beyond the ratio of {ratio}"
    )]
    Bomb {
        /// The coding that was being undone.
        coding: &'static str,
        /// Size of the body as received.
        coded_bytes: usize,
        /// The limit that follows from the ratio.
        limit_bytes: usize,
        /// The largest ratio allowed.
        ratio: usize,
    },
}
