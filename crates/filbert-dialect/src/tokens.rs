//! Splits a statement into tokens within the limits, and finds positions in its text.

use filbert_data::Value;
use filbert_grid::query::{Dialect, SqlError, parsing_error};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::Limits;
use super::grammar::grammar;

/// The tokens without white space, with numbered parameters and names in the dialect's case, and
/// the number of parameters.
pub(super) fn tokens(text: &str, of: Dialect, limits: &Limits) -> Result<(Vec<TokenWithSpan>, usize), SqlError> {
    if text.len() > limits.text_bytes_max {
        return Err(parsing_error(format!(
            "the statement has {} bytes, more than the {} that are allowed",
            text.len(),
            limits.text_bytes_max
        )));
    }
    let (words, spaces) = token_counts(text.as_bytes());
    if words + spaces > limits.tokens_max {
        return Err(parsing_error(format!(
            "the statement has more than {} words, numbers and signs",
            limits.tokens_max
        )));
    }
    let mut tokens = Vec::new();
    let mut parameters = 0_usize;
    Tokenizer::new(grammar(of), text)
        .tokenize_with_location_into_buf_with_mapper(&mut tokens, |mut token| {
            if let Token::Placeholder(name) = &mut token.token
                && name == "?"
                // In PostgreSQL's dialect it may be a document operator, which is decided once all
                // tokens are known.
                && of != Dialect::Postgres
            {
                parameters += 1;
                *name = format!("${parameters}");
            } else if let Token::Placeholder(name) = &token.token {
                let number = name.strip_prefix('$').and_then(|number| number.parse().ok());
                parameters = parameters.max(number.unwrap_or(0));
            } else if token.token == Token::Question && of != Dialect::Postgres {
                parameters += 1;
                token.token = Token::Placeholder(format!("${parameters}"));
            }
            if let Token::Word(word) = &mut token.token
                && word.quote_style.is_none()
                && of != Dialect::Hazelcast
            {
                word.value.make_ascii_lowercase();
            }
            token
        })
        .map_err(|error| at(&error.message, error.location))?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    if of == Dialect::Postgres {
        check_numbers(&tokens, text)?;
        tokens = null_tests(signs_apart(continued(tokens)?));
    }
    if of == Dialect::Postgres && text.contains('?') {
        tokens = document_operators(tokens, &mut parameters);
    }
    if of != Dialect::Hazelcast {
        exclusions(&mut tokens)?;
        tokens = quantified_values(tokens);
        matches_with_all(&mut tokens);
        trims_of_blanks(&mut tokens);
    }
    if parameters > limits.parameters_max {
        return Err(parsing_error(format!(
            "the statement has {parameters} parameters, more than the {} that are allowed",
            limits.parameters_max
        )));
    }
    check_chains(&tokens, limits)?;
    Ok((tokens, parameters))
}

/// Rejects numbers that are followed by letters, which would be taken for an alias, and bit
/// strings.
fn check_numbers(tokens: &[TokenWithSpan], text: &str) -> Result<(), SqlError> {
    let junk = |shown: String, place: Location| {
        Err(at(&format!("trailing junk after numeric literal at or near \"{shown}\""), place))
    };
    for pair in tokens.windows(2) {
        if let [TokenWithSpan { token: Token::Number(digits, _), span }, next] = pair
            && let Token::Word(word) = &next.token
            && word.quote_style.is_none()
            && span.end == next.span.start
        {
            return junk(format!("{digits}{}", word.value), span.start);
        }
    }
    let hexadecimal = tokens.iter().find(|token| matches!(token.token, Token::HexStringLiteral(_)));
    let Some(TokenWithSpan { token: Token::HexStringLiteral(digits), span }) = hexadecimal else { return Ok(()) };
    match text.get(offset(text, span.start)..).is_some_and(|rest| rest.starts_with('0')) {
        true => junk(format!("0x{digits}"), span.start),
        false => {
            let error = at("bit strings are not served: bytes are written as '\\x1f'::bytea", span.start);
            Err(error.with_sqlstate("0A000"))
        }
    }
}

