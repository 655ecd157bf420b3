//! A scale: two ends, steps between them that people can read, and the position of a value.

use pillion_expr::{Extreme, Range, Ratio};
use pillion_quantity::Resource;

/// The most steps a scale has.
const MOST_STEPS: i128 = 6;

pub(crate) struct Scale {
    pub(crate) low: Ratio,
    pub(crate) high: Ratio,
    step: Ratio,
}

/// The finite ends of a range; a range over a finite domain has both.
pub(crate) fn ends(range: Range) -> Option<(Ratio, Ratio)> {
    match (range.low, range.high) {
        (Extreme::Finite { value: low, .. }, Extreme::Finite { value: high, .. }) => Some((low, high)),
        _ => None,
    }
}

impl Scale {
    /// With these very ends.
    pub(crate) fn exact(low: Ratio, high: Ratio, resource: Resource) -> Option<Self> {
        Some(Self { low, high, step: readable_step(high.checked_sub(low)?, resource)? })
    }

    /// With ends moved outwards to whole steps. A single value gets a scale around it.
    pub(crate) fn rounded(low: Ratio, high: Ratio, resource: Resource) -> Option<Self> {
        let high = if low == high { low.checked_add(Ratio::ONE)? } else { high };
        let step = readable_step(high.checked_sub(low)?, resource)?;
        let low = step.checked_mul(Ratio::whole(low.checked_div(step)?.floor()))?;
        let high = step.checked_mul(Ratio::whole(high.checked_div(step)?.ceil()))?;
        Some(Self { low, high, step })
    }

    /// The whole steps from end to end.
    pub(crate) fn ticks(&self) -> Vec<Ratio> {
        let nth = |number: i128| self.step.checked_mul(Ratio::whole(number));
        let first = self.low.checked_div(self.step).map_or(0, Ratio::ceil);
        (first..).map_while(nth).take_while(|tick| *tick <= self.high).collect()
    }

    /// The position of a value among `places` places, the first for the low end and the last for the high.
    pub(crate) fn place(&self, value: Ratio, places: usize) -> Option<usize> {
        let last = i128::try_from(places.checked_sub(1)?).ok()?;
        let share = value.checked_sub(self.low)?.checked_div(self.high.checked_sub(self.low)?)?;
        let twice = share.checked_mul(Ratio::whole(2 * last))?.checked_add(Ratio::ONE)?;
        usize::try_from(twice.floor().div_euclid(2).clamp(0, last)).ok()
    }

    /// The value at one of `places` places.
    pub(crate) fn value(&self, place: usize, places: usize) -> Option<Ratio> {
        let share = Ratio::new(i128::try_from(place).ok()?, i128::try_from(places.checked_sub(1)?).ok()?)?;
        self.low.checked_add(self.high.checked_sub(self.low)?.checked_mul(share)?)
    }
}

/// The smallest readable step of which at most [`MOST_STEPS`] fit: 1, 2 or 5 times a power of ten for
/// cores, a power of two for bytes.
fn readable_step(length: Ratio, resource: Resource) -> Option<Ratio> {
    let least = length.checked_div(Ratio::whole(MOST_STEPS))?;
    match resource {
        Resource::Memory => {
            let powers = std::iter::successors(Some(1_i128), |power| power.checked_mul(2));
            powers.map(Ratio::whole).find(|step| *step >= least)
        }
        Resource::Cpu => {
            let powers = std::iter::successors(Ratio::new(1, 1000), |power| power.checked_mul(Ratio::whole(10)));
            let mut steps = powers.flat_map(|power| [1, 2, 5].map(|factor| power.checked_mul(Ratio::whole(factor))));
            steps.find_map(|step| step.filter(|step| *step >= least))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(numerator: i128, denominator: i128) -> Ratio {
        Ratio::new(numerator, denominator).unwrap()
    }

    fn texts(scale: &Scale) -> Vec<String> {
        scale.ticks().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn steps_are_what_people_read_and_reach_past_the_ends() {
        let scale = Scale::rounded(Ratio::ZERO, ratio(48, 10), Resource::Cpu).unwrap();
        assert_eq!(texts(&scale), ["0", "1", "2", "3", "4", "5"]);
        let scale = Scale::rounded(ratio(-13, 10), ratio(3, 10), Resource::Cpu).unwrap();
        assert_eq!(texts(&scale), ["-1.5", "-1", "-0.5", "0", "0.5"]);
        let scale = Scale::rounded(Ratio::ZERO, Ratio::whole(3 << 30), Resource::Memory).unwrap();
        assert_eq!(
            texts(&scale),
            ["0", "536870912", "1073741824", "1610612736", "2147483648", "2684354560", "3221225472"]
        );
    }

    #[test]
    fn exact_ends_stay_and_only_steps_between_them_are_ticks() {
        let scale = Scale::exact(ratio(1, 2), ratio(49, 4), Resource::Cpu).unwrap();
        assert_eq!((scale.low, scale.high), (ratio(1, 2), ratio(49, 4)));
        assert_eq!(texts(&scale), ["2", "4", "6", "8", "10", "12"]);
    }

    #[test]
    fn a_constant_gets_a_scale_too() {
        let scale = Scale::rounded(Ratio::ZERO, Ratio::ZERO, Resource::Cpu).unwrap();
        assert_eq!((scale.low, scale.high), (Ratio::ZERO, Ratio::ONE));
    }

    #[test]
    fn places_and_values_are_each_others_inverse_and_outside_is_the_edge() {
        let scale = Scale::exact(Ratio::ZERO, Ratio::whole(12), Resource::Cpu).unwrap();
        for place in 0..147 {
            assert_eq!(scale.place(scale.value(place, 147).unwrap(), 147), Some(place));
        }
        assert_eq!(scale.place(Ratio::whole(-5), 147), Some(0));
        assert_eq!(scale.place(Ratio::whole(50), 147), Some(146));
    }
}
