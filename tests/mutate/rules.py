# SPDX-License-Identifier: MIT
"""The rules of mutation: what is changed in a source, and how a change is known again."""
import hashlib
import os
import re
import sys

from areas import area_of

EQUIVALENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "equivalent.txt")
# A mutant of such a rule takes a validation away, moves its limit, or spoils its error code.
VALIDATION = {"drop if", "error code", "drop error", "limit", "overflow"}

NUMBER = (r"0[xX][0-9a-fA-F]*(?:\.[0-9a-fA-F]*)?(?:[pP][+-]?\d+)?[uUlLfF]*"
          r"|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?[uUlLfF]*")
TOKEN = re.compile(r"[A-Za-z_]\w*|" + NUMBER +
                   r"|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.", re.S)
SWAPS = {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="],
         "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"],
         "+=": ["-="], "-=": ["+="], "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"]}
BINARY = set(SWAPS)
# Names that stand for each other, in kernels.
NAMES = {"vf_add": "vf_sub", "vf_sub": "vf_add", "vf_mul": "vf_add", "vf_div": "vf_mul",
         "vf_max": "vf_min", "vf_min": "vf_max", "vf_lt": "vf_eq", "vm_any": "vm_all",
         "vm_all": "vm_any", "ISO_STRIP_ADD": "ISO_STRIP_ASSIGN",
         "ISO_STRIP_ASSIGN": "ISO_STRIP_ADD", "ISO_STRIP_CONTINUE": "ISO_STRIP_ASSIGN",
         "_CMP_LT_OQ": "_CMP_LE_OQ", "_CMP_EQ_OQ": "_CMP_NEQ_OQ", "vf_exp_neg": "vf_set1"}
PARTS = [("_add_", "_sub_"), ("_sub_", "_add_"), ("_max_", "_min_"), ("_min_", "_max_"),
         ("unpacklo", "unpackhi"), ("unpackhi", "unpacklo"), ("fmadd", "fnmadd"),
         ("srai", "srli")]
MASKS = {"vm_first", "vi_first", "vf_load_n", "vf_store_n", "vf_keep", "load_w", "store_w",
         "keep_w", "vm_bytes"}
OVERFLOW = re.compile(r"__builtin_\w+_overflow|iso_mul_overflows")
LIMITED = re.compile(r"(?:model_)?read_\w+|check_\w+|model_json_\w+|count_limit|skip_either")
KEYWORDS = {"return", "if", "for", "while", "do", "else", "case", "switch", "goto", "sizeof",
            "break", "continue", "typedef", "default"}


def blank(text):
    """The text with comments, strings and directives blanked; of a macro its body stays."""
    out = list(text)

    def wipe(first, end):
        for i in range(first, end):
            if out[i] != "\n":
                out[i] = " "

    for m in re.finditer(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', text,
                         re.S):
        if m.group()[0] == "/":
            wipe(m.start(), m.end())
        else:  # the quotes stay: something is there
            wipe(m.start() + 1, m.end() - 1)
    kept = "".join(out)
    for m in re.finditer(r"^[ \t]*#[ \t]*(\w+)[^\n]*", kept, re.M):
        head = re.match(r"[ \t]*#[ \t]*define[ \t]+\w+(\([^)]*\))?", m.group())
        wipe(m.start(), m.start() + head.end() if head else m.end())
    return re.sub(r"\\\n", " \n", "".join(out))


class Source:
    """One file, and its tokens: (text, first, end), white space left out."""

    def __init__(self, path, text):
        self.path, self.text, self.code = path, text, blank(text)
        self.tokens = [(m.group(), m.start(), m.end()) for m in TOKEN.finditer(self.code)
                       if not m.group().isspace()]
        self.partner = {}
        stack = []
        for i, (t, _, _) in enumerate(self.tokens):
            if t in "([{":
                stack.append(i)
            elif t in ")]}" and stack:
                first = stack.pop()
                self.partner[first], self.partner[i] = i, first

    def arguments(self, opening):
        """The spans of the arguments between a parenthesis and its partner."""
        end, spans, i = self.partner[opening], [], opening + 1
        first = i
        while i <= end:
            if i == end or self.tokens[i][0] == ",":
                if i > first:
                    spans.append((self.tokens[first][1], self.tokens[i - 1][2]))
                first = i + 1
            elif self.tokens[i][0] in "([{" and i in self.partner:
                i = self.partner[i]
            i += 1
        return spans


def is_value(token):
    return bool(re.match(r"[\w)\]\"']", token)) and token not in KEYWORDS


def is_minimum(code, first, operator, end):
    """Whether `a OP b ? a : b` stands here: then OP with or without = gives the same."""
    m = re.match(r"\s*([^?;:]+?)\s*\?\s*([^?:;]+?)\s*:\s*([^;,{}?:]*)", code[end:])
    if not m:
        return False
    right, yes, no = (re.sub(r"\s", "", x) for x in m.groups())
    left = re.sub(r"\s", "", code[:first])
    other = no.rstrip(")")

    def same(a, b):
        return a == b or re.sub(r"\(size_t\)", "", a) == re.sub(r"\(size_t\)", "", b)

    return operator in ("<", "<=", ">", ">=") and (
        (left.endswith(yes) and (same(right, no) or same(right, other))) or
        (same(right, yes) and bool(other) and left.endswith(other)))


