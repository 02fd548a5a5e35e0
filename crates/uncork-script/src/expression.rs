//! Expressions and their evaluation, as a tree, because the frequent ones are only two or three
//! nodes deep.

use crate::arithmetic::{Binary, Ternary, Unary};
use crate::error::EvaluationError;
use crate::prng::Prng;
use crate::symbols::Slot;
use crate::value::{Scalar, Value};

/// A parsed expression; a [`crate::Session`] evaluates it.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression(pub(crate) Node);

/// An evaluation's result.
pub(crate) type Outcome = Result<Scalar, EvaluationError>;

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Constant(Scalar),
    Variable(Slot),
    /// `random` between bounds that are constant.
    Uniform {
        least: i64,
        greatest: i64,
    },
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<[Node; 2]>),
    Ternary(Ternary, Box<[Node; 3]>),
    /// Whether the node is this constant: null, true or false.
    Is(Box<Node>, Scalar),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Case(Box<Case>),
    Least(Box<[Node]>),
    Greatest(Box<[Node]>),
}

/// `CASE WHEN … THEN … ELSE … END`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    pub(crate) branches: Vec<(Node, Node)>,
    pub(crate) otherwise: Node,
}

/// What an evaluation reads: variables, and the generator it draws from.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// A variable's value by its slot; `None` if it is undefined.
    pub(crate) values: Vec<Option<Value>>,
    /// A variable's name by its slot, for messages.
    pub(crate) names: Vec<String>,
    pub(crate) random: Prng,
}

impl Node {
    pub(crate) fn unary(operator: Unary, operand: Node) -> Self {
        Self::Unary(operator, Box::new(operand)).folded()
    }

    pub(crate) fn binary(operator: Binary, left: Node, right: Node) -> Self {
        if let (Binary::Random, Node::Constant(least), Node::Constant(greatest)) =
            (operator, &left, &right)
            && let (Ok(least), Ok(greatest)) = (least.integer(), greatest.integer())
            && Binary::drawable(least, greatest).is_ok()
        {
            return Self::Uniform { least, greatest };
        }
        Self::Binary(operator, Box::new([left, right])).folded()
    }

    /// Fold constant operands to a constant, unless they give an error: that is reported only if
    /// the expression is evaluated.
    fn folded(self) -> Self {
        let constant = |node: &Node| match node {
            Self::Constant(scalar) => Some(*scalar),
            _ => None,
        };
        let value = match &self {
            Self::Unary(operator, operand) => {
                constant(operand).and_then(|operand| apply_unary(*operator, operand).ok())
            }
            Self::Binary(Binary::Random, _) => None,
            Self::Binary(operator, operands) => constant(&operands[0])
                .zip(constant(&operands[1]))
                .and_then(|(left, right)| operator.apply(left, right).ok()),
            _ => None,
        };
        value.map_or(self, Self::Constant)
    }

    /// Evaluate the node. Arguments are evaluated from the left; those of AND, OR and CASE only as far as needed.
    pub(crate) fn evaluate(&self, environment: &mut Environment) -> Outcome {
        match self {
            Self::Constant(scalar) => Ok(*scalar),
            Self::Variable(slot) => environment.scalar(*slot),
            Self::Uniform { least, greatest } => Ok(Scalar::Integer(
                environment.random.uniform(*least, *greatest),
            )),
            Self::Unary(operator, operand) => {
                apply_unary(*operator, operand.evaluate(environment)?)
            }
            Self::Binary(operator, operands) => {
                let left = operands[0].evaluate(environment)?;
                let right = operands[1].evaluate(environment)?;
                match (left, right) {
                    (Scalar::Null, _) | (_, Scalar::Null) => Ok(Scalar::Null),
                    _ if *operator == Binary::Random => {
                        let (least, greatest) = (left.integer()?, right.integer()?);
                        Binary::drawable(least, greatest)?;
                        Ok(Scalar::Integer(environment.random.uniform(least, greatest)))
                    }
                    _ => operator.apply(left, right),
                }
            }
            Self::Ternary(operator, operands) => {
                let mut arguments = [Scalar::Null; 3];
                for (argument, operand) in arguments.iter_mut().zip(operands.iter()) {
                    *argument = operand.evaluate(environment)?;
                }
                if arguments.contains(&Scalar::Null) {
                    return Ok(Scalar::Null);
                }
                operator
                    .apply(arguments, &mut environment.random)
                    .map(Scalar::Integer)
            }
            Self::Is(operand, wanted) => {
                Ok(Scalar::Boolean(operand.evaluate(environment)? == *wanted))
            }
            Self::And(operands) => Self::both(operands, true, environment),
            Self::Or(operands) => Self::both(operands, false, environment),
            Self::Case(case) => {
                for (condition, value) in &case.branches {
                    if condition.evaluate(environment)?.truth() {
                        return value.evaluate(environment);
                    }
                }
                case.otherwise.evaluate(environment)
            }
            Self::Least(operands) => extremum(operands, environment, false),
            Self::Greatest(operands) => extremum(operands, environment, true),
        }
    }

