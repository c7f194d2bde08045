//! `LIKE` with long or computed patterns.
//!
//! DataFusion compiles a pattern to a regular expression. That takes as many steps for each
//! character of a text as the pattern has parts, and cannot be interrupted. Here the parts between
//! `%` are searched one after the other, and an ended statement stops between two of them. Short
//! literal patterns stay with DataFusion, because indexes and its prefix kernels serve them.
//!
//! ```text
//!  a%b_c%d   ─►   starts with "a" ─► then the earliest "b" any "c" ─► then ends with "d"
//! ```

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use arrow_array::builder::BooleanBuilder;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::Like;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use filbert_dialect::lower;

use super::results::Results;
use super::row::{Texts, rows_of, text_of};
use super::strict;
use crate::error::{carried, data_error};

/// The maximum number of `%` and `_` in a pattern that stays with DataFusion.
const SIGNS_MAX: usize = 8;

static LIKE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(LikeParts::new(false))));
static ILIKE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(LikeParts::new(true))));

/// The call that matches a text with a pattern, if DataFusion should not do it.
pub(super) fn by_parts(expression: Expr) -> Transformed<Expr> {
    let Expr::Like(like) = expression else { return Transformed::no(expression) };
    let stays = match like.pattern.as_ref() {
        Expr::Literal(pattern, _) => text_of(pattern).is_none_or(is_short),
        // A value will replace the parameter.
        pattern => pattern.exists(|inner| Ok(matches!(inner, Expr::Placeholder(_)))).unwrap_or(true),
    };
    if stays || like.escape_char.is_some() {
        return Transformed::no(Expr::Like(like));
    }
    let function = if like.case_insensitive { &ILIKE } else { &LIKE };
    let call = function.call(vec![*like.expr, *like.pattern]);
    Transformed::yes(if like.negated { Expr::Not(Box::new(call)) } else { call })
}

fn is_short(pattern: &str) -> bool {
    pattern.bytes().filter(|byte| matches!(byte, b'%' | b'_')).nth(SIGNS_MAX).is_none()
}

/// `LIKE` or `ILIKE` of a text and a pattern with the backslash as escape character.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LikeParts {
    ignores_case: bool,
    signature: Signature,
}

impl LikeParts {
    fn new(ignores_case: bool) -> LikeParts {
        LikeParts { ignores_case, signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for LikeParts {
    fn name(&self) -> &str {
        if self.ignores_case { "ilike_parts" } else { "like_parts" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), DataType::Boolean, is_nullable)))
    }

    /// A pattern that turns out to be short goes back to DataFusion.
    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let args = match strict::simplified(args, info, |args| self.return_field_from_args(args))? {
            ExprSimplifyResult::Original(args) => args,
            null => return Ok(null),
        };
        let is_short = matches!(args.get(1), Some(Expr::Literal(pattern, _)) if text_of(pattern).is_some_and(is_short));
        if !is_short {
            return Ok(ExprSimplifyResult::Original(args));
        }
        match <[Expr; 2]>::try_from(args) {
            Ok([text, pattern]) => {
                let like = Like::new(false, Box::new(text), Box::new(pattern), None, self.ignores_case);
                Ok(ExprSimplifyResult::Simplified(Expr::Like(like)))
            }
            Err(args) => Ok(ExprSimplifyResult::Original(args)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (texts, patterns) = (Texts::of(&args, 0)?, Texts::of(&args, 1)?);
        let mut results = Results::of(&args.config_options);
        let written = |text| if self.ignores_case { lower(text) } else { Cow::Borrowed(text) };
        let mut known: Option<(usize, Pattern)> = None;
        let mut is_like = |row: usize| -> Result<Option<bool>> {
            let (Some(text), Some(pattern)) = (texts.get(row), patterns.get(row)) else { return Ok(None) };
            let same = known.as_ref().filter(|(of, _)| patterns.are_constant() || *of == row);
            if same.is_none() {
                known = Some((row, Pattern::of(&written(pattern))?));
            }
            let Some((_, pattern)) = &known else { return Ok(None) };
            pattern.matches(&written(text), &mut |steps| results.work(steps)).map(Some)
        };
        let rows = rows_of(&args);
        if args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_))) {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(is_like(0)?)));
        }
        let mut builder = BooleanBuilder::with_capacity(rows);
        for row in 0..rows {
            builder.append_option(is_like(row)?);
        }
        Ok(ColumnarValue::Array(Arc::new(builder.finish())))
    }
}

/// Whether an expression is such a call, for code that inspects plans.
#[cfg(test)]
fn is_by_parts(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarFunction(call) if call.func.name().ends_with("like_parts"))
}

/// A pattern as the parts between its `%`.
#[derive(Debug)]
pub(super) struct Pattern {
    /// At least one; a part may be empty. Without `%` it is the only one.
    parts: Vec<Part>,
}

/// Consecutive characters.
#[derive(Debug, Default)]
struct Part {
    /// `None` = any character.
    characters: Vec<Option<char>>,
    /// The part as a text, if it has no `_`.
    text: Option<String>,
}

impl Part {
    fn of(characters: Vec<Option<char>>) -> Part {
        Part { text: characters.iter().copied().collect(), characters }
    }

    /// The end of the part at the start of a text; `None` = the text does not start with it.
    fn end_at_start(&self, text: &str) -> Option<usize> {
        if let Some(exact) = &self.text {
            return text.starts_with(exact.as_str()).then_some(exact.len());
        }
        let mut rest = text.char_indices();
        for wanted in &self.characters {
            let (_, found) = rest.next()?;
            if wanted.is_some_and(|wanted| wanted != found) {
                return None;
            }
        }
        Some(rest.offset())
    }

