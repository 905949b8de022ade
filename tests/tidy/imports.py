#!/usr/bin/env python3
"""Reads who imports whom from the Rust sources: for tests/tidy, and for the picture of `make picture`.

usage: imports.py [--root DIR]               the circles, with what ties each; exit 1 where one is
       imports.py [--root DIR] --list        every arrow: FROM:LINE<tab>TO<tab>NAME
       imports.py [--root DIR] --svg FILE    the picture, and the circles

An arrow goes from a file to the file that defines a name it takes, through however many
re-exports: paths that begin with `crate`, `self`, `super`, the library's name, or a name of
the module itself; names that come by `*`; `self.method()`, `Self::method` and `Type::method` where
the methods of one type are spread over files; and `.method()` of such a type where no other
function of the tree has that name. A re-export alone is no arrow, nor is a `mod` line. Tests
(items under `#[cfg(test)]`) are passed over.

What names nothing is followed by its spelling alone; macros are not expanded.
"""

import os
import re
import sys
from collections import defaultdict

CRATES = [("lsf", "src/lib.rs"), ("applets", "applets/main.rs")]
IDENT = r"(?:r#)?[A-Za-z_][A-Za-z0-9_]*"
PATH = re.compile(rf"(?<![\w:.])(?:::)?({IDENT}(?:\s*::\s*{IDENT})+)")
WORD = re.compile(rf"(?<![\w:.'])({IDENT})(?!\s*::|\w)")
USE = re.compile(r"\b(pub\s+)?use\s+([^;]+);")
ITEM = re.compile(
    r"\b(?:struct|enum|union|trait|type|fn|const|static)\s+(?:mut\s+)?(\w+)|\bmacro_rules!\s*(\w+)"
)
MOD = re.compile(r"\bmod\s+(\w+)\s*([;{])")
TEST = re.compile(r"#\[\s*(?:cfg\(\s*(?:all\(\s*)?test\b[^\]]*|test\s*)\]")
ENDS_AT_SEMICOLON = {"use", "const", "static", "type", "let", "extern"}
ENDS_AT_BRACE = {"fn", "mod", "impl", "struct", "enum", "union", "trait", "unsafe", "async"}
# methods of the standard library, which a call by name alone cannot be told from
COMMON = set("clear get insert len next pop push read remove send take trim write".split())
TOKEN = re.compile(
    r'//[^\n]*|/\*|\bb?r(#*)"|b?"(?:[^"\\]|\\.)*"|b?\'(?:\\(?:x..|u\{[^}]*\}|.)|[^\\\'])\'', re.S
)


def blank(text, start, end):
    """The text with spaces from start to end; lines stay where they are."""
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


def without_words(text):
    """The text without comments and literals."""
    out, at = [], 0
    while m := TOKEN.search(text, at):
        end = m.end()
        if m[0] == "/*":
            depth = 1
            while depth and (n := re.compile(r"/\*|\*/").search(text, end)):
                depth += 1 if n[0] == "/*" else -1
                end = n.end()
        elif m[1] is not None:
            end = text.find('"' + m[1], end) + 1 + len(m[1])
        out += [text[at : m.start()], re.sub(r"[^\n]", " ", text[m.start() : end])]
        at = end
    return "".join(out) + text[at:]


def closing(text, at):
    """Where the bracket at `at` is closed."""
    depth = 0
    for m in re.compile(r"[(\[{]|[)\]}]").finditer(text, at):
        depth += 1 if m[0] in "([{" else -1
        if depth == 0:
            return m.end()
    return len(text)


def end_of_item(text, at):
    """Where the item ends that begins at `at` with its attributes."""
    while m := re.compile(r"\s*#\[").match(text, at):
        at = closing(text, m.end() - 1)
    words = re.compile(r"\s*(?:pub(?:\s*\([^)]*\))?\s+)?(\w*)").match(text, at)
    ends = ";," if words[1] not in ENDS_AT_BRACE else ";"
    if words[1] in ENDS_AT_SEMICOLON:
        ends = ";"
    while m := re.compile(r"[(\[{)\]};,]").search(text, at):
        if m[0] in ")]}":
            return m.start()
        if m[0] in "([{":
            at = closing(text, m.start())
            if m[0] == "{" and words[1] not in ENDS_AT_SEMICOLON:
                return at
        elif m[0] in ends:
            return m.end()
        else:
            at = m.end()
    return len(text)