def generate(source):
    """Yields (first, end, replacement, rule, validation)."""
    text, code, tokens, partner = source.text, source.code, source.tokens, source.partner
    area = area_of(source.path)
    kernels, loader = area == "kernels", area == "loader"

    # Conditions, and which tokens lie within one that guards a return: a validation.
    guarded = set()
    for i, (t, _, _) in enumerate(tokens):
        if t != "if" or i + 1 not in partner:
            continue
        close = partner[i + 1]
        first, end = tokens[i + 1][2], tokens[close][1]
        body = close + 1
        last = partner.get(body, body) if tokens[body][0] == "{" else body
        while last == body and tokens[last][0] != ";":
            last += 1
            if last >= len(tokens) or tokens[last][0] == "{":
                break
        leaves = any(tokens[j][0] in ("return", "goto", "status") for j in range(body, last))
        if leaves:
            guarded.update(range(i + 2, close))
        condition = text[first:end]
        yield first, end, "(" + condition + ") && 0", "drop if", leaves
        if not leaves:
            yield first, end, "(" + condition + ") || 1", "always if", False

    for i, (t, first, end) in enumerate(tokens):
        before = tokens[i - 1][0] if i else ""
        after = tokens[i + 1][0] if i + 1 < len(tokens) else ""
        spaced = code[first - 1:first] in (" ", "\n") and code[end:end + 1] in (" ", "\n")
        check = i in guarded
        if t in SWAPS and spaced and is_value(before):
            if not is_minimum(code, first, t, end):
                for other in SWAPS[t]:
                    yield first, end, other, "operator", check
        elif re.fullmatch(NUMBER, t):
            digits = t.rstrip("uUlL")
            whole = re.fullmatch(r"0[xX][0-9a-fA-F]+|0|[1-9]\d*", digits)  # no octal ones
            if whole:
                value, rest = int(digits, 0), t[len(digits):]
                beside = before in BINARY or after in BINARY
                if beside and not (before == "[" or after == "]"):
                    for n in ([value + 1, value - 1] if value else [1]):
                        yield first, end, str(n) + rest, "constant", check
                elif before == "return" and after == ";":
                    yield first, end, str(int(not value)), "result", loader
                elif before == "=" and after in ";,":
                    yield first, end, str(value + 1), "initial value", False
                elif before == "," and after == "," and code[first - 3:first] == '", ':
                    yield first, end, str(value + 1), "table", loader
            elif kernels:
                number = t.rstrip("fF") if not t.lower().startswith("0x") or "p" in t.lower() else t
                suffix = t[len(number):]
                x = float.fromhex(number) if number.lower().startswith("0x") else float(number)
                if x:
                    yield first, end, (x * (1 + 1e-5)).hex() + suffix, "perturb", False
        elif OVERFLOW.fullmatch(t) and after == "(" and before not in ("int", "define"):
            last = tokens[partner[i + 1]][2]
            yield first, last, "(" + text[first:last] + " && 0)", "overflow", True
        elif re.fullmatch(r"ISOBIT_E_\w+", t) and before in ("return", ",", "=", "(", "?", ":"):
            yield first, end, "ISOBIT_E_INTERNAL", "error code", loader
        elif t == "status" and before == "(" and after == "=" and not kernels:
            close = partner[i - 1]
            call = text[tokens[i + 1][2]:tokens[close][1]].strip()
            if "(" in call:
                yield first, tokens[close][1], "status = ISOBIT_OK", "drop call", loader
                yield first, tokens[close][1], "%s, status = ISOBIT_OK" % call, "drop error", loader
        elif after == "(" and i + 1 in partner and LIMITED.fullmatch(t) and loader:
            for a, b in source.arguments(i + 1):
                digits = code[a:b].strip()
                if re.fullmatch(r"[01]", digits) and t in ("model_read_real", "check_id") and \
                        b == source.arguments(i + 1)[-1][1]:  # no number but a flag
                    yield a, b, str(1 - int(digits)), "limit", True
                elif re.fullmatch(r"\d+", digits):
                    for n in ([int(digits) + 1, int(digits) - 1] if int(digits) else [1]):
                        yield a, b, str(n), "limit", True
        elif t in ("break", "continue") and after == ";" and not kernels:
            yield first, end, "", "drop jump", False
        if kernels and re.match(r"[A-Za-z_]", t):
            is_call = after == "(" and i + 1 in partner
            spans = source.arguments(i + 1) if is_call else []
            declared = any(re.search(r"\w\s+\**\w+$", code[a:b]) for a, b in spans)
            if t in NAMES and not declared:
                yield first, end, NAMES[t], "swap name", False
            if t.startswith("_mm"):
                for a, b in PARTS:
                    if a in t:
                        yield first, end, t.replace(a, b), "swap name", False
                for a, b in (("loadu_ps", "load_ps"), ("storeu_ps", "store_ps")):
                    if t.endswith(a):
                        yield first, end, t.replace(a, b), "aligned", False
                for a, b in spans[-1:]:
                    if re.fullmatch(r"0x[0-9a-f]+|\d+", code[a:b]) and "setr" not in t:
                        yield a, b, str(int(code[a:b], 0) ^ 1), "shuffle", False
            if is_call and not declared and spans:
                args = [text[a:b] for a, b in spans]
                last = tokens[partner[i + 1]][2]
                if t in MASKS:
                    a, b = spans[-1]
                    for sign in "+-":
                        yield a, b, "(%s) %s 1" % (text[a:b], sign), "mask", False
                if t in ("vf_sub", "vf_mul", "vf_add") and len(args) == 2:
                    yield first, last, args[0], "drop operand", False
                if t in ("vf_max", "vf_min", "vf_fma", "_mm256_max_ps", "_mm512_max_ps"):
                    swapped = ([args[1], args[0]] if len(args) == 2
                               else [args[0], args[2], args[1]])
                    yield first, last, "%s(%s)" % (t, ", ".join(swapped)), "swap operands", False
                if t == "vf_fma" and len(args) == 3:
                    yield (spans[0][0], spans[0][1],
                           "vf_sub(vf_set1(-0.0f), %s)" % args[0], "sign of fma", False)
                    yield (first, last, "vf_add(vf_mul(%s, %s), %s)" % tuple(args),
                           "round twice", False)
                if t == "vf_select" and len(args) == 3:
                    yield (first, last, "vf_select(%s, %s, %s)" % (args[0], args[2], args[1]),
                           "swap operands", False)

    # The limits that files are held to.
    if loader:
        for m in re.finditer(r"^#define [A-Z][A-Z_]+ ([^\n/]*?\d[^\n/]*?)[ ]*(?:/\*.*)?$", text,
                             re.M):
            for sign in "+-" if '"' not in m.group(1) else "":
                yield (m.start(1), m.end(1), "((%s) %s 1)" % (m.group(1), sign), "limit", True)

    # Statements of one line.
    at = 0
    for line, shown in zip(code.split("\n"), text.split("\n")):
        m = re.match(r"\s*(\*?[A-Za-z_]\w*(?:->\w+|\.\w+|\[[^\]]*\])*)\s*"
                     r"(=[^=]|\+=|-=|\|=|&=|<<=|>>=|\+\+|--|\().*;\s*$", line)
        if m and re.match(r"\*?(\w+)", m.group(1)).group(1) not in KEYWORDS:
            body = line.rstrip()
            if (body.count("(") == body.count(")") and body.count(";") == 1 and
                    body.count("{") == body.count("}")):
                yield (at + m.start(1), at + len(body), ";", "drop statement", False)
        at += len(shown) + 1


