//! Pictures: a small landscape whose colours and shapes follow from prompt and seed, as a real PNG. Words
//! for colours in the prompt are heeded, so that a demo shows what was asked for.

use std::f64::consts::TAU;
use std::io::Cursor;

use crate::random::Random;

/// Longest side, so that one request cannot take all memory.
pub(crate) const LONGEST_SIDE: u32 = 2_048;

type Colour = [f64; 3];

const COLOUR_WORDS: &[(&str, Colour)] = &[
    ("red", [214.0, 60.0, 52.0]),
    ("orange", [238.0, 140.0, 48.0]),
    ("yellow", [246.0, 208.0, 72.0]),
    ("gold", [222.0, 176.0, 62.0]),
    ("green", [72.0, 158.0, 92.0]),
    ("blue", [58.0, 112.0, 206.0]),
    ("purple", [132.0, 82.0, 182.0]),
    ("pink", [236.0, 138.0, 172.0]),
    ("brown", [134.0, 92.0, 62.0]),
    ("black", [28.0, 28.0, 34.0]),
    ("white", [242.0, 242.0, 238.0]),
    ("grey", [140.0, 144.0, 150.0]),
    ("gray", [140.0, 144.0, 150.0]),
];

/// A picture that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PictureError {
    #[error("the image is no PNG that can be read: {0}")]
    Read(#[from] png::DecodingError),
    #[error("the image is larger than {LONGEST_SIDE} x {LONGEST_SIDE}")]
    TooLarge,
    #[error("the picture cannot be written: {0}")]
    Write(#[from] png::EncodingError),
}

/// Paints `prompt` as a PNG of this size.
pub(crate) fn paint(
    prompt: &str,
    seed: u64,
    width: u32,
    height: u32,
) -> Result<Vec<u8>, PictureError> {
    let mut random = Random::from_parts(seed, &["picture", prompt]);
    let scene = Scene::landscape(prompt, &mut random);
    write(width, height, |_, _, x, y| scene.colour_at(scene.sky(y), x, y))
}

/// Paints `prompt` over a PNG, which stays visible; the size stays.
pub(crate) fn paint_over(
    original: &[u8],
    prompt: &str,
    seed: u64,
) -> Result<Vec<u8>, PictureError> {
    let canvas = Canvas::read(original)?;
    let mut random = Random::from_parts(seed, &["edit", prompt]);
    let scene = Scene::overlay(prompt, &mut random);
    write(canvas.width, canvas.height, |column, row, x, y| {
        scene.colour_at(canvas.colour(column, row), x, y)
    })
}

/// Shapes from back to front over a sky.
struct Scene {
    top: Colour,
    bottom: Colour,
    shapes: Vec<Shape>,
}

struct Shape {
    outline: Outline,
    colour: Colour,
    /// From 0, not seen, to 1.
    cover: f64,
}

enum Outline {
    Disc { x: f64, y: f64, radius: f64 },
    Hill { level: f64, height: f64, waves: f64, phase: f64 },
}

impl Scene {
    fn landscape(prompt: &str, random: &mut Random) -> Self {
        let palette = palette(prompt, random);
        let colour =
            |at: usize| palette.get(at % palette.len().max(1)).copied().unwrap_or([128.0; 3]);
        let disc = |random: &mut Random, colour, size| Shape {
            outline: Outline::Disc {
                x: 0.15 + 0.7 * random.fraction(),
                y: 0.12 + 0.3 * random.fraction(),
                radius: size * (0.6 + random.fraction()),
            },
            colour,
            cover: 0.92,
        };
        let mut shapes = vec![disc(random, lighter(colour(1), 0.5), 0.11)];
        shapes.extend((0..3).map(|_| disc(random, lighter(colour(2), 0.3), 0.03)));
        shapes.extend((0..3_u8).map(|layer| Shape {
            outline: Outline::Hill {
                level: 0.5 + 0.16 * f64::from(layer) + 0.05 * random.fraction(),
                height: 0.05 + 0.05 * random.fraction(),
                waves: 1.0 + 3.0 * random.fraction(),
                phase: random.fraction() * TAU,
            },
            colour: darker(colour(usize::from(layer)), 0.25 + 0.2 * f64::from(layer)),
            cover: 1.0,
        }));
        Self { top: colour(0), bottom: lighter(colour(1), 0.6), shapes }
    }

    fn overlay(prompt: &str, random: &mut Random) -> Self {
        let palette = palette(prompt, random);
        let shapes = palette
            .iter()
            .cycle()
            .take(5)
            .map(|colour| Shape {
                outline: Outline::Disc {
                    x: random.fraction(),
                    y: random.fraction(),
                    radius: 0.08 + 0.12 * random.fraction(),
                },
                colour: *colour,
                cover: 0.6,
            })
            .collect();
        Self { top: [0.0; 3], bottom: [0.0; 3], shapes }
    }

    fn sky(&self, y: f64) -> Colour {
        mix(self.top, self.bottom, y)
    }

    /// `x` and `y` go from 0 to 1.
    fn colour_at(&self, behind: Colour, x: f64, y: f64) -> Colour {
        self.shapes.iter().fold(behind, |colour, shape| {
            let covered = match shape.outline {
                Outline::Disc { x: at_x, y: at_y, radius } => (x - at_x).hypot(y - at_y) < radius,
                Outline::Hill { level, height, waves, phase } => {
                    y > level + height * (x * waves * TAU + phase).sin()
                }
            };
            if covered { mix(colour, shape.colour, shape.cover) } else { colour }
        })
    }
}

/// Three colours: those the prompt names, then some of the seed.
fn palette(prompt: &str, random: &mut Random) -> Vec<Colour> {
    let lower = prompt.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let mut found: Vec<Colour> = (words.iter())
        .filter_map(|word| COLOUR_WORDS.iter().find(|(name, _)| name == word))
        .map(|(_, colour)| *colour)
        .take(3)
        .collect();
    while found.len() < 3 {
        let hue = random.fraction();
        let channel = |shift: f64| 70.0 + 150.0 * (0.5 + 0.5 * ((hue + shift) * TAU).cos());
        found.push([channel(0.0), channel(1.0 / 3.0), channel(2.0 / 3.0)]);
    }
    found
}

fn mix(one: Colour, other: Colour, share: f64) -> Colour {
    let mut mixed = one;
    for (channel, to) in mixed.iter_mut().zip(other) {
        *channel += (to - *channel) * share;
    }
    mixed
}

fn lighter(colour: Colour, share: f64) -> Colour {
    mix(colour, [255.0; 3], share)
}

fn darker(colour: Colour, share: f64) -> Colour {
    mix(colour, [16.0, 20.0, 32.0], share)
}

fn write(
    width: u32,
    height: u32,
    colour: impl Fn(u32, u32, f64, f64) -> Colour,
) -> Result<Vec<u8>, PictureError> {
    if width.max(height) > LONGEST_SIDE {
        return Err(PictureError::TooLarge);
    }
    let mut pixels = Vec::new();
    for row in 0..height {
        let y = f64::from(row) / f64::from(height);
        for column in 0..width {
            let x = f64::from(column) / f64::from(width);
            pixels.extend(colour(column, row, x, y).map(to_byte));
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(file)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is clamped to what a byte holds"
)]
fn to_byte(channel: f64) -> u8 {
    channel.clamp(0.0, 255.0) as u8
}

/// A picture that was read.
struct Canvas {
    width: u32,
    height: u32,
    channels: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    fn read(file: &[u8]) -> Result<Self, PictureError> {
        let mut decoder = png::Decoder::new(Cursor::new(file));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info()?;
        let (width, height) = (reader.info().width, reader.info().height);
        if width.max(height) > LONGEST_SIDE {
            return Err(PictureError::TooLarge);
        }
        let size = reader.output_buffer_size().ok_or(PictureError::TooLarge)?;
        let mut pixels = vec![0; size];
        let frame = reader.next_frame(&mut pixels)?;
        let channels = frame.color_type.samples();
        Ok(Self { width, height, channels, pixels })
    }

    fn colour(&self, column: u32, row: u32) -> Colour {
        let at = (row as usize * self.width as usize + column as usize) * self.channels;
        let channel = |offset: usize| self.pixels.get(at + offset).copied().map_or(0.0, f64::from);
        if self.channels < 3 { [channel(0); 3] } else { [channel(0), channel(1), channel(2)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_prompts_and_seeds_paint_equal_pictures() {
        let one = paint("a red boat", 1, 64, 48).unwrap();
        assert_eq!(one, paint("a red boat", 1, 64, 48).unwrap());
        assert_ne!(one, paint("a red boat", 2, 64, 48).unwrap());
        assert_ne!(one, paint("a blue boat", 1, 64, 48).unwrap());
    }

    #[test]
    fn a_picture_is_a_png_of_its_size_with_many_colours() {
        let canvas = Canvas::read(&paint("hills", 0, 64, 48).unwrap()).unwrap();
        assert_eq!((canvas.width, canvas.height), (64, 48));
        let colours: std::collections::HashSet<_> = canvas.pixels.chunks(3).collect();
        assert!(colours.len() > 20, "{} colours", colours.len());
    }

    #[test]
    fn a_colour_word_shows() {
        let canvas = Canvas::read(&paint("a red sky", 3, 32, 32).unwrap()).unwrap();
        let [red, green, blue] = canvas.colour(16, 0);
        assert!(red > green * 1.5 && red > blue * 1.5, "{red} {green} {blue}");
    }

    #[test]
    fn an_edit_keeps_the_size_and_most_of_the_picture() {
        let original = paint("hills", 0, 40, 30).unwrap();
        let edited = Canvas::read(&paint_over(&original, "add a moon", 0).unwrap()).unwrap();
        let before = Canvas::read(&original).unwrap();
        assert_eq!((edited.width, edited.height), (40, 30));
        let same = edited.pixels.iter().zip(&before.pixels).filter(|(a, b)| a == b).count();
        assert!(same > 0 && same < edited.pixels.len());
        assert!(matches!(paint_over(b"no picture", "x", 0), Err(PictureError::Read(_))));
    }
}
