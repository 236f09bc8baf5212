/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "errand/request.h"

/* What is to be said: the operands behind the session, with blanks between them, or standard input. Logs what is wrong; *ret is to be freed. */
int prompt_text(const Request *q, char **ret);