/// Joins string literals that are continued on another line. Two literals on one line are an error,
/// and so is a backslash in the continuation of a literal with escapes: it was read without them.
fn continued(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, SqlError> {
    let literal = |token: &mut Token| match token {
        Token::SingleQuotedString(text) => Some((std::mem::take(text), false)),
        Token::EscapedStringLiteral(text) => Some((std::mem::take(text), true)),
        _ => None,
    };
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if let Token::SingleQuotedString(more) = &token.token
            && let Some(before) = out.last_mut()
            && let Some((text, has_escapes)) = literal(&mut before.token)
        {
            if before.span.end.line == token.span.start.line || has_escapes && more.contains('\\') {
                return Err(at(&format!("syntax error at or near \"'{more}'\""), token.span.start));
            }
            // From here on the token contains the value of the text, without escapes.
            before.token = Token::SingleQuotedString(text + more);
            before.span.end = token.span.end;
            continue;
        }
        out.push(token);
    }
    Ok(out)
}

/// Separates a sign from the operator before it: an operator of several characters does not end
/// with a sign, unless it has one of certain other characters. `data->-1` is `data -> -1`.
fn signs_apart(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let apart = |token: &TokenWithSpan| {
        let Token::CustomBinaryOperator(text) = &token.token else { return None };
        let sign = match text.chars().last()? {
            '-' => Token::Minus,
            '+' => Token::Plus,
            _ => return None,
        };
        let operator = match text.get(..text.len().checked_sub(1)?)? {
            "->" => Token::Arrow,
            "->>" => Token::LongArrow,
            "=" => Token::Eq,
            "<" => Token::Lt,
            ">" => Token::Gt,
            "<=" => Token::LtEq,
            ">=" => Token::GtEq,
            "<>" => Token::Neq,
            "*" => Token::Mul,
            "/" => Token::Div,
            "+" => Token::Plus,
            "-" => Token::Minus,
            _ => return None,
        };
        Some([operator, sign].map(|part| TokenWithSpan { token: part, span: token.span }))
    };
    if !tokens.iter().any(|token| apart(token).is_some()) {
        return tokens;
    }
    let parts = |token: TokenWithSpan| match apart(&token) {
        Some(parts) => parts.to_vec(),
        None => vec![token],
    };
    tokens.into_iter().flat_map(parts).collect()
}

/// Writes `x ISNULL` as `x IS NULL`, which the grammar has.
fn null_tests(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_test = |at: usize, token: &TokenWithSpan| {
        let is_word = matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && word.value == "isnull");
        // A function of this name, or a qualified name.
        let is_called = tokens.get(at + 1).is_some_and(|next| next.token == Token::LParen);
        let is_named = at.checked_sub(1).and_then(|at| tokens.get(at)).is_none_or(|before| match &before.token {
            Token::Word(word) => word.quote_style.is_none() && word.keyword == Keyword::AS,
            other => *other == Token::Period,
        });
        is_word && !is_called && !is_named
    };
    if !tokens.iter().enumerate().any(|(at, token)| is_test(at, token)) {
        return tokens;
    }
    let parts = |(at, token): (usize, &TokenWithSpan)| match is_test(at, token) {
        true => {
            ["IS", "NULL"].map(|word| TokenWithSpan { token: Token::make_keyword(word), span: token.span }).to_vec()
        }
        false => vec![token.clone()],
    };
    tokens.iter().enumerate().flat_map(parts).collect()
}

/// Removes `EXCLUDE NO OTHERS`, the default, from window frames, and rejects other exclusions. The
/// grammar supports none.
fn exclusions(tokens: &mut Vec<TokenWithSpan>) -> Result<(), SqlError> {
    let is_word = |token: &TokenWithSpan, text: &str| matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && word.value == text);
    let is_bound = |token: &TokenWithSpan| ["row", "preceding", "following"].iter().any(|bound| is_word(token, bound));
    let mut superfluous = Vec::new();
    for (at, window) in tokens.windows(4).enumerate() {
        let [bound, exclude, what, next] = window else { continue };
        if !is_bound(bound) || !is_word(exclude, "exclude") {
            continue;
        }
        if is_word(what, "no") && is_word(next, "others") {
            superfluous.extend(at + 1..at + 4);
        } else if ["current", "group", "ties"].iter().any(|word| is_word(what, word)) {
            return Err(self::at("EXCLUDE of a window frame is not served", exclude.span.start).with_sqlstate("0A000"));
        }
    }
    remove(tokens, superfluous);
    Ok(())
}

