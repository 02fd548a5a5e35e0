//! The functions of the language, and their numbers of arguments.

use crate::arithmetic::{Binary, Ternary, Unary};
use crate::expression::Node;
use crate::symbols::{DEFAULT_SEED, Symbols};
use crate::value::Scalar;

/// The most arguments a function takes, as in pgbench.
const MOST_ARGUMENTS: usize = 16;

/// A function by its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    form: Form,
}

/// How a function uses its arguments.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// `pi`.
    Constant(f64),
    /// `debug`: its argument. pgbench also prints it; nothing is printed here.
    Itself,
    One(Unary),
    Two(Binary),
    Three(Ternary),
    /// Two, or one and `default_seed`.
    Hash(Binary),
    /// Three, or two and `default_seed`.
    Permute,
    Least,
    Greatest,
}

/// All functions, by name.
pub(crate) const FUNCTIONS: [Function; 21] = {
    const fn function(name: &'static str, form: Form) -> Function {
        Function { name, form }
    }
    [
        function("abs", Form::One(Unary::Absolute)),
        function("debug", Form::Itself),
        function("double", Form::One(Unary::ToDouble)),
        function("exp", Form::One(Unary::Exponential)),
        function("greatest", Form::Greatest),
        function("hash", Form::Hash(Binary::Murmur2)),
        function("hash_fnv1a", Form::Hash(Binary::Fnv1a)),
        function("hash_murmur2", Form::Hash(Binary::Murmur2)),
        function("int", Form::One(Unary::ToInteger)),
        function("least", Form::Least),
        function("ln", Form::One(Unary::Logarithm)),
        function("mod", Form::Two(Binary::Modulo)),
        function("permute", Form::Permute),
        function("pi", Form::Constant(std::f64::consts::PI)),
        function("pow", Form::Two(Binary::Power)),
        function("power", Form::Two(Binary::Power)),
        function("random", Form::Two(Binary::Random)),
        function("random_exponential", Form::Three(Ternary::Exponential)),
        function("random_gaussian", Form::Three(Ternary::Gaussian)),
        function("random_zipfian", Form::Three(Ternary::Zipfian)),
        function("sqrt", Form::One(Unary::Root)),
    ]
};

/// The names of all functions.
pub(crate) fn names() -> [&'static str; FUNCTIONS.len()] {
    FUNCTIONS.map(|function| function.name)
}

impl Function {
    /// Find the function `name`, regardless of case.
    pub(crate) fn find(name: &str) -> Option<Self> {
        FUNCTIONS
            .into_iter()
            .find(|function| function.name.eq_ignore_ascii_case(name))
    }

    /// Build the call of the function with `arguments`; or return what is wrong with them in pgbench's words, and what
    /// to do.
    pub(crate) fn call(
        self,
        arguments: Vec<Node>,
        symbols: &mut Symbols,
    ) -> Result<Node, (String, String)> {
        let given = arguments.len();
        let miscounted = |wanted: &str| {
            (
                format!("unexpected number of arguments ({})", self.name),
                format!("{given} given, it takes {wanted}"),
            )
        };
        let mut default_seed = || Node::Variable(symbols.slot(DEFAULT_SEED));
        match self.form {
            Form::Constant(number) if given == 0 => Ok(Node::Constant(Scalar::Double(number))),
            Form::Constant(_) => Err(miscounted("none")),
            Form::Itself => exactly(arguments)
                .map(|[one]| one)
                .ok_or_else(|| miscounted("1")),
            Form::One(operator) => exactly(arguments)
                .map(|[one]| Node::unary(operator, one))
                .ok_or_else(|| miscounted("1")),
            Form::Two(operator) => exactly(arguments)
                .map(|[one, two]| Node::binary(operator, one, two))
                .ok_or_else(|| miscounted("2")),
            Form::Three(operator) => exactly(arguments)
                .map(|three| Node::Ternary(operator, Box::new(three)))
                .ok_or_else(|| miscounted("3")),
            Form::Hash(operator) => {
                let mut arguments = arguments;
                if given == 1 {
                    arguments.push(default_seed());
                }
                exactly(arguments)
                    .map(|[value, seed]| Node::binary(operator, value, seed))
                    .ok_or_else(|| miscounted("1 or 2"))
            }
            Form::Permute => {
                let mut arguments = arguments;
                if given == 2 {
                    arguments.push(default_seed());
                }
                exactly(arguments)
                    .map(|three| Node::Ternary(Ternary::Permute, Box::new(three)))
                    .ok_or_else(|| miscounted("2 or 3"))
            }
            Form::Least | Form::Greatest if given == 0 => Err((
                format!("at least one argument expected ({})", self.name),
                "name what to compare".to_owned(),
            )),
            Form::Least | Form::Greatest if given > MOST_ARGUMENTS => Err((
                format!(
                    "too many function arguments, maximum is {MOST_ARGUMENTS} ({})",
                    self.name
                ),
                format!("{given} given; nest one call in another"),
            )),
            Form::Least => Ok(Node::Least(arguments.into_boxed_slice())),
            Form::Greatest => Ok(Node::Greatest(arguments.into_boxed_slice())),
        }
    }
}

fn exactly<const COUNT: usize>(arguments: Vec<Node>) -> Option<[Node; COUNT]> {
    arguments.try_into().ok()
}