    /// The end of the first occurrence of the part in a text.
    fn end_in(&self, text: &str, work: &mut dyn FnMut(usize) -> Result<()>) -> Result<Option<usize>> {
        if let Some(exact) = &self.text {
            work(text.len())?;
            return Ok(text.find(exact.as_str()).map(|at| at + exact.len()));
        }
        for (at, _) in text.char_indices() {
            work(self.characters.len())?;
            if let Some(end) = text.get(at..).and_then(|rest| self.end_at_start(rest)) {
                return Ok(Some(at + end));
            }
        }
        Ok(None)
    }

    /// Whether a text ends with the part.
    fn is_end_of(&self, text: &str) -> bool {
        let mut from_behind = text.chars().rev();
        let fits =
            |wanted: &Option<char>| from_behind.next().is_some_and(|found| wanted.is_none_or(|wanted| wanted == found));
        self.characters.iter().rev().all(fits)
    }
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// 22025: the pattern ends with its escape character.
    pub(super) fn of(pattern: &str) -> Result<Pattern> {
        let (mut parts, mut part) = (Vec::new(), Vec::new());
        let mut chars = pattern.chars();
        while let Some(char) = chars.next() {
            match char {
                '%' => parts.push(Part::of(std::mem::take(&mut part))),
                '_' => part.push(None),
                '\\' => match chars.next() {
                    Some(escaped) => part.push(Some(escaped)),
                    None => {
                        let text = "LIKE pattern must not end with escape character";
                        return Err(carried(data_error(text).with_sqlstate("22025")));
                    }
                },
                char => part.push(Some(char)),
            }
        }
        parts.push(Part::of(part));
        Ok(Pattern { parts })
    }

    /// Whether a text matches the pattern. `work` is called with the number of steps, and may end
    /// the statement.
    ///
    /// # Errors
    /// The errors of `work`.
    pub(super) fn matches(&self, text: &str, work: &mut dyn FnMut(usize) -> Result<()>) -> Result<bool> {
        let [first, others @ ..] = self.parts.as_slice() else { return Ok(text.is_empty()) };
        let Some(mut at) = first.end_at_start(text) else { return Ok(false) };
        let [between @ .., last] = others else { return Ok(at == text.len()) };
        for part in between {
            let rest = text.get(at..).unwrap_or_default();
            match part.end_in(rest, work)? {
                Some(end) => at += end,
                None => return Ok(false),
            }
        }
        work(last.characters.len())?;
        Ok(last.is_end_of(text.get(at..).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use datafusion::arrow::compute::kernels::comparison::like;
    use datafusion::logical_expr::{col, lit};

    use super::*;

    fn is_like(text: &str, pattern: &str) -> bool {
        Pattern::of(pattern).unwrap().matches(text, &mut |_| Ok(())).unwrap()
    }

    #[test]
    fn patterns_are_matched_as_like_does() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("a", "", false),
            ("abc", "a%c", true),
            ("abcbc", "a%bc", true),
            ("abcb", "a%bc", false),
            ("ab", "a_", true),
            ("äö", "_ö", true),
            ("a%b", "a\\%b", true),
            ("axb", "a\\%b", false),
            ("aaab", "%a%a%b", true),
            ("abc", "%%", true),
            ("abc", "_", false),
            ("aba", "ab%ba", false),
            ("a\nb", "a_b", true),
        ] {
            assert_eq!(is_like(text, pattern), expected, "{text:?} like {pattern:?}");
        }
        assert!(Pattern::of("a\\").is_err());
    }

    /// Compares all patterns and texts over a small alphabet with Arrow's kernel.
    #[test]
    fn patterns_are_matched_as_arrow_matches_them() {
        let of_letters = |letters: &[&str], length: u32| -> Vec<String> {
            let count = letters.len().pow(length);
            let letter = |number: usize, at: u32| letters[number / letters.len().pow(at) % letters.len()];
            (0..count).map(|number| (0..length).map(|at| letter(number, at)).collect()).collect()
        };
        let patterns: Vec<String> = (0..6).flat_map(|length| of_letters(&["a", "ä", "%", "_"], length)).collect();
        let texts: Vec<String> = (0..6).flat_map(|length| of_letters(&["a", "ä", "b"], length)).collect();
        let array = arrow_array::StringArray::from(texts.clone());
        for pattern in patterns {
            let expected =
                like(&array, &arrow_array::Scalar::new(arrow_array::StringArray::from(vec![pattern.clone()])));
            let expected = expected.unwrap();
            let known = Pattern::of(&pattern).unwrap();
            for (row, text) in texts.iter().enumerate() {
                let found = known.matches(text, &mut |_| Ok(())).unwrap();
                assert_eq!(found, expected.value(row), "{text:?} like {pattern:?}");
            }
        }
    }

    #[test]
    fn short_patterns_stay_and_computed_ones_come_back() {
        let pattern = |pattern: Expr| by_parts(col("a").like(pattern)).data;
        assert!(!is_by_parts(&pattern(lit("a%b_c"))));
        assert!(is_by_parts(&pattern(lit("%a".repeat(9)))));
        assert!(is_by_parts(&pattern(col("b"))));
        let simplified = |args| LikeParts::new(false).simplify(args, &SimplifyContext::builder().build()).unwrap();
        assert!(matches!(
            simplified(vec![col("a"), lit("a%")]),
            ExprSimplifyResult::Simplified(Expr::Like(Like { negated: false, case_insensitive: false, .. }))
        ));
        assert!(matches!(simplified(vec![col("a"), col("b")]), ExprSimplifyResult::Original(_)));
    }
}
