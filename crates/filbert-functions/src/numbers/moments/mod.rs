//! Moments of floating-point numbers: counts, sums, and sums of products of deviations.
//!
//! They are computed as in PostgreSQL 15 (`float8_accum`, `float8_regr_accum` and their `combine`
//! functions, after Youngs and Cramer). Infinities and NaN therefore give NaN in the same cases,
//! and sums out of range are errors. Variances are those of pairs with 0 as the other number.

mod accumulators;

use datafusion::common::Result;

pub(super) use accumulators::{Groups, Sliding, Whole, state_fields};

use super::one_nan;
use crate::error::{carried, data_error};

/// The moments of pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    count: f64,
    sum_x: f64,
    sum_y: f64,
    /// The sums of products of deviations.
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Moments {
    /// Adds a pair.
    ///
    /// # Errors
    /// A sum is out of range.
    pub(super) fn add(&mut self, x: f64, y: f64) -> Result<()> {
        let old = *self;
        self.count += 1.0;
        self.sum_x += x;
        self.sum_y += y;
        if old.count == 0.0 {
            if !x.is_finite() {
                (self.xx, self.xy) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.yy, self.xy) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let (of_x, of_y) = (x * self.count - self.sum_x, y * self.count - self.sum_y);
        let scale = 1.0 / (self.count * old.count);
        self.xx += of_x * of_x * scale;
        self.yy += of_y * of_y * scale;
        self.xy += of_x * of_y * scale;
        let was_finite_x = !old.sum_x.is_infinite() && !x.is_infinite();
        let was_finite_y = !old.sum_y.is_infinite() && !y.is_infinite();
        self.check(was_finite_x, was_finite_y)
    }

    /// Merges other moments.
    ///
    /// # Errors
    /// Like [`Moments::add`].
    pub(super) fn merge(&mut self, other: &Moments) -> Result<()> {
        if other.count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            *self = *other;
            return Ok(());
        }
        let old = *self;
        self.count += other.count;
        self.sum_x += other.sum_x;
        self.sum_y += other.sum_y;
        let of_x = old.sum_x / old.count - other.sum_x / other.count;
        let of_y = old.sum_y / old.count - other.sum_y / other.count;
        let scale = old.count * other.count / self.count;
        self.xx = old.xx + other.xx + scale * of_x * of_x;
        self.yy = old.yy + other.yy + scale * of_y * of_y;
        self.xy = old.xy + other.xy + scale * of_x * of_y;
        let was_finite_x = !old.sum_x.is_infinite() && !other.sum_x.is_infinite();
        let was_finite_y = !old.sum_y.is_infinite() && !other.sum_y.is_infinite();
        self.check(was_finite_x, was_finite_y)
    }

    /// An infinity that comes from infinite inputs becomes NaN in the sums of products; any other
    /// infinity is an overflow.
    fn check(&mut self, was_finite_x: bool, was_finite_y: bool) -> Result<()> {
        let is_beyond_x = (self.sum_x.is_infinite() || self.xx.is_infinite()) && was_finite_x;
        let is_beyond_y = (self.sum_y.is_infinite() || self.yy.is_infinite()) && was_finite_y;
        if is_beyond_x || is_beyond_y || self.xy.is_infinite() && was_finite_x && was_finite_y {
            return Err(carried(data_error("value out of range: overflow").with_sqlstate("22003")));
        }
        for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }
}

/// A statistic of moments. The first argument of a function is `y`, the second `x`; a variance is
/// that of `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Figure {
    Variance { is_sample: bool, is_root: bool },
    Covariance { is_sample: bool },
    Correlation,
    Slope,
    Intercept,
    Determination,
    SumOfSquaresX,
    SumOfSquaresY,
    SumOfProducts,
    AverageX,
    AverageY,
}

impl Figure {
    /// The statistic; `None` if there are too few pairs, or too few different ones.
    pub(super) fn of(self, moments: &Moments) -> Option<f64> {
        self.computed(moments).map(one_nan)
    }

    fn computed(self, moments: &Moments) -> Option<f64> {
        let Moments { count, sum_x, sum_y, xx, yy, xy } = *moments;
        let least = match self {
            Figure::Variance { is_sample: true, .. } | Figure::Covariance { is_sample: true } => 2.0,
            _ => 1.0,
        };
        if count < least {
            return None;
        }
        match self {
            Figure::Variance { is_sample, is_root } => {
                let variance = xx / if is_sample { count - 1.0 } else { count };
                Some(if is_root { variance.sqrt() } else { variance })
            }
            Figure::Covariance { is_sample } => Some(xy / if is_sample { count - 1.0 } else { count }),
            Figure::Correlation => (xx != 0.0 && yy != 0.0).then(|| xy / (xx * yy).sqrt()),
            Figure::Slope => (xx != 0.0).then(|| xy / xx),
            Figure::Intercept => (xx != 0.0).then(|| (sum_y - sum_x * xy / xx) / count),
            // All points are on a horizontal line.
            Figure::Determination if xx != 0.0 && yy == 0.0 => Some(1.0),
            Figure::Determination => (xx != 0.0).then(|| (xy * xy) / (xx * yy)),
            Figure::SumOfSquaresX => Some(xx),
            Figure::SumOfSquaresY => Some(yy),
            Figure::SumOfProducts => Some(xy),
            Figure::AverageX => Some(sum_x / count),
            Figure::AverageY => Some(sum_y / count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Moments {
        let mut moments = Moments::default();
        pairs.iter().for_each(|(y, x)| moments.add(*x, *y).unwrap());
        moments
    }

    #[test]
    fn parts_give_what_the_whole_gives() {
        let pairs = [(1.0, 2.0), (3.0, 5.0), (4.0, 1.0), (-2.0, 8.0), (0.5, 0.25)];
        let whole = of(&pairs);
        for at in 0..=pairs.len() {
            let (left, right) = pairs.split_at(at);
            let mut merged = of(left);
            merged.merge(&of(right)).unwrap();
            for figure in [Figure::Slope, Figure::Intercept, Figure::Correlation, Figure::Determination] {
                let (one, other) = (figure.of(&whole).unwrap(), figure.of(&merged).unwrap());
                assert!((one - other).abs() < 1e-12, "{figure:?}: {one} and {other}");
            }
        }
    }

    #[test]
    fn infinities_give_nan_and_large_sums_an_error() {
        let variance = Figure::Variance { is_sample: false, is_root: false };
        assert!(variance.of(&of(&[(0.0, f64::INFINITY)])).unwrap().is_nan());
        assert!(Figure::Covariance { is_sample: false }.of(&of(&[(1.0, f64::INFINITY), (2.0, 1.0)])).unwrap().is_nan());
        let mut moments = of(&[(0.0, 1e200)]);
        assert!(moments.add(1.0, 0.0).unwrap_err().to_string().contains("out of range"));
    }
}
