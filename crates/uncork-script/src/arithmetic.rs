//! Operators and functions on non-null operands.

use crate::error::EvaluationError;
use crate::expression::Outcome;
use crate::hash::{fnv1a, murmur2, permute};
use crate::prng::{GREATEST_ZIPFIAN, LEAST_GAUSSIAN, LEAST_ZIPFIAN, Prng};
use crate::value::Scalar;

/// Operators and functions of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    Not,
    Absolute,
    ToInteger,
    ToDouble,
    Exponential,
    Logarithm,
    Root,
}

/// Operators and functions of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Power,
    Fnv1a,
    Murmur2,
    /// Needs random numbers, so it is evaluated where the generator is.
    Random,
}

/// Functions of three operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ternary {
    Exponential,
    Gaussian,
    Zipfian,
    Permute,
}

impl Unary {
    pub(crate) fn apply(self, operand: Scalar) -> Outcome {
        match self {
            Self::Not => operand.boolean().map(|truth| Scalar::Boolean(!truth)),
            Self::Absolute => match operand {
                Scalar::Integer(number) => Ok(Scalar::Integer(number.wrapping_abs())),
                other => other
                    .double()
                    .map(|number| Scalar::Double(if number < 0.0 { -number } else { number })),
            },
            Self::ToInteger => operand.integer().map(Scalar::Integer),
            Self::ToDouble => operand.double().map(Scalar::Double),
            Self::Exponential => operand.double().map(|number| Scalar::Double(number.exp())),
            Self::Logarithm => operand.double().map(|number| Scalar::Double(number.ln())),
            Self::Root => operand.double().map(|number| Scalar::Double(number.sqrt())),
        }
    }
}

impl Binary {
    #[inline]
    pub(crate) fn apply(self, left: Scalar, right: Scalar) -> Outcome {
        match (left, right) {
            (Scalar::Integer(left), Scalar::Integer(right)) => self.of_integers(left, right),
            (Scalar::Double(_), _) | (_, Scalar::Double(_)) if self.has_double_form() => {
                self.of_doubles(left.double()?, right.double()?)
            }
            _ if self == Self::Power => self.of_doubles(left.double()?, right.double()?),
            _ => self.of_integers(left.integer()?, right.integer()?),
        }
    }

    fn has_double_form(self) -> bool {
        matches!(
            self,
            Self::Add
                | Self::Subtract
                | Self::Multiply
                | Self::Divide
                | Self::Equal
                | Self::NotEqual
                | Self::Less
                | Self::LessOrEqual
                | Self::Power
        )
    }

    #[inline]
    fn of_integers(self, left: i64, right: i64) -> Outcome {
        let whole = |result: Option<i64>, name: &str| {
            result
                .map(Scalar::Integer)
                .ok_or_else(|| out_of_range(name))
        };
        match self {
            Self::Add => whole(left.checked_add(right), "add"),
            Self::Subtract => whole(left.checked_sub(right), "sub"),
            Self::Multiply => whole(left.checked_mul(right), "mul"),
            Self::Divide | Self::Modulo if right == 0 => {
                Err(EvaluationError::new("division by zero"))
            }
            Self::Divide => whole(left.checked_div(right), "div"),
            Self::Modulo => Ok(Scalar::Integer(left.wrapping_rem(right))),
            Self::Equal => Ok(Scalar::Boolean(left == right)),
            Self::NotEqual => Ok(Scalar::Boolean(left != right)),
            Self::Less => Ok(Scalar::Boolean(left < right)),
            Self::LessOrEqual => Ok(Scalar::Boolean(left <= right)),
            Self::BitAnd => Ok(Scalar::Integer(left & right)),
            Self::BitOr => Ok(Scalar::Integer(left | right)),
            Self::BitXor => Ok(Scalar::Integer(left ^ right)),
            Self::ShiftLeft => Ok(Scalar::Integer(left.wrapping_shl(places(right)))),
            Self::ShiftRight => Ok(Scalar::Integer(left.wrapping_shr(places(right)))),
            Self::Fnv1a => Ok(Scalar::Integer(fnv1a(left, right))),
            Self::Murmur2 => Ok(Scalar::Integer(murmur2(left, right))),
            Self::Power => self.of_doubles(
                Scalar::Integer(left).double()?,
                Scalar::Integer(right).double()?,
            ),
            Self::Random => Err(EvaluationError::new("random needs a generator")),
        }
    }

