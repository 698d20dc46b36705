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
