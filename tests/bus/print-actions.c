/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "errandd/action.h"

/* Every polkit action of the gate's table, a line each. */
int main(void) {
        for (Permission p = 0; p < _PERMISSION_MAX; p++)
                for (int own = 1; own >= 0; own--)
                        if (permission_action_id(p, own))
                                puts(permission_action_id(p, own));
        return 0;
}
