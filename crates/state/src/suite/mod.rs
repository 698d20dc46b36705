//! The suite that every implementation of [`State`] runs, with a part for each contract:
//! `contract_suite!(name, || make())`.
#![expect(clippy::unwrap_used, reason = "a law that cannot be checked must fail its test")]
#![expect(missing_docs, reason = "the laws' names are sentences")]

mod changes;
mod crawl;
mod pages;
mod partition;
mod postgres_server;
mod registry;
mod reports;
mod upkeep;
mod versions;

pub use self::{
    changes::*, crawl::*, pages::*, partition::*, postgres_server::PostgresServer, registry::*,
    reports::*, upkeep::*, versions::*,
};

use nenrin_urls::{CanonicalUrl, Scope};

use crate::{
    Change, ContentMark, Discovered, DuePage, FoundPages, Outcome, PageUpdate, RobotsPolicy,
    Schedule, SiteConditions, SiteId, State, Validators, VersionId, VersionRow, VisitCommit,
};

/// Declares one test per law of the contract, each on a fresh state.
#[macro_export]
macro_rules! contract_suite {
    ($module:ident, $make:expr) => {
        mod $module {
            use super::*;

            $crate::contract_suite! { @laws tests [$make] }
        }
    };
    // The laws by name, for an engine that cannot be made anew for every test.
    (list $state:ty) => { $crate::contract_suite!(@laws list [$state]) };
    (@laws $how:ident $with:tt) => {
        $crate::contract_suite! { @$how $with
                a_site_makes_its_top_pages_known
                two_sites_cannot_share_a_name
                a_round_goes_on_until_it_is_ended
                a_page_found_twice_is_known_once
                a_shorter_path_brings_the_body_again
                a_page_may_belong_to_two_sites
                a_page_is_loaded_when_its_time_has_come
                a_large_server_does_not_hide_the_others
                a_hint_brings_a_page_nearer_until_its_visit
                a_site_may_change_to_schedules_of_pages_and_back
                new_pages_wait_apart_from_those_whose_time_has_come
                links_to_known_pages_are_kept_and_told_once
                what_a_crawl_order_knows_comes_back
                a_sites_map_has_its_pages_links_and_what_rounds_left
                what_pages_share_is_kept_with_a_commit
                a_visit_is_in_the_log_and_in_the_sums
                versions_are_found_as_of_a_date
                urls_with_versions_are_found_by_their_keys
                a_commit_is_all_or_nothing
                a_servers_record_comes_back
                what_was_learnt_of_a_server_comes_back
                noise_is_counted_apart_from_significant_changes
                pages_become_known_outside_a_visit
                an_announcement_brings_pages_nearer_that_were_not_seen_since
                a_version_from_the_packs_is_adopted_once
                lessons_of_imported_visits_set_times_and_tell_noise
                pages_that_get_times_of_their_own_get_those_that_were_learnt
                pages_are_listed_in_portions
                a_redirected_top_page_adds_a_top_page
                a_site_as_of_a_date_leaves_out_what_was_gone
                a_round_begun_in_the_second_of_the_last_visits_every_page
                days_sum_up_what_was_committed
                versions_are_summed_up_by_kind
                the_log_answers_every_filter_in_portions
                problems_are_grouped_by_cause
                versions_are_read_backwards_in_portions
                pages_are_listed_by_path_and_by_directory
                a_hidden_site_is_paused_and_its_versions_are_found
                what_is_denied_is_found_no_more_until_it_is_given_back
                a_page_that_another_site_has_is_not_denied
                what_was_deleted_stays_deleted
                pruned_versions_wait_until_the_store_has_forgotten_them
                lost_versions_leave_the_list_and_pages_are_fetched_as_a_whole
                what_was_visited_in_the_future_is_due_now
                visits_by_url_are_as_if_their_pages_were_known_before
                an_imported_visit_of_the_past_leaves_what_is_known_last
                rates_and_importance_are_summed_up_per_site
                the_order_of_collecting_is_held_against_the_best
                the_newest_incidents_are_kept_until_they_are_over
                changes_are_listed_by_time_with_the_version_before
                what_was_read_of_versions_goes_with_them
                the_last_visits_of_a_page_are_read_backwards
                a_site_gets_another_name_that_is_free
                watches_and_what_they_reported_come_back
        }
    };
    (@list [$state:ty] $($law:ident)+) => {
        [$((stringify!($law), $crate::suite::$law as fn(&$state))),+]
    };
    (@tests [$make:expr] $($law:ident)+) => {
        $(
            #[test]
            fn $law() {
                let state = ($make)();
                $crate::suite::$law(&state);
                assert_eq!($crate::Upkeep::check(&state).unwrap(), Vec::<String>::new());
            }
        )+
    };
}

