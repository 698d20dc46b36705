//! `nenrin lab storage`: the experiment of paper 001 on the shipped import, compact and export.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use nenrin_archive::{Archive, Span};
use nenrin_crawl::Event;
use nenrin_fetch::Fetcher;
use nenrin_lab::{
    LabError,
    experiment::StorageArgs,
    storage::{self, ArchiveSubject, Collector, Results, StorageOptions},
    summary::Summary,
};
use nenrin_state::SiteId;

use super::{
    Context,
    experiments::{print_summary, written},
    serve::runtime,
};
use crate::{
    config::Config,
    driver::{Driver, DriverHandle, Notice, Until},
    exit::{Exit, usage},
    table::{print_json, say},
};

/// `nenrin lab storage`.
pub(super) fn run(context: &Context, args: &StorageArgs) -> anyhow::Result<Exit> {
    let temporary = tempfile::tempdir()?;
    let work = args.work.clone().unwrap_or_else(|| temporary.path().to_owned());
    let folder = work.join("archive");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let options = StorageOptions {
        corpus: args.corpus.clone(),
        sites: args.sites.clone(),
        genres: args.genres.clone(),
        work,
        overlap: args.overlap,
        out: args.out.clone(),
    };
    let collector = DriverCollector::new(&context.config);
    let mut subject = ArchiveSubject::new(folder, &collector);
    let outcome = storage::run(&options, &mut subject, &mut |step| tracing::info!("{step}"));
    let results = outcome.map_err(usage)?.results;
    for left_out in &results.left_out {
        tracing::warn!("left out: {left_out}");
    }
    if context.json {
        print_json(&results)?;
    } else {
        tell(&results, args.out.as_deref())?;
    }
    Ok(if results.ours.is_identical { Exit::Done } else { Exit::Damaged })
}

fn tell(results: &Results, out: Option<&Path>) -> anyhow::Result<()> {
    let (by_site, by_way) = Summary::storage(results);
    print_summary(by_site)?;
    say("")?;
    print_summary(by_way)?;
    for left_out in &results.left_out {
        say(format!("left out: {left_out}"))?;
    }
    let ours = &results.ours;
    say(match ours.is_identical {
        true => "every visit came back byte for byte".to_owned(),
        false => format!("NOT every visit came back as it was: {:?}", ours.differences),
    })?;
    written(out)?;
    Ok(())
}

/// Collects as `nenrin collect` does, without pauses between requests.
struct DriverCollector {
    config: Config,
    driver: Mutex<Option<DriverHandle>>,
}

impl DriverCollector {
    fn new(config: &Config) -> Self {
        let mut config = config.clone();
        config.politeness.delay = Span::secs(0);
        config.politeness.response_factor = 0.0;
        Self { config, driver: Mutex::new(None) }
    }

    fn run(
        &self,
        archive: &Archive,
        sites: &BTreeSet<SiteId>,
        visited: &(dyn Fn() + Sync),
    ) -> anyhow::Result<()> {
        let runtime = runtime()?;
        let mut options = self.config.crawl_options();
        options.due_pages = false;
        let fetcher = Fetcher::new(self.config.fetch_options()?)?;
        runtime.block_on(async {
            let driver = Driver::new(archive, fetcher, options, self.config.fetch.memory.0)?;
            let handle = driver.handle();
            sites.iter().for_each(|&site| handle.tell(Event::CollectNow(site)));
            *self.driver.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
            let count = |notice: Notice<'_>, _: &_| {
                if matches!(notice, Notice::Visited { .. }) {
                    visited();
                }
            };
            driver.run(Until::RoundsFinished(sites.clone()), std::future::pending(), count).await
        })?;
        runtime.shutdown_timeout(Duration::from_secs(1));
        Ok(())
    }
}

impl Collector for DriverCollector {
    fn queue_max(&self) -> usize {
        self.config.crawl.parallel + self.config.crawl_options().unstored_max
    }

    fn collect(
        &self,
        archive: &Archive,
        sites: &BTreeSet<SiteId>,
        visited: &(dyn Fn() + Sync),
    ) -> Result<(), LabError> {
        self.run(archive, sites, visited)
            .map_err(|error| LabError::Input { what: format!("{error:#}") })
    }

    fn store_waiting(&self) -> usize {
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        driver.as_ref().map_or(0, DriverHandle::store_waiting)
    }
}
