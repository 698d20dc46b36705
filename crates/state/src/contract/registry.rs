use crate::{
    Incident, Removal, RemovalRow, Site, SiteConditions, SiteId, StateError, Watch, WatchHit,
    WatchId,
};

/// The sites that people registered, and what they should know of them.
pub trait Registry: Send + Sync {
    /// Registers a site; its top pages become known.
    fn add_site(
        &self,
        name: &str,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<Site, StateError>;

    /// Changes a site's conditions.
    fn set_site(
        &self,
        site: SiteId,
        conditions: &SiteConditions,
        now_s: i64,
    ) -> Result<(), StateError>;

    /// Gives a site another name, which no other site has.
    fn rename_site(&self, site: SiteId, name: &str) -> Result<(), StateError>;

    /// Pauses or resumes a site.
    fn pause_site(&self, site: SiteId, paused: bool) -> Result<(), StateError>;

    /// Removes a site in one of three ways, or with `None` undoes a removal, and writes down why.
    /// The site is paused. From [`Removal::Deny`] on, pages that no other site has are not found
    /// any more, even when they are visited again. A deletion cannot be undone.
    fn remove_site(
        &self,
        site: SiteId,
        removal: Option<Removal>,
        reason: &str,
        now_s: i64,
    ) -> Result<(), StateError>;

    /// Removals and their undoing, newest first.
    fn removals(&self) -> Result<Vec<RemovalRow>, StateError>;

    /// Every site, by number, also those that were removed.
    fn sites(&self) -> Result<Vec<Site>, StateError>;

    /// Keeps incidents, oldest first. The newest [`Incident::KEPT`] stay.
    fn keep_incidents(&self, incidents: &[Incident]) -> Result<(), StateError>;

    /// Some incidents are over.
    fn end_incidents(&self, ids: &[String], now_s: i64) -> Result<(), StateError>;

    /// What people should know of, newest first.
    fn incidents(&self) -> Result<Vec<Incident>, StateError>;

    /// Stores a watch and returns it with its number; one with a number replaces the stored one.
    fn keep_watch(&self, watch: &Watch) -> Result<Watch, StateError>;

    /// Removes a watch; false if there was none.
    fn drop_watch(&self, watch: WatchId) -> Result<bool, StateError>;

    /// Every watch, by number.
    fn watches(&self) -> Result<Vec<Watch>, StateError>;

    /// Stores what watches reported, oldest first. The newest [`WatchHit::KEPT`] stay. One with a
    /// number replaces the stored one.
    fn keep_watch_hits(&self, hits: &[WatchHit]) -> Result<(), StateError>;

    /// What watches reported, newest first.
    fn watch_hits(&self) -> Result<Vec<WatchHit>, StateError>;
}
