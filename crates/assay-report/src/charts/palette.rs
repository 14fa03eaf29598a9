//! Chart colors, for light and dark backgrounds.
//!
//! Series are Okabe and Ito's (2008), darkened or lightened for their background; heat runs along viridis, from few to
//! many.

use std::fmt::Write as _;

/// Red, green, blue.
pub(crate) type Color = [u8; 3];

/// The background of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// White, for print.
    #[default]
    Light,
    /// Nearly black, for screens.
    Dark,
}

/// The colors of one background.
pub(crate) struct Palette {
    pub(crate) paper: Color,
    pub(crate) ink: Color,
    pub(crate) soft: Color,
    pub(crate) grid: Color,
    pub(crate) warn: Color,
    pub(crate) bad: Color,
    pub(crate) good: Color,
    /// Behind every second stage.
    pub(crate) shade: Color,
    pub(crate) outage: Color,
    /// Behind the steady part.
    pub(crate) steady: Color,
    pub(crate) series: [Color; SERIES_MANY],
    heat: [Color; 6],
}

/// Series distinguished by color.
pub(crate) const SERIES_MANY: usize = 8;

const LIGHT: Palette = Palette {
    paper: [0xff, 0xff, 0xff],
    ink: [0x1a, 0x1c, 0x20],
    soft: [0x58, 0x5f, 0x6b],
    grid: [0xe4, 0xe7, 0xec],
    warn: [0x8a, 0x4b, 0x00],
    bad: [0xb3, 0x26, 0x1e],
    good: [0x00, 0x66, 0x4a],
    shade: [0xf6, 0xf6, 0xf7],
    outage: [0xf3, 0xdd, 0xdc],
    steady: [0xee, 0xf7, 0xf3],
    series: [
        [0x00, 0x72, 0xb2],
        [0xd5, 0x5e, 0x00],
        [0x00, 0x9e, 0x73],
        [0xb5, 0x57, 0x8f],
        [0xb0, 0x78, 0x00],
        [0x2f, 0x9f, 0xe0],
        [0x1a, 0x1c, 0x20],
        [0x7a, 0x6a, 0x00],
    ],
    heat: [
        [0xee, 0xf3, 0xe2],
        [0xa8, 0xdb, 0x8f],
        [0x35, 0xb7, 0x79],
        [0x26, 0x82, 0x8e],
        [0x3e, 0x49, 0x89],
        [0x44, 0x01, 0x54],
    ],
};
const DARK: Palette = Palette {
    paper: [0x14, 0x16, 0x1a],
    ink: [0xe8, 0xea, 0xee],
    soft: [0xa2, 0xa9, 0xb5],
    grid: [0x2a, 0x2e, 0x36],
    warn: [0xff, 0xc4, 0x6b],
    bad: [0xff, 0x8a, 0x80],
    good: [0x5f, 0xd6, 0xac],
    shade: [0x1c, 0x1f, 0x24],
    outage: [0x4a, 0x2c, 0x2e],
    steady: [0x17, 0x22, 0x20],
    series: [
        [0x56, 0xb4, 0xe9],
        [0xff, 0x9a, 0x4d],
        [0x2f, 0xcb, 0x9c],
        [0xe7, 0x9a, 0xc6],
        [0xf0, 0xe4, 0x42],
        [0x8f, 0xb2, 0xff],
        [0xff, 0xff, 0xff],
        [0xc9, 0xb4, 0x58],
    ],
    heat: [
        [0x2b, 0x1a, 0x3d],
        [0x44, 0x39, 0x83],
        [0x31, 0x68, 0x8e],
        [0x21, 0x91, 0x8c],
        [0x6f, 0xcf, 0x57],
        [0xfd, 0xe7, 0x25],
    ],
};

impl Palette {
    pub(crate) fn of(theme: Theme) -> &'static Palette {
        match theme {
            Theme::Light => &LIGHT,
            Theme::Dark => &DARK,
        }
    }

    /// A color of the heat map; `share`: 0 (few) … 1 (many).
    pub(crate) fn heat(&self, share: f64) -> Color {
        let at = share.clamp(0.0, 1.0) * (self.heat.len() - 1) as f64;
        let (one, other) = (self.heat[at.floor() as usize], self.heat[at.ceil() as usize]);
        let mixed = |i: usize| f64::from(one[i]) + (f64::from(other[i]) - f64::from(one[i])) * at.fract();
        std::array::from_fn(|i| mixed(i).round() as u8)
    }
}

/// `#0072b2`.
pub(crate) fn hex([red, green, blue]: Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The palette as CSS properties of the page's root: `--ink`, `--s0` …, `--h0` ….
pub(crate) fn css() -> String {
    format!(
        ":root {{{}}}\n@media (prefers-color-scheme: dark) {{ :root:not(.light) {{{}}} }}\n",
        properties(&LIGHT),
        properties(&DARK)
    )
}

fn properties(of: &Palette) -> String {
    let mut text = String::new();
    let mut put = |name: &str, color: Color| {
        write!(text, " --{name}: {};", hex(color)).expect("writing to memory does not fail");
    };
    let named = [("paper", of.paper), ("ink", of.ink), ("soft", of.soft), ("grid", of.grid), ("warn", of.warn)];
    let marks = [("bad", of.bad), ("good", of.good), ("stage", of.shade), ("outage", of.outage), ("steady", of.steady)];
    for (name, color) in named.into_iter().chain(marks) {
        put(name, color);
    }
    for (letter, colors) in [("s", &of.series[..]), ("h", &of.heat[..])] {
        colors.iter().enumerate().for_each(|(number, color)| put(&format!("{letter}{number}"), *color));
    }
    text + " "
}