def without_tests(text):
    at = 0
    while m := TEST.search(text, at):
        text = blank(text, m.start(), end_of_item(text, m.start()))
        at = m.end()
    return text


def depths(text):
    """How many braces are open at each place."""
    out, depth = [], 0
    for c in text:
        depth -= c == "}"
        out.append(depth)
        depth += c == "{"
    return out


def leaves(tree, prefix=()):
    """(path, name) for each leaf of a use tree, with its offset."""
    at, depth, start = 0, 0, 0
    parts = []
    for at, c in enumerate(tree + ","):
        depth += (c == "{") - (c == "}")
        if c == "," and depth == 0:
            parts.append((start, tree[start:at]))
            start = at + 1
    for offset, part in parts:
        lead = len(part) - len(part.lstrip())
        brace = part.find("{")
        if brace >= 0:
            path = tuple(p for p in re.split(r"\s*::\s*", part[:brace].strip()) if p)
            inner = part[brace + 1 : part.rindex("}")]
            for o, *rest in leaves(inner, prefix + path):
                yield (offset + brace + 1 + o, *rest)
        elif part.strip():
            words = part.split()
            path = prefix + tuple(p for p in re.split(r"\s*::\s*", words[0]) if p)
            if path[-1] == "self" and len(path) > 1:
                path = path[:-1]
            yield offset + lead, path, words[2] if len(words) == 3 else path[-1]


class Module:
    def __init__(self, tree, file, name, parent, text, start, end):
        self.tree, self.file, self.name, self.parent = tree, file, name, parent
        self.root = parent.root if parent else self
        self.text, self.start, self.end = text, start, end
        self.children, self.items, self.uses, self.public, self.globs = {}, {}, {}, set(), []
        self.inner = []

    def above(self):
        module = self.parent
        while module:
            yield module
            module = module.parent

    def line(self, at):
        return self.text.count("\n", 0, at) + 1


