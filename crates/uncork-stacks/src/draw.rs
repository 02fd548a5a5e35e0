//! Flame graphs, drawn by inferno.

use inferno::flamegraph::color::{BackgroundColor, MultiPalette};
use inferno::flamegraph::{Options, Palette, from_lines};
use memchr::memmem;
use serde::Deserialize;

use crate::branches;
use crate::error::DrawError;
use crate::tree::Tree;

/// What to draw, and how.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drawing {
    /// The title.
    pub title: String,
    /// The subtitle below it; empty for none.
    pub subtitle: String,
    /// The unit of values, such as `samples`.
    pub unit: String,
    /// Frames below this share of the total count for their caller.
    pub least: f64,
    /// Whether frames are coloured by their change.
    pub difference: bool,
    /// Width in pixels; `None` for the width of the window.
    pub width: Option<usize>,
    /// Whether the drawing contains a script for search and zoom.
    pub alone: bool,
}

/// Draw a call tree as SVG. In a difference, values before are scaled to the same total, so that
/// colours show changes of shares.
///
/// # Errors
///
/// If there is nothing to draw.
pub fn draw(tree: &Tree<'_>, drawing: &Drawing) -> Result<Vec<u8>, DrawError> {
    let [now, before] = tree.total();
    if now <= 0 {
        return Err(DrawError::Empty);
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "a scale needs no more than a float has"
    )]
    let scale = drawing.difference.then(|| {
        if before > 0 {
            now as f64 / before as f64
        } else {
            1.0
        }
    });
    let mut lines = branches::lines(tree, drawing.least, scale);
    // The lines are in the order of the tree. inferno requires byte order instead, which puts "a b"
    // between "a" and "a;c", unless it draws a chart over time: those lines it takes as they come,
    // from the last to the first.
    lines.reverse();
    let mut options = Options::default();
    options.title.clone_from(&drawing.title);
    options.subtitle = (!drawing.subtitle.is_empty()).then(|| drawing.subtitle.clone());
    options.count_name.clone_from(&drawing.unit);
    options.colors = Palette::Multi(MultiPalette::Perl);
    options.bgcolors = Some(BackgroundColor::Flat((255, 255, 255).into()));
    options.deterministic = true;
    options.min_width = 0.0;
    options.image_width = drawing.width;
    options.no_javascript = !drawing.alone;
    options.flame_chart = true;
    let mut svg = Vec::new();
    from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
        .map_err(|error| DrawError::Refused(error.to_string()))?;
    Ok(if drawing.alone {
        svg
    } else {
        without_script(&svg)
    })
}

/// Return the frames alone, for embedding in a page: without inferno's style, which would apply to
/// the whole page, its buttons and its script. IDs are removed, because a page may contain several
/// drawings.
fn without_script(svg: &[u8]) -> Vec<u8> {
    let find = |what: &str| memmem::find(svg, what.as_bytes());
    let (Some(head), Some(frames)) = (find("<svg "), find("<svg id=\"frames\"")) else {
        return svg.to_vec();
    };
    let Some(end) = memmem::find(&svg[head..], b">") else {
        return svg.to_vec();
    };
    let head =
        String::from_utf8_lossy(&svg[head..=head + end]).replace(" onload=\"init(evt)\"", "");
    let frames = &svg[frames + "<svg id=\"frames\"".len()..];
    [head.as_bytes(), b"<svg class=\"frames\"", frames].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(difference: bool, alone: bool) -> Drawing {
        Drawing {
            title: "A <title>".to_owned(),
            subtitle: String::new(),
            unit: "samples".to_owned(),
            least: 0.0,
            difference,
            width: Some(1200),
            alone,
        }
    }

    fn text(svg: Vec<u8>) -> String {
        String::from_utf8(svg).unwrap()
    }

    #[test]
    fn frames_are_drawn_with_their_share() {
        let tree = Tree::new([("main;work<T>", 3, 0), ("main;read;ksys_read_[k]", 1, 0)]);
        let svg = text(draw(&tree, &drawing(false, true)).unwrap());
        assert!(
            svg.contains("<title>work&lt;T&gt; (3 samples, 75.00%)</title>"),
            "{svg}"
        );
        assert!(svg.contains("A &lt;title&gt;"));
        assert!(svg.contains("<title>ksys_read (1 samples, 25.00%)</title>"));
        assert!(svg.contains("<script"));
        let still = text(draw(&tree, &drawing(false, false)).unwrap());
        assert!(!still.contains("<script") && !still.contains("<style") && !still.contains(" id="));
        assert!(
            !still.contains("onload")
                && still.starts_with("<svg ")
                && still.contains(">work&lt;T&gt;<")
        );
    }

    #[test]
    fn a_difference_tells_what_changed() {
        let tree = Tree::new([
            ("main;grown", 300, 100),
            ("main;shrunk", 100, 300),
            ("main;gone", 0, 400),
        ]);
        let svg = text(draw(&tree, &drawing(true, true)).unwrap());
        assert!(
            svg.contains("<title>grown (300 samples, 75.00%; +62.50%)"),
            "{svg}"
        );
    }

    #[test]
    fn a_frame_is_drawn_once_whatever_names_stand_beside_it() {
        let tree = Tree::new([
            ("a", 1, 0),
            ("a b;c", 1, 0),
            ("a;c", 1, 0),
            ("a, b;c", 1, 0),
        ]);
        let svg = text(draw(&tree, &drawing(false, false)).unwrap());
        assert_eq!(
            svg.matches("<title>a (2 samples, 50.00%)</title>").count(),
            1,
            "{svg}"
        );
    }

    #[test]
    fn nothing_is_no_drawing() {
        let tree = Tree::new([("gone", 0, 4)]);
        assert!(matches!(
            draw(&tree, &drawing(true, true)),
            Err(DrawError::Empty)
        ));
    }
}