/// Removes the tokens at these indexes, which are in ascending order. Removing them one by one
/// would move all later tokens each time.
fn remove(tokens: &mut Vec<TokenWithSpan>, indexes: Vec<usize>) {
    let mut indexes = indexes.into_iter().peekable();
    let mut at = 0;
    tokens.retain(|_| {
        let is_removed = indexes.next_if_eq(&at).is_some();
        at += 1;
        !is_removed
    });
}

/// Rewrites `LIKE ALL (..)` to `~~ ALL (..)`, and `NOT LIKE`, `ILIKE` and `NOT ILIKE` likewise.
/// After these keywords the grammar supports only the quantifier `ANY`.
fn matches_with_all(tokens: &mut Vec<TokenWithSpan>) {
    let keyword = |token: Option<&TokenWithSpan>| match token.map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    };
    let mut superfluous = Vec::new();
    for at in 0..tokens.len() {
        let is_of_all = keyword(tokens.get(at + 1)) == Some(Keyword::ALL)
            && tokens.get(at + 2).is_some_and(|token| token.token == Token::LParen);
        if !is_of_all {
            continue;
        }
        let before = at.checked_sub(1).filter(|before| keyword(tokens.get(*before)) == Some(Keyword::NOT));
        let sign = match (keyword(tokens.get(at)), before) {
            (Some(Keyword::LIKE), None) => Token::DoubleTilde,
            (Some(Keyword::LIKE), Some(_)) => Token::ExclamationMarkDoubleTilde,
            (Some(Keyword::ILIKE), None) => Token::DoubleTildeAsterisk,
            (Some(Keyword::ILIKE), Some(_)) => Token::ExclamationMarkDoubleTildeAsterisk,
            _ => continue,
        };
        superfluous.extend(before);
        if let Some(token) = tokens.get_mut(at) {
            token.token = sign;
        }
    }
    remove(tokens, superfluous);
}

/// Rewrites `ANY (VALUES ..)` to `ANY (SELECT * FROM (VALUES ..) AS "$values")`: after a quantifier
/// the grammar accepts only a SELECT.
fn quantified_values(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_start = |tokens: &[TokenWithSpan]| match tokens {
        [quantifier, open, values, row, ..] => {
            let is_quantifier = matches!(&quantifier.token, Token::Word(word) if matches!(word.keyword, Keyword::ANY | Keyword::ALL | Keyword::SOME));
            let is_values = matches!(&values.token, Token::Word(word) if word.keyword == Keyword::VALUES);
            is_quantifier && open.token == Token::LParen && is_values && row.token == Token::LParen
        }
        _ => false,
    };
    let starts_at = |at: usize| tokens.get(at..).is_some_and(is_start);
    if !(0..tokens.len()).any(starts_at) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    // For each open parenthesis, whether it contains such a list.
    let mut open: Vec<bool> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let span = token.span;
        let mut add = |tokens: Vec<Token>| out.extend(tokens.into_iter().map(|token| TokenWithSpan { token, span }));
        match token.token {
            Token::LParen => {
                let holds_values = at.checked_sub(1).is_some_and(starts_at);
                open.push(holds_values);
                add(vec![Token::LParen]);
                if holds_values {
                    let word = |text| Token::make_keyword(text);
                    add(vec![word("SELECT"), Token::Mul, word("FROM"), Token::LParen]);
                }
            }
            Token::RParen => {
                if open.pop().unwrap_or(false) {
                    add(vec![Token::RParen, Token::make_keyword("AS"), Token::make_word("$values", Some('"'))]);
                }
                add(vec![Token::RParen]);
            }
            _ => out.push(token.clone()),
        }
    }
    out
}

