//! What mail of another partition makes true here.

use super::{batch::Batch, discover, engine::Refusal, joint, mail, received, servers, sites};
use crate::{Announced, Committed, Mail, NumberedMail, PartitionId};

/// Takes in mail of another partition, as far as it was not taken in yet.
pub(super) fn take(
    b: &mut Batch<'_>,
    from: PartitionId,
    mails: &[NumberedMail],
    committed: &mut Committed,
) -> Result<(), Refusal> {
    let mut last = mail::last_read(b.t, from)?;
    for one in mails {
        if one.number > last {
            last = one.number;
            take_one(b, from, &one.mail, committed)?;
        }
    }
    mail::set_last_read(b.t, from, last)?;
    Ok(())
}

fn take_one(
    b: &mut Batch<'_>,
    from: PartitionId,
    mail: &Mail,
    committed: &mut Committed,
) -> Result<(), Refusal> {
    match mail {
        Mail::Found { site, at_s, page } => {
            let found = discover::discover(b, *site, page, *at_s)?;
            committed.new_pages.extend(found.and_then(|found| found.new_page));
        }
        Mail::Share { url, micros } => {
            committed.received.extend(received::add(b.t, url, *micros)?);
        }
        &Mail::MoreShare { hash, micros } => {
            committed.received.extend(received::add_more(b.t, hash, micros)?);
        }
        Mail::RoundEnd { site, ended } => joint::round_ended(b.t, from, *site, *ended)?,
        &Mail::Need { site, day, need } => {
            joint::need(b.t, from, site, day, need)?;
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
    Ok(())
}
