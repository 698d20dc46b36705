//! The thread that asks the state and commits to it, many changes to one transaction.

use std::{collections::BTreeSet, sync::mpsc};

use nenrin_crawl::{Event, NearQuery, Ticket, load_near};
use nenrin_state::{
    Change, DayQuery, DuePage, DueQuery, Round, ServerId, ServerRecord, SiteId, State, StateError,
};
use tokio::sync::mpsc::UnboundedSender;

use super::Happening;
use crate::clock;

/// Changes put into one transaction at most.
const COMMIT_BATCH: usize = 1000;

/// What the state is asked for.
pub(super) enum StateJob {
    BeginRound(SiteId),
    LoadRound { round: Round, after: Option<nenrin_state::PageId>, limit: usize },
    LoadPages { round: Round, pages: Vec<nenrin_state::PageId> },
    LoadDue(DueQuery),
    LoadShared(SiteId),
    LoadOrder,
    LoadFound { after: u32, limit: usize },
    LoadNew(Vec<u32>),
    LoadLinks(Vec<u32>),
    LoadNear(Box<NearQuery>),
    Commit { ticket: Option<Ticket>, change: Change },
    ReadSites,
}

pub(super) fn serve_state(
    state: &dyn State,
    jobs: &mpsc::Receiver<StateJob>,
    sender: &UnboundedSender<Happening>,
) {
    let mut put_back = None;
    while let Some(job) = put_back.take().or_else(|| jobs.recv().ok()) {
        let answer = match job {
            StateJob::BeginRound(site) => {
                state.begin_round(site, clock::now_s()).map(Event::RoundBegun)
            }
            StateJob::ReadSites => state.sites().map(Event::Sites),
            StateJob::LoadRound { round, after, limit } => load_round(state, &round, after, limit),
            StateJob::LoadDue(query) => load_due(state, query),
            StateJob::LoadPages { round, pages } => load_pages(state, &round, pages),
            StateJob::LoadShared(site) => load_shared(state, site),
            StateJob::LoadOrder => state.order().map(Event::OrderLoaded),
            StateJob::LoadFound { after, limit } => {
                state.found(after, limit).map(|pages| Event::FoundLoaded { after, pages })
            }
            StateJob::LoadNew(places) => load_new(state, places),
            StateJob::LoadLinks(places) => state.links(&places).map(Event::LinksLoaded),
            StateJob::LoadNear(query) => {
                load_near(state, &query).map(|pages| Event::NearLoaded { query, pages })
            }
            StateJob::Commit { ticket, change } => {
                let mut batch = vec![(ticket, change)];
                while batch.len() < COMMIT_BATCH {
                    match jobs.try_recv() {
                        Ok(StateJob::Commit { ticket, change }) => batch.push((ticket, change)),
                        Ok(other) => {
                            put_back = Some(other);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                commit(state, batch)
            }
        };
        match answer {
            Ok(event) => {
                let _ = sender.send(Happening::Event(event));
            }
            Err(error) => {
                let _ = sender.send(Happening::StateFailed(error));
                return;
            }
        }
    }
}

fn load_round(
    state: &dyn State,
    round: &Round,
    after: Option<nenrin_state::PageId>,
    limit: usize,
) -> Result<Event, StateError> {
    let pages = state.load_round(round, after, limit)?;
    let servers = servers_of(state, pages.iter())?;
    Ok(Event::PagesLoaded { round: round.id, pages, servers })
}

/// Reads a site's map, which takes seconds on a large site: not for the state's thread, where every
/// commit would wait for it.
pub(super) fn load_map(state: &dyn State, round: &Round) -> Result<Event, StateError> {
    let map = Box::new(state.site_pages(round.site)?);
    let servers = state.servers(&map.server_ids())?;
    Ok(Event::MapLoaded { round: round.id, map, servers })
}

fn load_pages(
    state: &dyn State,
    round: &Round,
    asked: Vec<nenrin_state::PageId>,
) -> Result<Event, StateError> {
    let pages = state.load_pages(round, &asked)?;
    let servers = servers_of(state, pages.iter())?;
    Ok(Event::ChosenLoaded { round: round.id, asked, pages, servers })
}

fn load_due(state: &dyn State, query: DueQuery) -> Result<Event, StateError> {
    let load = state.load_due(&query)?;
    let servers = servers_of(state, load.pages.iter())?;
    Ok(Event::DueLoaded { query, load, servers })
}

fn load_new(state: &dyn State, places: Vec<u32>) -> Result<Event, StateError> {
    let pages = state.load_found(&places)?;
    let servers = servers_of(state, pages.iter())?;
    Ok(Event::NewLoaded { places, pages, servers })
}

fn load_shared(state: &dyn State, site: SiteId) -> Result<Event, StateError> {
    let day = clock::now_s().div_euclid(86_400);
    let today = state.days(DayQuery { site: Some(site), from_day: day, to_day: day })?;
    let visits_today = today.iter().map(|counts| counts.visits).sum();
    Ok(Event::SharedLoaded { site, bytes: state.shared(site)?, visits_today })
}

fn commit(state: &dyn State, batch: Vec<(Option<Ticket>, Change)>) -> Result<Event, StateError> {
    let (tickets, changes): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
    let committed = state.commit(&changes)?;
    let servers = servers_of(state, committed.new_pages.iter().map(|new| &new.due))?;
    let ended = changes.iter().filter_map(|change| match change {
        Change::RoundEnd(end) => Some(end.round),
        _ => None,
    });
    Ok(Event::Committed {
        tickets: tickets.into_iter().flatten().collect(),
        rounds_ended: ended.collect(),
        committed,
        servers,
    })
}

/// What is known of the servers of some pages: the machine may have left them to the state.
fn servers_of<'a>(
    state: &dyn State,
    pages: impl Iterator<Item = &'a DuePage>,
) -> Result<Vec<ServerRecord>, StateError> {
    let servers: BTreeSet<ServerId> = pages.map(|due| due.page.id.server()).collect();
    state.servers(&servers.into_iter().collect::<Vec<_>>())
}
