//! The constants of the model, with their reasons.

/// The prior variances of effects, and when to stop.
///
/// Variances are on the probit scale, where 1 is the noise of a single page. The initial values
/// were found on twelve sites by others. Everything added or changed since was chosen on other
/// pages and sites than those in the report (`docs/structure.md`).
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoOptions {
    /// The mean of a new server's bias. With it, the chance before anything is known is Φ(−1 / √(1
    /// + Σσ²)), about 40%.
    pub bias: f64,
    /// A server's own level of change.
    pub bias_variance: f64,
    /// A page's own level, as stored; how much it is trusted is learnt for each server.
    pub page_variance: f64,
    /// A directory's lasting level.
    pub directory_variance: f64,
    /// A family's lasting level.
    pub family_variance: f64,
    /// Effect of depth, of links, of being a top or an index, on one server.
    pub feature_variance: f64,
    /// The same on all servers.
    pub shared_feature_variance: f64,
    /// Effect of a change of the page above, on one server and on all: the paper's idea, as
    /// something to be learnt.
    pub guide_variance: f64,
    /// Effect of shared fragments that were kept or lost, on one server and on all.
    pub fragment_variance: f64,
    /// Effect of a page's last four outcomes, on all servers.
    pub history_variance: f64,
    /// Effect of Last-Modified, on all servers.
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
    /// Weight of the prior variances of shifts against those seen on the server, in rounds.
    pub spread_prior_rounds: f64,
    /// Weight of the prior variances against the shifts seen on all servers, from which each server
    /// starts.
    pub shared_spread_prior: f64,
    /// Weight of each guess about the variance between pages before anything was seen, in rounds of
    /// servers.
    pub page_spread_prior: f64,
    /// How wrong the model's scores may be in one situation, before outcomes have shown it.
    pub calibration_variance: f64,
    /// Variance that stored beliefs gain from one round to the next.
    pub drift: f64,
    /// The round ends when the best chance falls below this.
    pub stop_below: f64,
    /// Visits in all; the round ends when they are used up.
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
            fragment_variance: 0.1,
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
