//! How the state answers the machine: the same for everyone who drives it.

use std::collections::BTreeSet;

use nenrin_state::{Change, DuePage, ServerId, ServerRecord, State, StateError};

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
        &Load::BeginRound(site) => Event::RoundBegun(state.begin_round(site, now_s)?),
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
            let visits_today = state.visits_on(site, now_s.div_euclid(DAY_S))?;
            Event::SharedLoaded { site, bytes: state.shared(site)?, visits_today }
        }
        Load::Order => Event::OrderLoaded(state.order()?),
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

    /// How many changes it holds.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl FromIterator<(Option<Ticket>, Change)> for Batch {
    fn from_iter<T: IntoIterator<Item = (Option<Ticket>, Change)>>(changes: T) -> Self {
        let mut batch = Self::default();
        changes.into_iter().for_each(|(ticket, change)| batch.push(ticket, change));
        batch
    }
}

/// Commits a batch in one transaction.
///
/// # Errors
/// [`StateError`] when the state cannot commit; then none of the changes holds.
pub fn commit_batch(state: &dyn State, batch: &Batch) -> Result<Event, StateError> {
    let committed = state.commit(&batch.changes)?;
    let servers = servers_of(state, committed.new_pages.iter().map(|new| &new.due))?;
    let ended = batch.changes.iter().filter_map(|change| match change {
        Change::RoundEnd(end) => Some(end.round),
        _ => None,
    });
    let rounds_ended = ended.collect();
    Ok(Event::Committed { tickets: batch.tickets.clone(), rounds_ended, committed, servers })
}

/// What is known of the servers of some pages: the machine may have left them to the state.
fn servers_of<'a>(
    state: &dyn State,
    pages: impl IntoIterator<Item = &'a DuePage>,
) -> Result<Vec<ServerRecord>, StateError> {
    let servers: BTreeSet<ServerId> = pages.into_iter().map(|due| due.page.id.server()).collect();
    state.servers(&servers.into_iter().collect::<Vec<_>>())
}
