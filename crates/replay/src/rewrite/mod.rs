//! Makes URLs inside archived content point into the archive. Everything works on bytes: all bytes
//! that are not part of a URL stay, whatever their encoding.

pub(crate) mod css;
mod edits;
mod entities;
pub(crate) mod html;
mod iso_2022_jp;
pub(crate) mod json;
mod links;
mod nesting;
pub(crate) mod playlist;
pub(crate) mod refresh;
pub(crate) mod script;
mod srcset;
mod windows;

pub(crate) use entities::decoded as decoded_entities;
pub(crate) use links::Links;

/// What the HTML parser may take for itself: open elements, and a tag that is cut off.
const PARSER_BYTES_MAX: usize = 32 << 20;

/// The parser's memory. A page that needs more is read up to there.
pub(crate) fn parser_memory() -> lol_html::MemorySettings {
    lol_html::MemorySettings::new().with_max_allowed_memory_usage(PARSER_BYTES_MAX)
}