/// Rewrites `trim(LEADING FROM text)` to `trim(LEADING text)`, and `trim(FROM text)` to
/// `trim(text)`: the grammar accepts FROM only after the characters to trim.
fn trims_of_blanks(tokens: &mut Vec<TokenWithSpan>) {
    let is_one_of = |token: Option<&TokenWithSpan>, keywords: &[Keyword]| matches!(token.map(|token| &token.token), Some(Token::Word(word)) if word.quote_style.is_none() && keywords.contains(&word.keyword));
    let is_superfluous = |at: usize| {
        let before = |count: usize| at.checked_sub(count).and_then(|at| tokens.get(at));
        let has_side = is_one_of(before(1), &[Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING]);
        let open = if has_side { 2 } else { 1 };
        is_one_of(tokens.get(at), &[Keyword::FROM])
            && before(open).is_some_and(|token| token.token == Token::LParen)
            && is_one_of(before(open + 1), &[Keyword::TRIM])
    };
    let superfluous: Vec<usize> = (0..tokens.len()).filter(|at| is_superfluous(*at)).collect();
    remove(tokens, superfluous);
}

/// Words that an operand follows. Any other word may be the name of a column, or end an operand.
const BEFORE_OPERAND: [Keyword; 42] = [
    Keyword::ALL,
    Keyword::AND,
    Keyword::ANY,
    Keyword::ARRAY,
    Keyword::AS,
    Keyword::BETWEEN,
    Keyword::BY,
    Keyword::CASE,
    Keyword::CHECK,
    Keyword::DEFAULT,
    Keyword::DISTINCT,
    Keyword::ELSE,
    Keyword::ESCAPE,
    Keyword::EXCEPT,
    Keyword::EXECUTE,
    Keyword::FETCH,
    Keyword::FOR,
    Keyword::FROM,
    Keyword::HAVING,
    Keyword::ILIKE,
    Keyword::IN,
    Keyword::INTERSECT,
    Keyword::INTO,
    Keyword::IS,
    Keyword::LIKE,
    Keyword::LIMIT,
    Keyword::NOT,
    Keyword::OFFSET,
    Keyword::ON,
    Keyword::OR,
    Keyword::PLACING,
    Keyword::RETURNING,
    Keyword::SELECT,
    Keyword::SET,
    Keyword::SIMILAR,
    Keyword::SOME,
    Keyword::THEN,
    Keyword::TO,
    Keyword::UNION,
    Keyword::VALUES,
    Keyword::WHEN,
    Keyword::WHERE,
];

/// Distinguishes the document operators `?`, `?|` and `?&`, which are between two operands, from
/// the parameter `?`.
fn document_operators(tokens: Vec<TokenWithSpan>, parameters: &mut usize) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter().peekable();
    while let Some(mut token) = tokens.next() {
        if token.token == Token::Placeholder("?".to_owned()) {
            let is_behind_operand = out.last().is_some_and(|before| match &before.token {
                Token::Word(word) => word.quote_style.is_some() || !BEFORE_OPERAND.contains(&word.keyword),
                Token::SingleQuotedString(_) | Token::RParen | Token::RBracket | Token::Placeholder(_) => true,
                _ => false,
            });
            let sign = tokens.peek().filter(|next| next.span.start == token.span.end).map(|next| next.token.clone());
            token.token = match (is_behind_operand, sign) {
                (true, Some(Token::Pipe)) => Token::QuestionPipe,
                (true, Some(Token::Ampersand)) => Token::QuestionAnd,
                (true, _) => Token::Question,
                (false, _) => {
                    *parameters += 1;
                    Token::Placeholder(format!("${parameters}"))
                }
            };
            if matches!(token.token, Token::QuestionPipe | Token::QuestionAnd) {
                tokens.next();
            }
        }
        out.push(token);
    }
    out
}

