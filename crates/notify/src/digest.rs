//! A summary of the changes of some days.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use nenrin_archive::changes::{self, ChangeFilter, ChangeReader, DigestLinks};
use nenrin_lang::Lang;
use nenrin_state::{State, StateError};
use nenrin_store::Store;

use crate::{Letter, Links};

/// Changes in one letter; the link leads to the rest.
const CHANGES_MAX: usize = 200;
/// Portions that are looked at: most of a portion may be changes that no reader would notice.
const PORTIONS_MAX: usize = 50;

/// The changes from one time to another that a reader would notice, site by site, each with its title and the line
/// that says most; `None` where there are none. It reads stored pages and may take some seconds.
///
/// # Errors
/// [`StateError`] of the state.
pub fn digest(
    state: &Arc<dyn State>,
    store: &Arc<Store>,
    (from_s, to_s): (i64, i64),
    links: &Links,
    lang: Lang,
) -> Result<Option<Letter>, StateError> {
    let reader = ChangeReader::new(state.clone(), store.clone());
    let mut filter = ChangeFilter { from_s, to_s, significant: true, ..ChangeFilter::default() };
    let mut listed = Vec::new();
    for _ in 0..PORTIONS_MAX {
        filter.limit = CHANGES_MAX - listed.len();
        let portion = reader.list(&filter, Duration::MAX)?;
        listed.extend(portion.items);
        filter.before = portion.next;
        if filter.before.is_none() || listed.len() >= CHANGES_MAX {
            break;
        }
    }
    if listed.is_empty() {
        return Ok(None);
    }
    let names: BTreeMap<_, _> = state.sites()?.into_iter().map(|s| (s.id, s.name)).collect();
    let links = DigestLinks { interface: &links.interface, replay: &links.replay };
    let written = changes::digest(lang, &listed, &names, links, filter.before.is_some());
    let subject = format!("Nenrin: {}", written.subject);
    Ok(Some(Letter::new(&subject, written.text, written.html)))
}
