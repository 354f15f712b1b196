/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of other tools that people give to heaptap report. */
#pragma once

/* What the file @path is, and what reads it: "a file of massif: ms_print reads it". NULL: nothing that is known. */
const char *foreign_file(const char *path);