/// Whether two texts are equal except that the first has these values, `Int64` or `Text`, where the
/// second has parameters.
pub fn differ_in_literals_only(text: &str, template: &str, values: &[Value<'_>], of: Dialect) -> bool {
    let limits = Limits::default();
    let (Ok((text, 0)), Ok((template, count))) = (tokens(text, of, &limits), tokens(template, of, &limits)) else {
        return false;
    };
    let mut text = text.iter().map(|token| &token.token);
    let mut literals = values.iter();
    let same = template.iter().all(|token| match (&token.token, text.next()) {
        (Token::Placeholder(_), Some(found)) => match (literals.next(), found) {
            (Some(Value::Text(value)), Token::SingleQuotedString(found)) => *value == *found,
            (Some(Value::Int64(value)), Token::Number(found, false)) => found.parse() == Ok(*value),
            (Some(Value::Int64(value)), Token::Minus) => {
                matches!(text.next(), Some(Token::Number(found, false)) if found.parse() == Ok(value.unsigned_abs()) && *value <= 0)
            }
            _ => false,
        },
        (token, found) => found == Some(token),
    });
    same && count == values.len() && literals.next().is_none() && text.next().is_none()
}

/// A function whose call is replaced by a `CASE`, which contains an operand twice.
const NULLIF: &[u8] = b"nullif";

/// The number of words that the replacement adds.
const NULLIF_WORDS: usize = 11;

/// An upper bound of the number of words, numbers and symbols of a text after its functions are
/// replaced. Quoted text and comments count as one.
pub fn word_count(text: &str) -> usize {
    let replaced = text.as_bytes().windows(NULLIF.len()).filter(|word| word.eq_ignore_ascii_case(NULLIF)).count();
    token_counts(text.as_bytes()).0 + replaced * NULLIF_WORDS
}

/// The numbers of tokens, without creating them: of words, numbers and symbols, and of spaces, each
/// of which is a token for the tokenizer.
fn token_counts(text: &[u8]) -> (usize, usize) {
    let (mut words, mut spaces) = (0, 0);
    let mut in_word = false;
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        if word && in_word {
            continue;
        }
        in_word = word;
        match byte {
            b'\'' | b'"' => while bytes.next().is_some_and(|inside| inside != byte) {},
            b'-' if bytes.peek() == Some(&b'-') => while bytes.next().is_some_and(|inside| inside != b'\n') {},
            _ => {}
        }
        if byte.is_ascii_whitespace() {
            spaces += 1;
        } else {
            words += 1;
        }
    }
    (words, spaces)
}

/// Rejects long chains of operators. They become trees as deep as the chain is long, and walking a
/// tree uses the stack. `AND` and `OR` become balanced trees and have no limit.
fn check_chains(tokens: &[TokenWithSpan], limits: &Limits) -> Result<(), SqlError> {
    // The operators, and the set operations or joins, since the last separator, for each open
    // parenthesis.
    let mut levels = vec![(0_usize, 0_usize)];
    for token in tokens {
        let open = levels.len();
        let Some((operators, parts)) = levels.last_mut() else { break };
        match &token.token {
            Token::LParen | Token::LBracket => {
                *operators += 1;
                levels.push((0, 0));
            }
            Token::RParen | Token::RBracket if open > 1 => {
                levels.pop();
            }
            Token::Comma => *operators = 0,
            Token::Word(word) => match word.keyword {
                Keyword::AND | Keyword::OR | Keyword::SELECT | Keyword::FROM | Keyword::WHERE | Keyword::ON => {
                    *operators = 0;
                }
                Keyword::WHEN | Keyword::THEN | Keyword::ELSE | Keyword::HAVING | Keyword::BY => *operators = 0,
                Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::JOIN => *parts += 1,
                Keyword::IS | Keyword::NOT | Keyword::LIKE | Keyword::IN | Keyword::BETWEEN | Keyword::AT => {
                    *operators += 1;
                }
                _ => {}
            },
            Token::SingleQuotedString(_) | Token::Number(..) | Token::Placeholder(_) | Token::Period => {}
            _ => *operators += 1,
        }
        let Some((operators, parts)) = levels.last() else { break };
        if operators.max(parts) > &limits.operators_max {
            let text = format!("more than {} operators, joins or UNIONs follow each other", limits.operators_max);
            return Err(at(&text, token.span.start).with_sqlstate("54001"));
        }
        if levels.len() > limits.depth_max {
            let text = format!("brackets are nested more than {} deep", limits.depth_max);
            return Err(at(&text, token.span.start).with_sqlstate("54001"));
        }
    }
    Ok(())
}

