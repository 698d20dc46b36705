//! What mail of another partition makes true here.

use super::{batch::Batch, discover, engine::Refusal, mail, servers, sites};
use crate::{Announced, Mail, NewPage, NumberedMail, PartitionId};

/// Takes in mail of another partition, as far as it was not taken in yet. Returns the pages that
/// became known.
pub(super) fn take(
    b: &mut Batch<'_>,
    from: PartitionId,
    mails: &[NumberedMail],
) -> Result<Vec<NewPage>, Refusal> {
    let mut last = mail::last_read(b.t, from)?;
    let mut new_pages = Vec::new();
    for one in mails {
        if one.number > last {
            last = one.number;
            new_pages.extend(take_one(b, &one.mail)?);
        }
    }
    mail::set_last_read(b.t, from, last)?;
    Ok(new_pages)
}

fn take_one(b: &mut Batch<'_>, mail: &Mail) -> Result<Option<NewPage>, Refusal> {
    match mail {
        Mail::Found { site, at_s, page } => {
            let found = discover::discover(b, *site, page, *at_s)?;
            return Ok(found.and_then(|found| found.new_page));
        }
        Mail::Top { site, at_s, url } => {
            sites::add_tops(b, *site, std::slice::from_ref(url), *at_s)?;
        }
        Mail::Hint { at_s, url, changed_s, odds_percent, hint } => {
            let pages = vec![(url.clone(), *changed_s)];
            let (at_s, odds_percent, hint) = (*at_s, *odds_percent, hint.clone());
            servers::announced(b, &Announced { at_s, pages, odds_percent, hint })?;
        }
    }
    Ok(None)
}
