<?php
// What PHP's own tokens say is defined in the files named on standard input: one JSON object a line.

const BEFORE = [T_ABSTRACT, T_FINAL, T_PUBLIC, T_PRIVATE, T_PROTECTED, T_STATIC, T_VAR, T_READONLY];
const KINDS = [T_FUNCTION => 'function', T_CLASS => 'class', T_INTERFACE => 'interface', T_TRAIT => 'trait', T_ENUM => 'enum'];

function definitions(string $text): array
{
    $tokens = array_values(array_filter(
        PhpToken::tokenize($text, TOKEN_PARSE),
        fn ($token) => !$token->is([T_WHITESPACE, T_COMMENT, T_DOC_COMMENT])
    ));
    $found = [];
    foreach ($tokens as $at => $token) {
        if (!isset(KINDS[$token->id]) || ($at > 0 && $tokens[$at - 1]->is([T_NEW, T_DOUBLE_COLON, T_USE, T_OBJECT_OPERATOR]))) {
            continue;
        }
        $name = $at + 1;
        if ($tokens[$name]->text === '&') {
            $name++;
        }
        if (!$tokens[$name]->is(T_STRING) && !($token->id === T_FUNCTION && ctype_alpha($tokens[$name]->text[0]))) {
            continue; // a closure or an anonymous class
        }
        if (in_array($tokens[$name]->text, ['extends', 'implements'], true)) {
            continue;
        }
        $found[] = [KINDS[$token->id], $tokens[$name]->text, start($tokens, $at), finish($tokens, $name)];
    }
    return $found;
}

function start(array $tokens, int $at): int
{
    while ($at > 0) {
        if ($tokens[$at - 1]->is(BEFORE)) {
            $at--;
        } elseif ($tokens[$at - 1]->text === ']' && ($opens = attribute($tokens, $at - 1)) !== null) {
            $at = $opens;
        } else {
            break;
        }
    }
    return $tokens[$at]->line;
}

function attribute(array $tokens, int $at): ?int
{
    for ($depth = 0; $at >= 0; $at--) {
        $text = $tokens[$at]->text;
        $depth += $text === ']' ? 1 : ($text === '[' || $text === '#[' ? -1 : 0);
        if ($depth === 0) {
            return $text === '#[' ? $at : null;
        }
    }
    return null;
}

function finish(array $tokens, int $at): int
{
    for ($depth = 0; $at < count($tokens); $at++) {
        $text = $tokens[$at]->is([T_ENCAPSED_AND_WHITESPACE, T_INLINE_HTML]) ? "" : $tokens[$at]->text;
        $depth += in_array($text, ['{', '(', '[', '${', '#[']) || $tokens[$at]->is([T_CURLY_OPEN]) ? 1 : 0;
        $depth -= in_array($text, ['}', ')', ']']) ? 1 : 0;
        if ($depth === 0 && ($text === '}' || $text === ';')) {
            return $tokens[$at]->line;
        }
    }
    return -1;
}

while (($path = fgets(STDIN)) !== false) {
    $path = rtrim($path, "\n");
    try {
        echo json_encode(['file' => $path, 'definitions' => definitions(file_get_contents($path))]), "\n";
    } catch (ParseError) {
    }
}
