use nenrin_lang::Lang;
use nenrin_urls::UrlError;

/// Why something could not be replayed. That a page is not archived is an answer, not an error.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The text in the position of the archived URL is not a URL.
    #[error("this is not the address of a web page: {source}")]
    BadUrl {
        /// What is wrong with it.
        source: UrlError,
    },
    /// A parameter of a query cannot be understood.
    #[error("the parameter `{name}` cannot be `{value}`: {expected}")]
    BadParameter {
        /// Its name.
        name: &'static str,
        /// The value given, shortened.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// The archive could not be read.
    #[error("the archive could not be read")]
    Archive(#[from] ArchiveError),
}

impl ReplayError {
    /// The message for a reader of Japanese.
    pub(crate) fn in_japanese(&self) -> String {
        match self {
            Self::BadUrl { source } => {
                let why = source.to_string();
                format!("ウェブのページのアドレスではありません：{}", Lang::Ja.translate(&why))
            }
            Self::BadParameter { name, value, .. } => {
                format!("「{name}」の値「{value}」を読み取れません。")
            }
            Self::Archive(_) => "しばらくしてからやり直してください。".to_owned(),
        }
    }
}

/// An archive failed to answer; its message is for the log, not for the reader of a page.
#[derive(Debug, thiserror::Error)]
#[error("{action}: {source}")]
pub struct ArchiveError {
    /// What was attempted.
    pub action: &'static str,
    /// What went wrong.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl ArchiveError {
    /// An error of some backend.
    pub fn new(
        action: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { action, source: source.into() }
    }
}
