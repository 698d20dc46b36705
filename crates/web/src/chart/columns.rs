use maud::{Markup, html};

/// One horizontal bar with its name and value.
pub(crate) struct Column<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: u64,
    /// The value as text.
    pub(crate) shown: String,
    /// The class for its colour.
    pub(crate) class: &'static str,
    /// A part of it, with its own colour.
    pub(crate) part: Option<(u64, &'static str)>,
}

/// What a colour means.
pub(crate) struct Key<'a> {
    pub(crate) name: &'a str,
    pub(crate) class: &'static str,
}

/// Horizontal bars on one scale, as a table whose numbers can be read and copied.
pub(crate) fn columns(title: &str, keys: &[Key<'_>], columns: &[Column<'_>]) -> Markup {
    let width = |value: u64, most: u64| format!("{:.2}", 100.0 * value as f64 / most as f64);
    let most = columns.iter().map(|c| c.value).max().unwrap_or(0).max(1);
    html! {
        figure.chart {
            figcaption {
                (title)
                @if !keys.is_empty() {
                    span.keys { @for key in keys {
                        span.key { svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true" { rect class=(key.class) width="10" height="10" rx="2" {} } (key.name) }
                    } }
                }
            }
            table.bars {
                tbody { @for column in columns {
                    tr {
                        th scope="row" { (column.name) }
                        // No bar for zero: on a phone it would take a line of its own.
                        td { @if column.value > 0 {
                            svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                                rect class=(column.class) width=(width(column.value, most)) height="10" rx="1" {}
                                @if let Some((part, class)) = column.part {
                                    rect class=(class) width=(width(part.min(column.value), most)) height="10" rx="1" {}
                                }
                            }
                        } }
                        td.n { (column.shown) }
                    }
                } }
            }
        }
    }
}