class Tree:
    def __init__(self, root):
        self.root, self.modules, self.arrows = root, [], {}
        self.crates = {}
        self.methods = defaultdict(lambda: defaultdict(set))
        self.functions = defaultdict(set)
        for name, file in CRATES:
            if os.path.exists(os.path.join(root, file)):
                self.crates[name] = self.read(file, name, None, os.path.dirname(file))
        for module in self.modules:
            self.implementations(module)
        for module in self.modules:
            self.references(module)

    # modules, items and uses ------------------------------------------------------------

    def read(self, file, name, parent, folder):
        with open(os.path.join(self.root, file), encoding="utf-8") as f:
            text = without_tests(without_words(f.read()))
        text = re.sub(r"\bpub\s*\([^)]*\)", lambda m: "pub" + " " * (len(m[0]) - 3), text)
        module = Module(self, file, name, parent, text, 0, len(text))
        module.depth = depths(text)
        self.collect(module, folder, 0)
        return module

    def collect(self, module, folder, base):
        """What a module declares: children, items, uses."""
        self.modules.append(module)
        text = module.text
        for m in MOD.finditer(text, module.start, module.end):
            if module.depth[m.start()] != base:
                continue
            if m[2] == ";":
                file = os.path.join(folder, m[1] + ".rs")
                if not os.path.exists(os.path.join(self.root, file)):
                    file = os.path.join(folder, m[1], "mod.rs")
                module.children[m[1]] = self.read(file, m[1], module, os.path.join(folder, m[1]))
            else:
                end = closing(text, m.end() - 1)
                child = Module(self, module.file, m[1], module, text, m.end(), end - 1)
                child.depth = module.depth
                module.inner.append((m.start(), end))
                module.children[m[1]] = child
                self.collect(child, os.path.join(folder, m[1]), base + 1)
        for m in ITEM.finditer(text, module.start, module.end):
            if m[2]:
                before = text[max(0, m.start() - 40) : m.start()]
                (module.root if "macro_export" in before else module).items[m[2]] = module.file
            elif module.depth[m.start()] == base:
                module.items[m[1]] = module.file
        for m in USE.finditer(text, module.start, module.end):
            for offset, path, alias in leaves(m[2]):
                at = m.start(2) + offset
                if self.inside(module, at):
                    continue
                if alias == "*":
                    module.globs.append(path[:-1])
                else:
                    module.uses[alias] = path
                    if m[1]:
                        module.public.add(alias)

    @staticmethod
    def inside(module, at):
        return any(a <= at < b for a, b in module.inner)

    # names ------------------------------------------------------------------------------

    def resolve(self, module, path, seen=frozenset()):
        """(module, None, ()) or (file, name, rest) that a path names, or None."""
        first, rest = path[0], path[1:]
        if first == "crate":
            here = module.root
        elif first == "self":
            here = module
        elif first == "super":
            here = module.parent or module
        elif first in self.crates and first not in module.children:
            here = self.crates[first]
        else:
            here, rest = module, path
            if self.step(module, first, seen) is None:
                return None
        while rest:
            if rest[0] == "super":
                here, rest = here.parent, rest[1:]
                continue
            found = self.step(here, rest[0], seen)
            if found is None:
                # a name that a macro makes, or a variant or constant of something re-exported
                return (here.file, rest[0], rest[1:]) if here.parent else None
            if found[1] is not None:
                return found[0], found[1], found[2] + tuple(rest[1:])
            here, rest = found[0], rest[1:]
        return here, None, ()

    def step(self, module, name, seen, private=True):
        """What one name means in a module; its private `use` lines are for those inside alone."""
        if (module, name) in seen:
            return None
        seen = seen | {(module, name)}
        if name in module.children:
            return module.children[name], None, ()
        if name in module.items:
            return module.items[name], name, ()
        if name in module.uses and (private or name in module.public):
            return self.resolve(module, module.uses[name], seen)
        for glob in module.globs:
            target = self.resolve(module, glob, seen)
            if target and target[1] is None and target[0] is not module:
                inside = target[0] in module.above()
                found = self.step(target[0], name, seen, inside)
                if found:
                    return found
        return None

    # methods ----------------------------------------------------------------------------

    def implementations(self, module):
        """The impl blocks of a module, and the methods of each type."""
        module.impls = []
        text = module.text
        for m in re.compile(r"\bfn\s+(\w+)").finditer(text, module.start, module.end):
            self.functions[m[1]].add((module.file, m.start()))
        for m in re.compile(r"(?m)^\s*(?:unsafe\s+)?impl\b([^{;]*)\{").finditer(
            text, module.start, module.end
        ):
            if self.inside(module, m.start()):
                continue
            head, own = m[1], True
            if head.startswith("<"):
                depth = 0
                for i, c in enumerate(head):
                    depth += (c == "<") - (c == ">" and head[i - 1] != "-")
                    if depth == 0:
                        head = head[i + 1 :]
                        break
            head = head.split(" where ")[0]
            if " for " in head:
                head, own = head.split(" for ")[1], False
            name = re.compile(rf"\s*&?(?:mut\s+)?({IDENT}(?:::{IDENT})*)").match(head)
            found = name and self.resolve(module, tuple(name[1].split("::")))
            if not found or found[1] is None:
                continue
            kind = (found[0], found[1])
            end = closing(text, m.end() - 1)
            module.impls.append((m.end(), end, kind))
            level = module.depth[m.end() - 1] + 1
            for f in re.compile(r"\bfn\s+(\w+)").finditer(text, m.end(), end):
                if own and module.depth[f.start()] == level:
                    self.methods[kind][f[1]].add(module.file)

    def spread(self):
        """Methods that are defined away from their type, by a name that nothing else has."""
        out = {}
        for kind, methods in self.methods.items():
            files = {f for at in methods.values() for f in at}
            if len(files | {kind[0]}) == 1:
                continue
            for name, at in methods.items():
                if len(self.functions[name]) == 1 and name not in COMMON:
                    out[name] = kind, next(iter(at))
        return out

    # arrows -----------------------------------------------------------------------------

    def add(self, module, at, to, name):
        if to != module.file:
            self.arrows.setdefault((module.file, to), {}).setdefault(name, module.line(at))

    def reach(self, module, at, path):
        found = self.resolve(module, path)
        if not found or found[1] is None:
            return
        to, name, rest = found
        self.add(module, at, to, name)
        if rest:
            self.method(module, at, (to, name), rest[0])

    def method(self, module, at, kind, name):
        files = self.methods[kind].get(name, ()) if kind in self.methods else ()
        if len(files) == 1:
            self.add(module, at, next(iter(files)), f"{kind[1]}::{name}()")
        return bool(files)

    def references(self, module):
        text, uses = module.text, []
        for m in USE.finditer(text, module.start, module.end):
            uses.append((m.start(), m.end()))
            for offset, path, alias in leaves(m[2]):
                at = m.start(2) + offset
                if not m[1] and alias != "*" and not self.inside(module, at):
                    self.reach(module, at, path)
        hidden = uses + module.inner
        code = text[: module.end]
        for a, b in hidden:
            code = blank(code, a, b)
        for m in PATH.finditer(code, module.start):
            path = tuple(re.split(r"\s*::\s*", m[1]))
            if path[0] != "Self":
                self.reach(module, m.start(), path)
        wanted = set(module.public)
        for m in WORD.finditer(code, module.start) if wanted or module.globs else ():
            name = m[1]
            if name in module.items or (name in module.uses and name not in wanted):
                continue
            if name in wanted or name[0].isupper() or code[m.end() : m.end() + 1] == "(":
                self.reach(module, m.start(), (name,))
        self.calls(module, code)

    def calls(self, module, code):
        for start, end, kind in module.impls:
            for m in re.compile(r"\b(?:self\s*\.|Self\s*::)\s*(\w+)\s*\(").finditer(code, start, end):
                self.method(module, m.start(), kind, m[1])
        if not hasattr(self, "_spread"):
            self._spread = self.spread()
        for m in re.compile(r"\.\s*(\w+)\s*(?:::<[^>]*>)?\(").finditer(code, module.start):
            if m[1] in self._spread:
                kind, file = self._spread[m[1]]
                self.add(module, m.start(), file, f"{kind[1]}::{m[1]}()")


