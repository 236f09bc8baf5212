/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a session wrote, on its way to the journal. There a number before a line, "<0>" say, makes it an emergency that is shown to everybody who is logged in,
 * unless the unit has SyslogLevelPrefix=no: systemd's connection for a unit's output (systemd.exec(5), JOURNAL_STREAM) says whether it is looked for. One of our own,
 * by the same socket, says that it is not, whoever wrote the unit. */

/* An fd for what would be written to that one: one of our own where it is the journal's, else fd itself, also where there is none to be had, which is logged. The journal
 * has no more of the unit's settings there: what is written is errand's, and informational. Kept until the end. */
int journal_stream(int fd);
/* Standard output becomes such a one where it is the journal's, and is left as it is else. */
void journal_stream_stdout(void);
/* Before the end: until the journal has read what was written, 2 s at most, since it looks up whose it is; 200 ms where it was told, as it is by root. */
void journal_stream_drain(void);