    fn of_doubles(self, left: f64, right: f64) -> Outcome {
        // Equality is exact, as pgbench's is.
        #[allow(clippy::float_cmp)]
        let result = match self {
            Self::Add => Scalar::Double(left + right),
            Self::Subtract => Scalar::Double(left - right),
            Self::Multiply => Scalar::Double(left * right),
            Self::Divide => Scalar::Double(left / right),
            Self::Power => Scalar::Double(left.powf(right)),
            Self::Equal => Scalar::Boolean(left == right),
            Self::NotEqual => Scalar::Boolean(left != right),
            Self::Less => Scalar::Boolean(left < right),
            Self::LessOrEqual => Scalar::Boolean(left <= right),
            other => {
                let (left, right) = (
                    Scalar::Double(left).integer()?,
                    Scalar::Double(right).integer()?,
                );
                return other.of_integers(left, right);
            }
        };
        Ok(result)
    }

    /// Whether a random integer can be drawn between these bounds.
    #[inline]
    pub(crate) fn drawable(least: i64, greatest: i64) -> Result<(), EvaluationError> {
        if least > greatest {
            return Err(EvaluationError::new("empty range given to random"));
        }
        match greatest
            .checked_sub(least)
            .and_then(|distance| distance.checked_add(1))
        {
            Some(_) => Ok(()),
            None => Err(EvaluationError::new("random range is too large")),
        }
    }
}

/// How far an integer is shifted: the processor, and so pgbench, takes the last six bits.
fn places(number: i64) -> u32 {
    u32::try_from(number & 63).unwrap_or(0)
}

#[cold]
fn out_of_range(name: &str) -> EvaluationError {
    EvaluationError::new(format!("bigint {name} out of range"))
}

impl Ternary {
    pub(crate) fn apply(
        self,
        [first, second, third]: [Scalar; 3],
        random: &mut Prng,
    ) -> Result<i64, EvaluationError> {
        let (first, second) = (first.integer()?, second.integer()?);
        if self == Self::Permute {
            let seed = third.integer()?;
            if second <= 0 {
                return Err(EvaluationError::new(
                    "permute size parameter must be greater than zero",
                ));
            }
            return Ok(permute(first, second, seed));
        }
        Binary::drawable(first, second)?;
        let parameter = third.double()?;
        match self {
            Self::Gaussian if parameter.is_nan() || parameter < LEAST_GAUSSIAN => {
                Err(EvaluationError::new(format!(
                    "gaussian parameter must be at least {LEAST_GAUSSIAN:.6} (not {parameter:.6})"
                )))
            }
            Self::Gaussian => Ok(random.gaussian(first, second, parameter)),
            Self::Zipfian if !(LEAST_ZIPFIAN..=GREATEST_ZIPFIAN).contains(&parameter) => {
                Err(EvaluationError::new(format!(
                    "zipfian parameter must be in range [{LEAST_ZIPFIAN:.3}, {GREATEST_ZIPFIAN:.0}] \
                     (not {parameter:.6})"
                )))
            }
            Self::Zipfian => Ok(random.zipfian(first, second, parameter)),
            Self::Exponential if parameter.is_nan() || parameter <= 0.0 => {
                Err(EvaluationError::new(format!(
                    "exponential parameter must be greater than zero (not {parameter:.6})"
                )))
            }
            Self::Exponential | Self::Permute => Ok(random.exponential(first, second, parameter)),
        }
    }
}