/// An error at a position of the text.
pub fn at(message: &str, location: Location) -> SqlError {
    if location.line == 0 {
        return parsing_error(message.to_owned());
    }
    parsing_error(format!("{message} at line {}, column {}", location.line, location.column))
}

/// Converts the line and column in an error message to PostgreSQL's position: in characters, from
/// the start of the text. For PostgreSQL's clients, which display the position, the message then
/// omits it.
pub fn located(error: SqlError, text: &str, of: Dialect) -> SqlError {
    let number = |part: &str| part.parse::<u64>().ok();
    let place = error.message.rsplit_once(" at line ").and_then(|(_, place)| place.split_once(", column "));
    let Some((line, column)) = place.and_then(|(line, column)| Some((number(line)?, number(column)?))) else {
        return error;
    };
    let before = text.get(..offset(text, Location { line, column })).unwrap_or(text);
    match u32::try_from(before.chars().count() + 1) {
        Ok(position) if error.position.is_none() => {
            let message = match (of, error.message.rsplit_once(" at line ")) {
                (Dialect::Postgres, Some((message, _))) => message.to_owned(),
                _ => error.message.clone(),
            };
            SqlError { message, ..error }.at(position)
        }
        _ => error,
    }
}

/// The position in characters, from 1, where a relation first occurs in a text: after a keyword
/// that a relation follows, or a comma of its list.
pub fn place_of_relation(text: &str, name: &str, of: Dialect) -> Option<u32> {
    let tokens = Tokenizer::new(grammar(of), text).tokenize_with_location().ok()?;
    let mut tokens = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).peekable();
    let (mut follows, mut in_list) = (false, false);
    while let Some(token) = tokens.next() {
        let Token::Word(word) = &token.token else {
            follows = token.token == Token::LParen && follows || token.token == Token::Comma && in_list;
            continue;
        };
        let mut written = word_of(word);
        while tokens.next_if(|next| next.token == Token::Period).is_some() {
            if let Some(Token::Word(part)) = tokens.peek().map(|next| &next.token) {
                written = format!("{written}.{}", word_of(part));
                tokens.next();
            }
        }
        if follows && (written == name || written.rsplit('.').next() == Some(name)) {
            let before = text.get(..offset(text, token.span.start))?;
            return u32::try_from(before.chars().count() + 1).ok();
        }
        let keyword = if word.quote_style.is_none() { word.keyword } else { Keyword::NoKeyword };
        follows = matches!(
            keyword,
            Keyword::FROM
                | Keyword::JOIN
                | Keyword::USING
                | Keyword::ONLY
                | Keyword::TABLE
                | Keyword::INTO
                | Keyword::UPDATE
                | Keyword::COPY
        );
        in_list = match keyword {
            Keyword::FROM | Keyword::USING => true,
            Keyword::SELECT | Keyword::WHERE | Keyword::GROUP | Keyword::ORDER | Keyword::SET | Keyword::RETURNING => {
                false
            }
            _ => in_list,
        };
    }
    None
}

/// A word in the form in which names are compared.
fn word_of(word: &sqlparser::tokenizer::Word) -> String {
    if word.quote_style.is_some() { word.value.clone() } else { word.value.to_ascii_lowercase() }
}

/// The byte position of a location.
pub(super) fn offset(text: &str, location: Location) -> usize {
    let line = usize::try_from(location.line.saturating_sub(1)).unwrap_or(usize::MAX);
    let column = usize::try_from(location.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let mut start = 0;
    for _ in 0..line {
        match text.get(start..).and_then(|rest| rest.find('\n')) {
            Some(end) => start += end + 1,
            None => return text.len(),
        }
    }
    let rest = text.get(start..).unwrap_or("");
    start + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at)
}
