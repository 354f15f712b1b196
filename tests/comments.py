#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the comments of source files: comments.py FILE...

One line per finding: a cited file that does not exist, a cited function that exists nowhere, a fault id that
tests/faults.tsv does not define, and a comment that opens with a pronoun whose noun is elsewhere.
"""
import glob
import os
import re
import sys

# Functions of the kernel, of C libraries and of other projects that comments name and no file here calls.
FOREIGN = {"get_user_pages_remote", "uprobe_register"}

PRONOUN = re.compile(r"(?:It|Its|They|Them|Their|What|Who|Whose|Whom|The same|These|Those|Else|Nobody|So)\b"
                     r"(?! (?:is|it) [^.]*\?)")
# A path from the root; a name in capitals or <brackets> stands for any.
PATH = re.compile(r"(?<![\w./$<>~-])((?:arch|bpf|call|doc|fallback|inline|man|tests|user|vmlinux)/[\w./*<>{},-]*[\w*>}])")
CALL = re.compile(r"(?<![\w.>:/-])([a-z_]\w*)\(\)")
FAULT = re.compile(r"\(((?:[A-HST]\d+(?:, )?)+)\)")
C_COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
C_TOKEN = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)


def is_c(path):
    return path.endswith((".c", ".h", ".cc", ".S"))


def c_comments(text):
    for m in C_TOKEN.finditer(text):
        if m.group(0).startswith("/*"):
            words = re.sub(r"\n[ \t]*\*?[ \t]?", "\n", m.group(0)[2:-2])
            skipped = len(words) - len(words.lstrip(" *\n"))
            line = text.count("\n", 0, m.start()) + 1 + words.count("\n", 0, skipped)
            yield line, words.strip(" *\n")


def script_comments(text):
    """Lines that begin with #, those that follow each other as one."""
    words, start = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        m = re.match(r"\s*#(?!!)\s?(.*)", line)
        if m and "SPDX-License" not in line:
            start = start if words else number
            words.append(m.group(1))
        elif words:
            yield start, "\n".join(words).strip()
            words = []


def comments(path, text):
    return c_comments(text) if is_c(path) else script_comments(text)


def exists(path):
    if re.match(r"arch/\w+/", path):  # the kernel's: rooms of this project have no rooms in them
        return True
    path = re.sub(r"<[^>]*>|\b[A-Z][A-Z_]+\b|\bX\b", "*", path).rstrip(".,")
    if re.search(r"\{.*\}", path):
        head, _, rest = path.partition("{")
        body, _, tail = rest.partition("}")
        return all(exists(head + part + tail) for part in body.split(","))
    return bool(glob.glob(path)) or bool(glob.glob(path + ".*"))


def code_names(texts):
    """Everything that looks like a call, a definition or a macro outside of comments."""
    names = set()
    for path, text in texts.items():
        code = C_TOKEN.sub(" ", text) if is_c(path) else text
        names.update(re.findall(r"\b([A-Za-z_]\w*)\s*\(", code))
        names.update(re.findall(r"#\s*define\s+(\w+)", code))
        names.update(re.findall(r"\(\*(\w+)\)", code))
    return names


def fault_ids():
    if not os.path.exists("tests/faults.tsv"):
        return None
    with open("tests/faults.tsv", encoding="utf-8") as f:
        return {line.split("\t")[0] for line in f if line.strip() and line[0] != "#"}


def check(path, text, names, faults):
    for line, words in comments(path, text):
        def where(m):
            return line + words.count("\n", 0, m.start())
        m = PRONOUN.match(words)
        if m:
            yield line, 'comment opens with "%s", whose noun is elsewhere: %s' % (m.group(0), words.split("\n")[0][:60])
        for m in PATH.finditer(words):
            if not exists(m.group(1)):
                yield where(m), "comment names %s, which does not exist" % m.group(1)
        for m in CALL.finditer(words):
            if m.group(1) not in names and m.group(1) not in FOREIGN:
                yield where(m), "comment names %s(), which exists nowhere" % m.group(1)
        for m in FAULT.finditer(words):
            for fault in m.group(1).split(", "):
                if faults is not None and fault not in faults:
                    yield where(m), "comment names fault %s, which tests/faults.tsv does not define" % fault


def main():
    texts = {}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8", errors="replace") as f:
            texts[path] = f.read()
    names, faults = code_names(texts), fault_ids()
    for path, text in texts.items():
        for line, why in check(path, text, names, faults):
            print("%s:%d: %s" % (path, line, why))


main()
