//! What is under way, by the stage it has reached: asked for, being stored, being committed.

use std::collections::BTreeMap;

use nenrin_state::{DuePage, PageId, ServerId, SiteId, VersionId, VersionRow, VisitCommit};
use nenrin_structure::PageFragments;
use nenrin_urls::CanonicalUrl;

use crate::{
    answer::Ticket, learning::Look, plans::VisitResult, renderings::RenderCase,
    servers::RobotsRequest,
};

/// What is done once a rendering has ended: a page is released.
pub(crate) type Release = Option<(SiteId, VisitResult)>;

/// All that is under way.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    last_ticket: u64,
    asked: BTreeMap<Ticket, Asked>,
    storing: BTreeMap<Ticket, Unstored>,
    rendering: BTreeMap<Ticket, (RenderCase, Release)>,
    committing: BTreeMap<Ticket, Committing>,
}

/// A request under way.
#[derive(Debug)]
pub(crate) enum Asked {
    Page { due: Box<DuePage>, asked_ms: i64, conditionally: bool },
    Robots { server: ServerId, request: RobotsRequest },
    Look(Look),
}

/// A visit that found new content, which is not durable yet.
#[derive(Debug)]
pub(crate) struct Unstored {
    pub(crate) page: NamedPage,
    /// The visit, still without its version.
    pub(crate) visit: Box<VisitCommit>,
    pub(crate) version: UnstoredVersion,
    pub(crate) blocks: Option<PageFragments>,
    /// The page and the kind of its scripts, if it is to be rendered.
    pub(crate) render: Option<(Box<DuePage>, u64)>,
    /// Whether the page had no version before.
    pub(crate) is_first: bool,
}

/// The page of a visit.
#[derive(Debug)]
pub(crate) struct NamedPage {
    pub(crate) id: PageId,
    pub(crate) url: CanonicalUrl,
}

impl NamedPage {
    pub(crate) fn of(due: &DuePage) -> Self {
        Self { id: due.page.id, url: due.page.url.clone() }
    }
}

/// A version that has no number yet.
#[derive(Debug)]
pub(crate) struct UnstoredVersion {
    pub(crate) status: u16,
    pub(crate) mime: String,
    pub(crate) bytes: u64,
    pub(crate) changed_permille: Option<u16>,
}

impl UnstoredVersion {
    /// Whether the change is one for readers; what was not compared counts as one.
    pub(crate) fn is_significant(&self) -> bool {
        self.changed_permille != Some(0)
    }

    /// The version, once the store has given it a number.
    pub(crate) fn stored(self, at_s: i64, version: VersionId) -> VersionRow {
        let Self { status, mime, bytes, changed_permille } = self;
        VersionRow { at_s, version, status, mime, bytes, changed_permille }
    }
}

/// What is being committed and goes on once it is.
#[derive(Debug)]
pub(crate) enum Committing {
    Visit {
        url: CanonicalUrl,
        site: SiteId,
        result: VisitResult,
        /// The page is to be rendered.
        render: Option<Box<RenderCase>>,
    },
    /// What a rendering found.
    Parts {
        /// The page that is released then.
        release: Release,
    },
    /// A page of this server is brought forward.
    Pull { server: ServerId },
}

impl UnderWay {
    pub(crate) fn new_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    pub(crate) fn len(&self) -> usize {
        self.asked.len() + self.storing.len() + self.rendering.len() + self.committing.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Requests under way.
    pub(crate) fn fetching(&self) -> usize {
        self.asked.len()
    }

    pub(crate) fn ask(&mut self, ticket: Ticket, asked: Asked) {
        self.asked.insert(ticket, asked);
    }

    pub(crate) fn fetched(&mut self, ticket: Ticket) -> Option<Asked> {
        self.asked.remove(&ticket)
    }

    pub(crate) fn store(&mut self, ticket: Ticket, unstored: Unstored) {
        self.storing.insert(ticket, unstored);
    }

    pub(crate) fn stored(&mut self, ticket: Ticket) -> Option<Unstored> {
        self.storing.remove(&ticket)
    }

    pub(crate) fn render(&mut self, ticket: Ticket, case: RenderCase, release: Release) {
        self.rendering.insert(ticket, (case, release));
    }

    /// A page that is to be rendered.
    pub(crate) fn to_render(&self, ticket: Ticket) -> Option<&RenderCase> {
        self.rendering.get(&ticket).map(|(case, _)| case)
    }

    pub(crate) fn rendered(&mut self, ticket: Ticket) -> Option<(RenderCase, Release)> {
        self.rendering.remove(&ticket)
    }

    /// Whether some page is being rendered.
    pub(crate) fn is_rendering(&self) -> bool {
        !self.rendering.is_empty()
    }

    pub(crate) fn commit(&mut self, ticket: Ticket, committing: Committing) {
        self.committing.insert(ticket, committing);
    }

    pub(crate) fn committed(&mut self, ticket: Ticket) -> Option<Committing> {
        self.committing.remove(&ticket)
    }

    /// The page whose visit is being committed under a ticket.
    pub(crate) fn committing(&self, ticket: Ticket) -> Option<&CanonicalUrl> {
        match self.committing.get(&ticket)? {
            Committing::Visit { url, .. } => Some(url),
            Committing::Pull { .. } | Committing::Parts { .. } => None,
        }
    }
}