def circles(arrows):
    """The sets of nodes that reach each other (Tarjan, without recursion)."""
    out, index, low, stack, on, found = defaultdict(list), {}, {}, [], set(), []
    for a, b in sorted(arrows):
        out[a].append(b)
    for start in sorted(out):
        if start in index:
            continue
        work = [(start, iter(out[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on.add(start)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(out[other])))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = set()
                    while node not in group:
                        group.add(stack.pop())
                    on -= group
                    if len(group) > 1:
                        found.append(group)
    return sorted(found, key=lambda g: (-len(g), sorted(g)))


def tell(arrows, group):
    for (a, b), names in sorted(arrows.items()):
        if a in group and b in group:
            by_line = sorted((line, name) for name, line in names.items())
            print(f"  {a}:{by_line[0][0]} -> {b}: {', '.join(n for _, n in by_line)}")


# ---- the picture ----------------------------------------------------------------------------

CELL, GAP, PAD, WIDE = 13, 4, 10, 1500


def folder_of(file):
    parts = file.split("/")
    return parts[0] if parts[0] != "src" else "/".join(parts[:2])


def levels(nodes, arrows):
    """How far each node stands above the ground; those of a circle stand together."""
    group = {n: (n,) for n in nodes}
    for found in circles(arrows):
        for n in found:
            group[n] = tuple(sorted(found))
    below = defaultdict(set)
    for a, b in arrows:
        if group[a] != group[b]:
            below[group[a]].add(group[b])
    level, todo = {}, sorted(set(group.values()))
    while todo:
        rest = []
        for g in todo:
            if all(b in level for b in below[g]):
                level[g] = max((level[b] + 1 for b in below[g]), default=0)
            else:
                rest.append(g)
        todo = rest
    return {n: level[group[n]] for n in nodes}


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Picture:
    """Folders as boxes, each above all that it imports; files as cells in them."""

    def __init__(self, tree):
        self.files = sorted({m.file for m in tree.modules})
        self.tree, self.out, self.place, self.box = tree, [], {}, {}
        self.width = WIDE
        inner = levels(self.files, tree.arrows)
        members = defaultdict(list)
        for file in self.files:
            members[folder_of(file)].append(file)
        between = defaultdict(int)
        for a, b in tree.arrows:
            if folder_of(a) != folder_of(b):
                between[folder_of(a), folder_of(b)] += 1
        rows = defaultdict(list)
        for folder, level in levels(sorted(members), between).items():
            rows[level].append(folder)
        y = PAD
        for level in sorted(rows, reverse=True):
            y = self.row(rows[level], members, inner, y) + 60
        self.height, self.between = y, between
        self.arrows()

    def row(self, folders, members, inner, y):
        total, x, bottom = sum(len(members[f]) for f in folders), PAD, y
        for folder in folders:
            share = max(len(members[folder]) / total, 0.1)
            width = max(170, int((WIDE - 2 * PAD * len(folders)) * share))
            columns = max(1, width // 170)
            files = sorted(members[folder], key=lambda f: (-inner[f], f))
            for n, file in enumerate(files):
                at = x + GAP + n % columns * (width // columns), y + 22 + n // columns * CELL
                self.place[file] = at
                name = file[len(folder) + 1 :].removesuffix(".rs") or file
                self.out.append(
                    f'<text x="{at[0]}" y="{at[1] + 10}">{escaped(name)}<title>{file}</title></text>'
                )
            height = 26 + -(-len(files) // columns) * CELL
            self.box[folder] = x, y, width, height
            self.out.append(
                f'<rect x="{x}" y="{y}" width="{width}" height="{height}" class="box"/>'
                f'<text x="{x + GAP}" y="{y + 14}" class="folder">{folder}</text>'
            )
            x, bottom = x + width + 2 * PAD, max(bottom, y + height)
            self.width = max(self.width, x)
        return bottom

    def line(self, a, b, kind, width, title):
        self.out.append(
            f'<line x1="{a[0]}" y1="{a[1]}" x2="{b[0]}" y2="{b[1]}" class="{kind}" '
            f'stroke-width="{width}"><title>{escaped(title)}</title></line>'
        )

    def arrows(self):
        for (a, b), count in sorted(self.between.items()):
            (ax, ay, aw, ah), (bx, by, bw, bh) = self.box[a], self.box[b]
            up = ay >= by
            start = ax + aw / 2, ay if up else ay + ah
            end = bx + bw / 2, by + bh if up else by
            width = round(0.5 + count**0.5 / 6, 1)
            self.line(start, end, "up" if up else "down", width, f"{a} -> {b}: {count} arrows")
        for group in circles(self.tree.arrows):
            for (a, b), names in sorted(self.tree.arrows.items()):
                if a in group and b in group:
                    ends = [(x - 3, y + 6) for x, y in (self.place[a], self.place[b])]
                    self.line(*ends, "circle", 0.6, f"{a} -> {b}: {', '.join(sorted(names))}")

    def text(self):
        style = (
            "text{font:10px sans-serif} .folder{font-weight:bold;font-size:12px}"
            " .box{fill:#8ab4;stroke:#468} .down{stroke:#4684} .up,.circle{stroke:#c22}"
        )
        size = f'width="{self.width}" height="{self.height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(self.out) + "\n</svg>\n"
        )


def main(args):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if args[:1] == ["--root"]:
        root, args = args[1], args[2:]
    tree = Tree(root)
    if args == ["--list"]:
        for (a, b), names in sorted(tree.arrows.items()):
            for name, line in sorted(names.items(), key=lambda n: n[1]):
                print(f"{a}:{line}\t{b}\t{name}")
        return 0
    if args[:1] == ["--svg"] and len(args) == 2:
        with open(args[1], "w", encoding="utf-8") as f:
            f.write(Picture(tree).text())
    elif args:
        print(__doc__, file=sys.stderr)
        return 2
    found = circles(tree.arrows)
    for group in found:
        ties = [a for a in tree.arrows if a[0] in group and a[1] in group]
        print(f"circle: {len(group)} files, {len(ties)} arrows")
        tell(tree.arrows, group)
    return 1 if found and not args else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
