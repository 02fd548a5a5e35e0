//! Parses expressions, with the precedence of pgbench's grammar.
//!
//! From loosest to tightest: OR; AND; NOT; IS, ISNULL, NOTNULL; comparisons, which do not chain;
//! `| # & << >> ~`, all the same; `+ -`; `* / %`; the sign of a number.

use crate::arithmetic::{Binary, Unary};
use crate::error::{Fault, nearest};
use crate::expression::{Case, Expression, Node};
use crate::function::{Function, names};
use crate::lexer::{Lexer, Token};
use crate::symbols::Symbols;
use crate::value::Scalar;

/// How deeply expressions may be nested: evaluation recurses, and the stack is finite.
const DEEPEST: usize = 256;

const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const BITS: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const SIGN: u8 = 9;

/// Parse from the lexer's position to the end of the command.
pub(crate) fn parse_expression(
    lexer: &mut Lexer,
    symbols: &mut Symbols,
    command: &str,
) -> Result<Expression, Fault> {
    let mut parser = Parser {
        token: lexer.token()?,
        lexer,
        symbols,
        command,
        depth: 0,
    };
    let (node, _) = parser.expression(OR)?;
    if parser.token != Token::Finish {
        return Err(parser.unexpected("an operator or the end of the line"));
    }
    Ok(Expression(node))
}

/// A node and its depth.
type Deep = (Node, usize);

struct Parser<'a, 'text> {
    /// The next token.
    token: Token,
    lexer: &'a mut Lexer<'text>,
    symbols: &'a mut Symbols,
    command: &'a str,
    /// The recursion depth of the parser.
    depth: usize,
}

/// A binary operator: which, its precedence, and whether the operands are swapped. pgbench swaps them for `>` and
/// `>=`, so the right one is evaluated first.
enum Infix {
    Two(Binary, u8, bool),
    And,
    Or,
}

impl Parser<'_, '_> {
    fn advance(&mut self) -> Result<Token, Fault> {
        let next = self.lexer.token()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let found = self.lexer.found();
        self.lexer.fault(
            &format!("syntax error in command \"{}\"", self.command),
            &format!("found {found} where {wanted} was expected"),
        )
    }

    fn expect(&mut self, token: &Token, wanted: &str) -> Result<(), Fault> {
        if self.token != *token {
            return Err(self.unexpected(wanted));
        }
        self.advance()?;
        Ok(())
    }

    fn too_deep(&self) -> Fault {
        self.lexer.fault(
            &format!(
                "expression nested more than {DEEPEST} deep in command \"{}\"",
                self.command
            ),
            "split it over several \\set",
        )
    }

    /// Return a node above others of depth `below`.
    fn above(&self, node: Node, below: usize) -> Result<Deep, Fault> {
        // A folded constant has no nodes below it.
        let depth = if matches!(node, Node::Constant(_)) {
            0
        } else {
            below + 1
        };
        if depth > DEEPEST {
            Err(self.too_deep())
        } else {
            Ok((node, depth))
        }
    }

