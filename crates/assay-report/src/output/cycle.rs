//! The transactions of a counterexample as a small graph: who must be before whom, and why.

use std::f64::consts::PI;

use assay_isolation::{Example, ExampleLink, Relation};
use maud::{Markup, html};

/// Height of the picture; its width is `WIDTH`. px
const HEIGHT: f64 = 200.0;
const WIDTH: f64 = 320.0;
/// Of a transaction's circle.
const RADIUS: f64 = 16.0;
/// Larger graphs say less than their lines.
const STEPS_MAX: usize = 8;

/// Empty if there is nothing to see: no links, or too many transactions.
pub(super) fn cycle(example: &Example) -> Markup {
    let steps = example.steps.len();
    if example.links.is_empty() || !(2..=STEPS_MAX).contains(&steps) {
        return Markup::default();
    }
    let spots: Vec<(f64, f64)> = (0..steps).map(|step| spot(step, steps)).collect();
    let edges = example.links.iter().enumerate().map(|(number, link)| edge(link, &example.links[..number], &spots));
    html! {
        svg class="cycle" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width=(WIDTH) height=(HEIGHT) role="img"
            aria-label=(in_words(example)) {
            defs {
                marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" {
                    path d="M0 0 L8 4 L0 8 z" fill="currentColor" {}
                }
            }
            @for edge in edges { (edge) }
            @for (step, (x, y)) in spots.iter().enumerate() {
                circle cx=(px(*x)) cy=(px(*y)) r=(RADIUS) fill="none" stroke="currentColor" {}
                text x=(px(*x)) y=(px(y + 4.0)) text-anchor="middle" fill="currentColor" { "T" (step + 1) }
            }
        }
    }
}

/// Places on an ellipse; two are beside each other.
fn spot(step: usize, steps: usize) -> (f64, f64) {
    let angle = PI + 2.0 * PI * step as f64 / steps as f64;
    (WIDTH / 2.0 + (WIDTH / 2.0 - 60.0) * angle.cos(), HEIGHT / 2.0 + (HEIGHT / 2.0 - 32.0) * angle.sin())
}

/// A curve to the right of the straight line, so that two in opposite directions stand apart. `earlier`: links that are
/// drawn already; one between the same transactions bends further.
fn edge(link: &ExampleLink, earlier: &[ExampleLink], spots: &[(f64, f64)]) -> Markup {
    let (Some(from), Some(to)) = (spots.get(link.from), spots.get(link.to)) else { return Markup::default() };
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    if length == 0.0 {
        return Markup::default();
    }
    let again = earlier.iter().filter(|other| (other.from, other.to) == (link.from, link.to)).count();
    let bend = 34.0 * (1.0 + again as f64);
    let (middle, normal) = ((from.0 + dx / 2.0, from.1 + dy / 2.0), (-dy / length, dx / length));
    let control = (middle.0 + normal.0 * bend * 1.6, middle.1 + normal.1 * bend * 1.6);
    let (start, end) = (toward(*from, control), toward(*to, control));
    // Beside the curve, whose middle is at 0.8 of the bend.
    let beside = bend * 0.8 + 14.0;
    let label = (middle.0 + normal.0 * beside, middle.1 + normal.1 * beside + 4.0);
    let curve =
        format!("M{} {} Q{} {} {} {}", px(start.0), px(start.1), px(control.0), px(control.1), px(end.0), px(end.1));
    html! {
        path d=(curve) fill="none" stroke="currentColor" marker-end="url(#arrow)" {}
        text x=(px(label.0)) y=(px(label.1)) text-anchor="middle" fill="currentColor" { (name(link)) }
    }
}

/// The point where a line to `control` leaves the circle around `center`.
fn toward(center: (f64, f64), control: (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (control.0 - center.0, control.1 - center.1);
    let length = dx.hypot(dy);
    (center.0 + dx / length * (RADIUS + 2.0), center.1 + dy / length * (RADIUS + 2.0))
}

fn name(link: &ExampleLink) -> String {
    let relation = match link.relation {
        Relation::WriteWrite => "ww",
        Relation::WriteRead => "wr",
        Relation::ReadWrite => "rw",
        Relation::Session => "session",
        Relation::RealTime => "time",
    };
    match link.key {
        Some(key) => format!("{relation} {key}"),
        None => relation.to_owned(),
    }
}

fn in_words(example: &Example) -> String {
    let words = example.links.iter().map(|link| format!("T{} {} T{}", link.from + 1, name(link), link.to + 1));
    words.collect::<Vec<_>>().join(", ")
}

/// Tenths of a pixel are enough.
fn px(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_a_circle_for_each_transaction_and_an_arrow_for_each_link() {
        let step = |session| assay_isolation::ExampleStep {
            transaction: 0,
            session,
            begin: 0,
            end: None,
            outcome: "ok".to_owned(),
            operations: Vec::new(),
        };
        let link = |from, to, relation, key| ExampleLink { from, to, relation, key };
        let links = vec![link(0, 1, Relation::ReadWrite, Some(7)), link(1, 0, Relation::WriteWrite, Some(7))];
        let example = Example { steps: vec![step(1), step(2)], links };
        let drawn = cycle(&example).into_string();
        assert_eq!((drawn.matches("<circle").count(), drawn.matches("marker-end").count()), (2, 2));
        assert!(drawn.contains("aria-label=\"T1 rw 7 T2, T2 ww 7 T1\""), "{drawn}");
        assert!(!drawn.contains("NaN"), "{drawn}");
        assert_eq!(cycle(&Example { links: Vec::new(), ..example }).into_string(), "");
    }
}