/// Declares one test per law of partitions: `partition_suite!(name, |partitioning, own| make())`.
#[macro_export]
macro_rules! partition_suite {
    ($module:ident, $make:expr) => {
        mod $module {
            use super::*;

            $crate::partition_suite! { @laws tests [$make] }
        }
    };
    (list $state:ty) => { $crate::partition_suite!(@laws list [$state]) };
    (@laws $how:ident $with:tt) => {
        $crate::partition_suite! { @$how $with
                a_page_of_another_partition_leaves_as_mail_and_is_taken_in_once
                hints_and_top_pages_reach_the_partition_that_has_the_page
                who_lost_a_partition_commits_nothing
                a_visit_of_another_partitions_page_is_refused
                a_single_partition_sends_no_mail
                shares_of_a_score_leave_with_new_links_and_add_up_where_they_arrive
                a_round_waits_until_the_one_before_has_ended_everywhere
                visits_are_divided_by_what_was_said_first_in_every_partition
        }
    };
    (@list [$state:ty] $($law:ident)+) => {
        [$((
            stringify!($law),
            $crate::suite::$law as fn(&dyn Fn($crate::Partitioning, $crate::PartitionId) -> $state)
        )),+]
    };
    (@tests [$make:expr] $($law:ident)+) => {
        $(
            #[test]
            fn $law() {
                $crate::suite::$law(&$make);
            }
        )+
    };
}

const NOW_S: i64 = 1_700_000_000;

fn url(text: &str) -> CanonicalUrl {
    CanonicalUrl::parse(text).unwrap()
}

fn conditions(top: &str) -> SiteConditions {
    SiteConditions {
        tops: vec![url(top)],
        scope: Scope::Host,
        depth: 3,
        max_pages: None,
        embeds: true,
        schedule: Schedule::Manual,
        delay_ms: None,
        allow_private: false,
        robots: RobotsPolicy::Obey,
        ..SiteConditions::new(Vec::new())
    }
}

fn visit(due: &DuePage, at_s: i64, outcome: Outcome) -> VisitCommit {
    VisitCommit {
        status: 200,
        elapsed_ms: 12,
        received_bytes: 100,
        stored_bytes: 40,
        update: PageUpdate {
            validators: Validators { etag: Some("\"e\"".into()), last_modified: None },
            mark: Some(ContentMark([7; 16])),
            bytes: 100,
            history: vec![1, 2, 3],
            ..PageUpdate::default()
        },
        ..VisitCommit::new(due.page.id, due.site, at_s, outcome)
    }
}

fn found(text: &str, depth: u32) -> Discovered {
    Discovered { url: url(text), depth, hops: 0, due_s: None }
}

fn row(version: u64, at_s: i64) -> VersionRow {
    VersionRow {
        at_s,
        version: VersionId(version),
        status: 200,
        mime: "text/html".into(),
        bytes: 100,
        changed_permille: None,
    }
}

/// A site with one top page, in an unfinished round.
fn begun(state: &impl State) -> (crate::Round, DuePage) {
    let site = state.add_site("e", &conditions("http://e.com/"), NOW_S).unwrap();
    let round = state.begin_round(site.id, NOW_S).unwrap();
    let due = state.load_round(&round, None, 10).unwrap().remove(0);
    (round, due)
}

/// Makes pages known outside a visit.
fn make_known(state: &impl State, site: SiteId, pages: Vec<Discovered>, at_s: i64) {
    state.commit(&[Change::Found(FoundPages { site, at_s, pages })]).unwrap();
}

/// Commits a version found in the packs; returns whether the index did not have it.
fn adopt(state: &impl State, site: SiteId, text: &str, row: VersionRow) -> bool {
    let visit = VisitCommit::in_packs(site, url(text), row);
    state.commit(&[Change::Visit(Box::new(visit))]).unwrap().adopted > 0
}

/// A site with two pages, one version each.
fn removable(state: &impl State) -> SiteId {
    let site = state.add_site("r", &conditions("http://r.com/"), NOW_S).unwrap().id;
    adopt(state, site, "http://r.com/", row(71, NOW_S));
    adopt(state, site, "http://r.com/b", row(72, NOW_S));
    site
}

fn commit(state: &impl State, visit: VisitCommit) -> Vec<crate::NewPage> {
    state.commit(&[Change::Visit(Box::new(visit))]).unwrap().new_pages
}
