use maud::{Markup, html};

/// One horizontal bar with its name and value.
pub(crate) struct Column<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: u64,
    /// The value as people read it.
    pub(crate) shown: String,
    /// The class that gives it its colour.
    pub(crate) class: &'static str,
}

/// Horizontal bars on one scale, as a table whose numbers can be read and copied.
pub(crate) fn columns(title: &str, columns: &[Column<'_>]) -> Markup {
    let most = columns.iter().map(|c| c.value).max().unwrap_or(0).max(1);
    html! {
        figure.chart {
            figcaption { (title) }
            table.bars {
                tbody { @for column in columns {
                    tr {
                        th scope="row" { (column.name) }
                        td {
                            svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                                rect class=(column.class) width=(format!("{:.2}", 100.0 * column.value as f64 / most as f64)) height="10" rx="1" {}
                            }
                        }
                        td.n { (column.shown) }
                    }
                } }
            }
        }
    }
}
