//! How the state answers the machine: the same for everyone who drives it.

use std::collections::BTreeSet;

use nenrin_state::{
    Change, DuePage, Epoch, Mail, NumberedMail, PartitionId, ServerId, ServerRecord, State,
    StateError,
};

use crate::{
    answer::Ticket,
    events::{Event, Load},
    near::load_near,
};

const DAY_S: i64 = 86_400;
/// Asks the state for what the machine wants.
///
/// # Errors
/// [`StateError`] when the state cannot answer.
pub fn answer_load(state: &dyn State, now_s: i64, load: &Load) -> Result<Event, StateError> {
    Ok(match load {
        Load::Sites => Event::Sites(state.sites()?),
        &Load::BeginRound(site) => match state.may_begin_round(site)? {
            true => Event::RoundBegun(state.begin_round(site, now_s)?),
            false => Event::RoundHeld(site),
        },
        Load::Round { round, after, limit } => {
            let pages = state.load_round(round, *after, *limit)?;
            let servers = servers_of(state, &pages)?;
            Event::PagesLoaded { round: round.id, pages, servers }
        }
        Load::Map(round) => {
            let map = Box::new(state.site_pages(round.site)?);
            let servers = state.servers(&map.server_ids())?;
            Event::MapLoaded { round: round.id, map, servers }
        }
        Load::Chosen { round, pages: asked } => {
            let pages = state.load_pages(round, asked)?;
            let servers = servers_of(state, &pages)?;
            Event::ChosenLoaded { round: round.id, asked: asked.clone(), pages, servers }
        }
        Load::Due(query) => {
            let load = state.load_due(query)?;
            let servers = servers_of(state, &load.pages)?;
            Event::DueLoaded { query: query.clone(), load, servers }
        }
        &Load::Shared(site) => {
            let day = now_s.div_euclid(DAY_S);
            let visits_today = state.visits_on(site, day)?;
            let visits_yesterday = state.visits_on(site, day - 1)?;
            let division = state.division(Some(site), day)?;
            let (bytes, of_archive) = (state.shared(site)?, state.division(None, day)?);
            Event::SharedLoaded {
                site,
                bytes,
                visits_today,
                visits_yesterday,
                division,
                of_archive,
            }
        }
        &Load::Division { site, day } => {
            Event::DivisionLoaded { site, division: state.division(site, day)? }
        }
        Load::Order => Event::OrderLoaded { bytes: state.order()?, received: state.received()? },
        &Load::Found { after, limit } => {
            Event::FoundLoaded { after, pages: state.found(after, limit)? }
        }
        Load::New(places) => {
            let pages = state.load_found(places)?;
            let servers = servers_of(state, &pages)?;
            Event::NewLoaded { places: places.clone(), pages, servers }
        }
        Load::Links(places) => Event::LinksLoaded(state.links(places)?),
        Load::Near(query) => {
            let pages = load_near(state, query)?;
            Event::NearLoaded { query: query.clone(), pages }
        }
    })
}

/// Changes that are committed in one transaction, in their order.
#[derive(Debug, Default)]
pub struct Batch {
    tickets: Vec<Ticket>,
    changes: Vec<Change>,
}

impl Batch {
    /// Adds a change, with the ticket that it came with.
    pub fn push(&mut self, ticket: Option<Ticket>, change: Change) {
        self.tickets.extend(ticket);
        self.changes.push(change);
    }

    /// Whether it holds no change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// How much work it is: its changes, and the pages that they make known.
    pub fn weight(&self) -> usize {
        let found = |change: &Change| match change {
            Change::Visit(visit) => visit.discovered.len(),
            _ => 0,
        };
        self.changes.len() + self.changes.iter().map(found).sum::<usize>()
    }
}

impl FromIterator<(Option<Ticket>, Change)> for Batch {
    fn from_iter<T: IntoIterator<Item = (Option<Ticket>, Change)>>(changes: T) -> Self {
        let mut batch = Self::default();
        changes.into_iter().for_each(|(ticket, change)| batch.push(ticket, change));
        batch
    }
}

/// Commits a batch in one transaction, under the epoch in which the partition is held.
///
/// # Errors
/// [`StateError`] when the state cannot commit; then none of the changes holds.
pub fn commit_batch(state: &dyn State, epoch: Epoch, batch: &Batch) -> Result<Event, StateError> {
    let committed = state.commit_under(epoch, &batch.changes)?;
    let servers = servers_of(state, committed.new_pages.iter().map(|new| &new.due))?;
    let ended = batch.changes.iter().filter_map(|change| match change {
        Change::RoundEnd(end) => Some(end.round),
        _ => None,
    });
    let rounds_ended = ended.collect();
    Ok(Event::Committed { tickets: batch.tickets.clone(), rounds_ended, committed, servers })
}

/// Mail taken in at once, of one partition.
pub const MAIL_MAX: usize = 1_000;

/// Takes in what another partition has for this one, until there is no more. Returns the events for
/// this partition's machine.
///
/// # Errors
/// [`StateError`] when one of the states cannot answer.
pub fn take_mail(
    own: &dyn State,
    epoch: Epoch,
    other: &dyn State,
) -> Result<Vec<Event>, StateError> {
    let ((_, receiver), (_, from)) = (own.partition(), other.partition());
    let mut events = Vec::new();
    loop {
        let mail = other.outbox(receiver, own.mail_read(from)?, MAIL_MAX)?;
        if mail.is_empty() {
            return Ok(events);
        }
        events.extend(take_in(own, epoch, [(from, mail)])?);
    }
}

/// Takes in mail of other partitions with one commit. Returns the events for this partition's
/// machine. Mail that was taken in once is not taken in again.
///
/// # Errors
/// [`StateError`] when the state cannot commit.
pub fn take_in(
    own: &dyn State,
    epoch: Epoch,
    mail: impl IntoIterator<Item = (PartitionId, Vec<NumberedMail>)>,
) -> Result<Vec<Event>, StateError> {
    let taken = mail.into_iter().map(|(from, mail)| (None, Change::MailTaken { from, mail }));
    let taken = Batch::from_iter(taken);
    let changes_sites = |change: &Change| match change {
        Change::MailTaken { mail, .. } => {
            mail.iter().any(|one| matches!(one.mail, Mail::Top { .. } | Mail::RoundEnd { .. }))
        }
        _ => false,
    };
    let mut events = vec![commit_batch(own, epoch, &taken)?];
    if taken.changes.iter().any(changes_sites) {
        events.push(Event::Sites(own.sites()?));
    }
    Ok(events)
}

/// Drops mail of this partition that another has taken in.
///
/// # Errors
/// [`StateError`] when one of the states cannot answer.
pub fn drop_taken_mail(own: &dyn State, epoch: Epoch, other: &dyn State) -> Result<(), StateError> {
    let ((_, from), (_, to)) = (own.partition(), other.partition());
    let upto = other.mail_read(from)?;
    let first = own.outbox(to, 0, 1)?;
    if first.first().is_some_and(|mail| mail.number <= upto) {
        own.commit_under(epoch, &[Change::MailDelivered { to, upto }])?;
    }
    Ok(())
}

/// What is known of the servers of some pages: the machine may have left them to the state.
fn servers_of<'a>(
    state: &dyn State,
    pages: impl IntoIterator<Item = &'a DuePage>,
) -> Result<Vec<ServerRecord>, StateError> {
    let servers: BTreeSet<ServerId> = pages.into_iter().map(|due| due.page.id.server()).collect();
    state.servers(&servers.into_iter().collect::<Vec<_>>())
}
