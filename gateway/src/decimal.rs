//! Numbers written into heads. Every request has some, and formatting would cost more than they do.

/// A short text that is put together from its end.
pub(crate) struct Backwards {
    space: [u8; Self::ROOM],
    begins: usize,
}

impl Backwards {
    /// The most bytes it holds; what would go beyond is lost.
    const ROOM: usize = 32;

    pub(crate) fn new() -> Self {
        Self { space: [0; Self::ROOM], begins: Self::ROOM }
    }

    /// Puts `byte` in front.
    pub(crate) fn byte(&mut self, byte: u8) {
        self.begins = self.begins.saturating_sub(1);
        if let Some(place) = self.space.get_mut(self.begins) {
            *place = byte;
        }
    }

    /// Puts `number` in front, in decimal digits.
    pub(crate) fn number(&mut self, mut number: u64) {
        loop {
            self.byte(b'0' + (number % 10) as u8);
            number /= 10;
            if number == 0 {
                return;
            }
        }
    }

    /// Puts `number` in front, in four hexadecimal digits.
    pub(crate) fn four_digits(&mut self, number: u16) {
        for place in 0..4 {
            let digit = usize::from(number >> (4 * place) & 0xf);
            self.byte(b"0123456789abcdef".get(digit).copied().unwrap_or_default());
        }
    }

    /// What was put together.
    pub(crate) fn text(&self) -> &[u8] {
        self.space.get(self.begins..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_formatting_writes_them() {
        for number in [0, 9, 10, 65_535, 1_764_445_000_123_456_789, u64::MAX] {
            let mut text = Backwards::new();
            text.four_digits(0x0a3f);
            text.byte(b'-');
            text.number(number);
            assert_eq!(text.text(), format!("{number}-0a3f").as_bytes());
        }
    }

    #[test]
    fn what_has_no_room_is_lost() {
        let mut text = Backwards::new();
        (0..100).for_each(|_| text.byte(b'x'));
        assert_eq!(text.text().len(), Backwards::ROOM);
    }
}