    /// Parse an expression of operators that bind at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Result<Deep, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.too_deep());
        }
        let mut left = self.operand()?;
        let mut compared = false;
        loop {
            if matches!(self.token, Token::Is | Token::IsNull | Token::NotNull) {
                if IS < least {
                    break;
                }
                left = self.test(left)?;
                compared = false;
                continue;
            }
            let Some(infix) = self.infix() else { break };
            let binding = match infix {
                Infix::Two(_, binding, _) => binding,
                Infix::And => AND,
                Infix::Or => OR,
            };
            if binding < least {
                break;
            }
            if binding == COMPARISON && compared {
                return Err(self.unexpected("AND, OR or a parenthesis (comparisons do not chain)"));
            }
            compared = binding == COMPARISON;
            self.advance()?;
            let right = self.expression(binding + 1)?;
            let below = left.1.max(right.1);
            let node = match infix {
                Infix::Two(operator, _, false) => Node::binary(operator, left.0, right.0),
                Infix::Two(operator, _, true) => Node::binary(operator, right.0, left.0),
                Infix::And => Node::And(Box::new([left.0, right.0])),
                Infix::Or => Node::Or(Box::new([left.0, right.0])),
            };
            left = self.above(node, below)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn infix(&self) -> Option<Infix> {
        let two = |operator, binding| Some(Infix::Two(operator, binding, false));
        match self.token {
            Token::Or => Some(Infix::Or),
            Token::And => Some(Infix::And),
            Token::Sign(b'=') => two(Binary::Equal, COMPARISON),
            Token::NotEqual => two(Binary::NotEqual, COMPARISON),
            Token::Sign(b'<') => two(Binary::Less, COMPARISON),
            Token::LessOrEqual => two(Binary::LessOrEqual, COMPARISON),
            Token::Sign(b'>') => Some(Infix::Two(Binary::Less, COMPARISON, true)),
            Token::GreaterOrEqual => Some(Infix::Two(Binary::LessOrEqual, COMPARISON, true)),
            Token::Sign(b'|') => two(Binary::BitOr, BITS),
            Token::Sign(b'#') => two(Binary::BitXor, BITS),
            Token::Sign(b'&') => two(Binary::BitAnd, BITS),
            Token::ShiftLeft => two(Binary::ShiftLeft, BITS),
            Token::ShiftRight => two(Binary::ShiftRight, BITS),
            Token::Sign(b'+') => two(Binary::Add, SUM),
            Token::Sign(b'-') => two(Binary::Subtract, SUM),
            Token::Sign(b'*') => two(Binary::Multiply, PRODUCT),
            Token::Sign(b'/') => two(Binary::Divide, PRODUCT),
            Token::Sign(b'%') => two(Binary::Modulo, PRODUCT),
            _ => None,
        }
    }

    /// Parse what follows an operand: ISNULL, NOTNULL, or IS [NOT] and NULL, TRUE or FALSE.
    fn test(&mut self, (operand, below): Deep) -> Result<Deep, Fault> {
        let (wanted, negated) = match self.advance()? {
            Token::IsNull => (Scalar::Null, false),
            Token::NotNull => (Scalar::Null, true),
            _ => {
                let negated = self.token == Token::Not;
                if negated {
                    self.advance()?;
                }
                let wanted = match self.token {
                    Token::Null => Scalar::Null,
                    Token::Boolean(truth) => Scalar::Boolean(truth),
                    _ => return Err(self.unexpected("NULL, TRUE or FALSE")),
                };
                self.advance()?;
                (wanted, negated)
            }
        };
        let is = match operand {
            Node::Constant(scalar) => Node::Constant(Scalar::Boolean(scalar == wanted)),
            other => Node::Is(Box::new(other), wanted),
        };
        let node = if negated {
            Node::unary(Unary::Not, is)
        } else {
            is
        };
        self.above(node, below + 1)
    }

    /// Parse a constant, variable, call, CASE, parenthesis, or unary operator.
    fn operand(&mut self) -> Result<Deep, Fault> {
        let constant = |scalar| Ok((Node::Constant(scalar), 0));
        match &self.token {
            Token::Finish => return Err(self.unexpected("a value")),
            Token::BeyondGreatest => return Err(self.lexer.overflow("9223372036854775808")),
            Token::Function(name) => {
                let function = self.function(name)?;
                self.advance()?;
                return self.call(function);
            }
            _ => {}
        }
        if !matches!(
            self.token,
            Token::Integer(_)
                | Token::Double(_)
                | Token::Boolean(_)
                | Token::Null
                | Token::Variable(_)
                | Token::Not
                | Token::Case
                | Token::Sign(b'(' | b'+' | b'-' | b'~')
        ) {
            return Err(self.unexpected("a value"));
        }
        match self.advance()? {
            Token::Integer(number) => constant(Scalar::Integer(number)),
            Token::Double(number) => constant(Scalar::Double(number)),
            Token::Boolean(truth) => constant(Scalar::Boolean(truth)),
            Token::Variable(name) => Ok((Node::Variable(self.symbols.slot(&name)), 1)),
            Token::Case => self.case(),
            Token::Not => {
                let (operand, below) = self.expression(NOT)?;
                self.above(Node::unary(Unary::Not, operand), below)
            }
            Token::Sign(b'(') => {
                let inner = self.expression(OR)?;
                self.expect(&Token::Sign(b')'), "\")\"")?;
                Ok(inner)
            }
            Token::Sign(b'+') => self.expression(SIGN),
            Token::Sign(b'-') if self.token == Token::BeyondGreatest => {
                self.advance()?;
                constant(Scalar::Integer(i64::MIN))
            }
            // As in pgbench, -x is 0 - x, and ~x is all bits set # x.
            Token::Sign(b'-') => {
                let (operand, below) = self.expression(SIGN)?;
                let zero = Node::Constant(Scalar::Integer(0));
                self.above(Node::binary(Binary::Subtract, zero, operand), below)
            }
            Token::Sign(b'~') => {
                let (operand, below) = self.expression(BITS + 1)?;
                let ones = Node::Constant(Scalar::Integer(-1));
                self.above(Node::binary(Binary::BitXor, ones, operand), below)
            }
            _ => constant(Scalar::Null),
        }
    }

    fn function(&self, name: &str) -> Result<Function, Fault> {
        Function::find(name).ok_or_else(|| {
            let known = names();
            let remedy = if self.symbols.lookup(name).is_some() {
                format!("a variable is written :{name}")
            } else if let Some(candidate) = nearest(name, &known) {
                format!("did you mean \"{candidate}\"?")
            } else {
                format!("the functions are {}", known.join(", "))
            };
            self.lexer
                .fault(&format!("unexpected function name ({name})"), &remedy)
        })
    }

    fn call(&mut self, function: Function) -> Result<Deep, Fault> {
        self.expect(&Token::Sign(b'('), "\"(\"")?;
        let mut arguments = Vec::new();
        let mut below = 0;
        if self.token != Token::Sign(b')') {
            loop {
                let (argument, depth) = self.expression(OR)?;
                arguments.push(argument);
                below = below.max(depth);
                if self.token != Token::Sign(b',') {
                    break;
                }
                self.advance()?;
            }
        }
        if self.token != Token::Sign(b')') {
            return Err(self.unexpected("\",\" or \")\""));
        }
        let node = function
            .call(arguments, self.symbols)
            .map_err(|(message, remedy)| self.lexer.fault(&message, &remedy))?;
        self.advance()?;
        self.above(node, below)
    }

    fn case(&mut self) -> Result<Deep, Fault> {
        let mut branches = Vec::new();
        let mut below = 0;
        loop {
            if self.token != Token::When {
                let wanted = if branches.is_empty() {
                    "WHEN"
                } else {
                    "WHEN, ELSE or END"
                };
                return Err(self.unexpected(wanted));
            }
            self.advance()?;
            let (condition, first) = self.expression(OR)?;
            self.expect(&Token::Then, "THEN")?;
            let (value, second) = self.expression(OR)?;
            branches.push((condition, value));
            below = below.max(first).max(second);
            if matches!(self.token, Token::Else | Token::End) {
                break;
            }
        }
        let mut otherwise = Node::Constant(Scalar::Null);
        if self.token == Token::Else {
            self.advance()?;
            let depth;
            (otherwise, depth) = self.expression(OR)?;
            below = below.max(depth);
        }
        self.expect(&Token::End, "END")?;
        self.above(
            Node::Case(Box::new(Case {
                branches,
                otherwise,
            })),
            below,
        )
    }
}