class Mutant:
    """One change of one file; known by what it changes, not by its place."""

    def __init__(self, source, first, end, replacement, rule, validation):
        self.path, self.rule = source.path, rule
        self.validation = validation and rule in VALIDATION
        self.area = area_of(source.path)
        self.first, self.end, self.replacement = first, end, replacement
        self.line = source.text.count("\n", 0, first) + 1
        a = source.text.rfind("\n", 0, first) + 1
        b = source.text.find("\n", end)
        b = len(source.text) if b < 0 else b
        self.old = " ".join(source.text[a:b].split())
        self.new = " ".join((source.text[a:first] + replacement + source.text[end:b]).split())
        self.again = 0  # the how manieth of those that look the same

    def key(self):
        return (self.path, self.rule, self.old, self.new, self.again)

    def name(self):
        return hashlib.sha256(repr(self.key()).encode()).hexdigest()[:12]

    def entry(self):
        again = "again %d\n" % self.again if self.again else ""
        return "%s: %s\n%s- %s\n+ %s\n" % (self.path, self.rule, again, self.old, self.new)


def mutants_of(path, text):
    source, found, seen = Source(path, text), [], {}
    places = set()
    for change in generate(source):
        if change[:3] in places:
            continue
        places.add(change[:3])
        m = Mutant(source, *change)
        if m.old == m.new:
            continue
        m.again = seen.get(m.key()[:4], 0)
        seen[m.key()[:4]] = m.again + 1
        found.append(m)
    return found


def read_equivalent():
    """key -> reason"""
    known = {}
    if not os.path.exists(EQUIVALENT):
        return known
    with open(EQUIVALENT, encoding="utf-8") as f:
        text = re.sub(r"^#.*\n", "", f.read(), flags=re.M)
    for block in re.split(r"\n\s*\n", text.strip()):
        m = re.fullmatch(r"(\S+): ([^\n]+)\n(?:again (\d+)\n)?- ([^\n]*)\n\+ ([^\n]*)\n(.+)", block,
                         re.S)
        if not m:
            if block.strip():
                sys.exit("mutate: not understood in equivalent.txt:\n" + block)
            continue
        path, rule, again, old, new, reason = m.groups()
        known[(path, rule, old, new, int(again or 0))] = " ".join(reason.split())
    return known
