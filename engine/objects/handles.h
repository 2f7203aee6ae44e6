/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How the calls of engine.h on opened objects get at what those stand for. */
#ifndef MUNINN_ENGINE_OBJECTS_HANDLES_H
#define MUNINN_ENGINE_OBJECTS_HANDLES_H

#include "engine/objects/objects.h"

/*
 * What an opened object stands for, to be read or changed until the object is used again. One that
 * was removed or taken back meanwhile is found anew. -ENOENT; -EROFS: it can't be changed;
 * -EBADMSG...
 */
int object_use(struct engine_object *object, enum target_use use, struct target **target);

/* The same, and -EINVAL for what is not a user object. */
int object_use_data(struct engine_object *object, enum target_use use, struct target **target);

#endif