    /// Evaluate AND (`decisive` is false, so `neutral` is true) or OR. As in pgbench, a null on the left is the
    /// result, whatever the right is.
    fn both(operands: &[Node; 2], neutral: bool, environment: &mut Environment) -> Outcome {
        let left = operands[0].evaluate(environment)?;
        if left == Scalar::Null {
            return Ok(Scalar::Null);
        }
        let truth = left.boolean()?;
        if truth != neutral {
            return Ok(Scalar::Boolean(truth));
        }
        match operands[1].evaluate(environment)? {
            Scalar::Null => Ok(Scalar::Null),
            right => right.boolean().map(Scalar::Boolean),
        }
    }
}

impl Environment {
    #[inline]
    fn scalar(&mut self, slot: Slot) -> Outcome {
        match &mut self.values[slot.index()] {
            Some(Value::Integer(number)) => Ok(Scalar::Integer(*number)),
            Some(Value::Double(number)) => Ok(Scalar::Double(*number)),
            Some(Value::Boolean(truth)) => Ok(Scalar::Boolean(*truth)),
            Some(Value::Null) => Ok(Scalar::Null),
            Some(Value::Text(text)) => text.scalar(&self.names[slot.index()]),
            None => Err(self.undefined(slot)),
        }
    }

    /// The error of a variable without a value.
    #[cold]
    pub(crate) fn undefined(&self, slot: Slot) -> EvaluationError {
        let name = &self.names[slot.index()];
        EvaluationError::new(format!(
            "undefined variable \"{name}\"; set it before, or give it with -D {name}=value"
        ))
    }
}

fn apply_unary(operator: Unary, operand: Scalar) -> Outcome {
    if operand == Scalar::Null {
        Ok(Scalar::Null)
    } else {
        operator.apply(operand)
    }
}

/// Return the least or the greatest of all operands; a double if one of them is.
fn extremum(operands: &[Node], environment: &mut Environment, greatest: bool) -> Outcome {
    let mut scalars = Vec::with_capacity(operands.len());
    for operand in operands {
        scalars.push(operand.evaluate(environment)?);
    }
    if scalars.contains(&Scalar::Null) {
        return Ok(Scalar::Null);
    }
    if scalars
        .iter()
        .any(|scalar| matches!(scalar, Scalar::Double(_)))
    {
        let mut best = scalars[0].double()?;
        for scalar in &scalars[1..] {
            let other = scalar.double()?;
            // As C's Min and Max in PostgreSQL: an incomparable value (NaN) is replaced.
            let stays = if greatest { best > other } else { best < other };
            best = if stays { best } else { other };
        }
        return Ok(Scalar::Double(best));
    }
    let mut best = scalars[0].integer()?;
    for scalar in &scalars[1..] {
        let other = scalar.integer()?;
        best = if greatest {
            best.max(other)
        } else {
            best.min(other)
        };
    }
    Ok(Scalar::Integer(best))
}
