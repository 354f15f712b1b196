/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of other tools that people give to heaptap report. */
#pragma once

/* Name the kind of the file @path and its reader: "a file of massif: ms_print reads it". NULL: not known. */
const char *foreign_file(const char *path);
