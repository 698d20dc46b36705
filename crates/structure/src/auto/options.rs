//! The constants of the model, with their reasons.

/// The prior variances of effects, and when to stop.
///
/// Variances are on the probit scale, where 1 is the noise of a single page. They start from those
/// found on twelve sites by others; what was added or moved was chosen on pages and sites other
/// than those that the report is about (`docs/structure.md`).
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoOptions {
    /// The mean of a new server's bias: Φ(−1 / √(1 + Σσ²)), some 40%, before anything is known.
    pub bias: f64,
    /// A server's own level of change.
    pub bias_variance: f64,
    /// A page's own level, as it is kept; how far it is believed is learnt for each server.
    pub page_variance: f64,
    /// A directory's level over the rounds.
    pub directory_variance: f64,
    /// A family's level over the rounds.
    pub family_variance: f64,
    /// What depth, links, being a top or an index mean, on one server.
    pub feature_variance: f64,
    /// What they mean everywhere.
    pub shared_feature_variance: f64,
    /// What it means, on one server and everywhere, that the page above changed or did not: the
    /// paper's idea, as something to be learnt.
    pub guide_variance: f64,
    /// What it means, on one server and everywhere, that blocks which a page shares were kept or lost.
    pub block_variance: f64,
    /// What the last four outcomes of a page mean, everywhere.
    pub history_variance: f64,
    /// What Last-Modified means, everywhere.
    pub modified_variance: f64,
    /// This round's shift of the whole server: changes are mostly all or nothing.
    pub round_server_variance: f64,
    /// This round's shift of a directory.
    pub round_directory_variance: f64,
    /// This round's shift of a family.
    pub round_family_variance: f64,
    /// This round's shift of the pages that share a template.
    pub round_template_variance: f64,
    /// This round's shift of the pages of one depth.
    pub round_depth_variance: f64,
    /// This round's shift of pages with the same last outcomes.
    pub round_history_variance: f64,
    /// How many rounds the prior variances of shifts weigh against those seen on the server.
    pub spread_prior_rounds: f64,
    /// How many shifts the prior variances weigh against those seen on all servers, from which each
    /// server then begins.
    pub shared_spread_prior: f64,
    /// How many rounds of servers speak for each guess of how far pages stand apart, before
    /// anything was seen.
    pub page_spread_prior: f64,
    /// How far the model's scores may be off in any one situation, before outcomes have shown it.
    pub calibration_variance: f64,
    /// What kept beliefs lose in certainty from one round to the next.
    pub drift: f64,
    /// The round is over when the best chance falls below this.
    pub stop_below: f64,
    /// Visits in all; the round is over when they are spent.
    pub budget: Option<usize>,
    /// Visits per server.
    pub server_budget: Option<usize>,
}

impl Default for AutoOptions {
    fn default() -> Self {
        Self {
            bias: -1.0,
            bias_variance: 1.0,
            page_variance: 1.0,
            directory_variance: 0.1,
            family_variance: 0.5,
            feature_variance: 0.1,
            shared_feature_variance: 0.1,
            guide_variance: 0.5,
            block_variance: 0.1,
            history_variance: 0.5,
            modified_variance: 0.25,
            round_server_variance: 10.0,
            round_directory_variance: 1.0,
            round_family_variance: 3.0,
            round_template_variance: 1.0,
            round_depth_variance: 0.25,
            round_history_variance: 0.5,
            spread_prior_rounds: 2.0,
            shared_spread_prior: 5.0,
            page_spread_prior: 1.0,
            calibration_variance: 0.1,
            drift: 0.02,
            stop_below: 0.06,
            budget: None,
            server_budget: None,
        }
    }
}
